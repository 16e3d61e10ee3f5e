// Package model plays the Anthropic Messages API from a file, so that an agent can run without an account, offline, and
// say the same thing every time. The Claude Code CLI (2.1.329 is tested) cannot tell it from the real one.
//
//	script, err := model.LoadScript("hello.toml")
//	server := &model.Server{Script: script}
//	go http.Serve(listener, server)
//	// … run the agent with ANTHROPIC_BASE_URL=http://… and any ANTHROPIC_API_KEY …
//	if err := server.Err(); err != nil { … }          // the script ran out, or a request was not as expected
//	if n := server.Unused(); n > 0 { … }              // the agent stopped early
//
// It is no gateway: it takes any credential, and whoever reaches its listener is served.
//
// # Scripts
//
// A script is a list of turns: what the model says, in order. This one is a whole session with one tool call:
//
//	description = "runs the tests"
//
//	[[turns]]
//	text = "Let me run the tests."
//	[[turns.tools]]
//	name = "Bash"
//	input = { command = "go test ./..." }
//
//	[[turns]]
//	expect = { contains = "FAIL" }
//	text = "One test fails."
//
// Strings are literal; nothing is substituted. The same keys work in JSON. A key that is unknown, or of the wrong type,
// is an error that says the line. The keys of a turn:
//
//	text = "…"            what the model says
//	thinking = "…"        what it thinks before
//	[[turns.tools]]       tools that it calls after: name, input = { … }, id
//	blocks = [ … ]        instead of these three, when the order matters:
//	                      { type = "text", text = "…" }, { type = "thinking", text = "…", signature = "…" },
//	                      { type = "tool_use", name = "…", input = { … }, id = "…" }; [] is an empty answer
//	stop_reason = "…"     default: "tool_use" with a tool, else "end_turn"
//	usage = { input = 1, output = 2, cache_read = 3, cache_write = 4 }
//	                      tokens; default: 100 in, a quarter of the answer's bytes out, whatever was asked
//	error = { status = 529, type = "overloaded_error", message = "…", retry_after = 1, retry = false, repeat = 2 }
//	                      answered first, repeat times; then the content, or without content the next turn.
//	                      Without repeat: once; but if nothing follows in the turn and the status is final (4xx but
//	                      408, 409, 429), to every request until the conversation has moved on.
//	                      retry_after (seconds) and retry become the headers retry-after and x-should-retry
//	cut = 20              the connection breaks in the first stream, after so many bytes of content; the retry gets all
//	delay = "200ms"       before the answer or error
//	chunk_bytes = 10      how much text a stream event carries; default: 32, more for long texts
//	chunk_delay = "5ms"   before each such event
//	expect = { contains = "…", lacks = "…" }
//	                      strings or lists of strings: what the request must say, or must not, in the user's text and
//	                      the tool results since the last answer. If it does not hold, the script fails
//	agent = "…"           the turn is for the conversation whose first user text contains this, such as a subagent with
//	                      that word in its prompt. Turns without it serve every conversation that no agent fits
//
// A turn is over when it was delivered whole. A client that breaks off and asks the same again gets it again, streamed or
// not; one that breaks off and goes on (an interrupt) gets the next.
//
// A request too many is answered with status 400 and "sandboxrun script FILE ran out after N turns", which the CLI shows as
// its result; [Server.Err] tells. So is a request that is not as expected.
//
// # What is not a turn
//
// The CLI asks things beside the conversation: whether a model exists (max_tokens 1), how long a text is (count_tokens),
// for a title, for a summary when it compacts. These are answered with "ok", or "ok" in the form asked for, and use up
// nothing, unless a turn's agent fits their first text. [Server.Requests] lists them with their [Kind]. Some of them are
// only known for certain when the CLI believes that it talks to http://api.anthropic.com, where it marks them.
//
// Ids and usage depend on the script and the length of the conversation alone, so that a run repeats byte for byte.
package model
