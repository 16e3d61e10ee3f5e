// Package claude speaks the stream-json and control protocol of the Claude Code CLI over an [io.ReadWriteCloser]:
// what is written reaches the CLI's standard input, what is read is its standard output. It starts no process and
// knows nothing of sandboxes, so the same code serves a pipe, a socket and a conversation in a test file.
//
//	cmd := exec.Command("claude", opts.Args()...) // and conn over its two pipes
//	for event, err := range claude.Run(ctx, conn, opts, "fix the failing test") {
//		if err != nil {
//			return err // *StartupError, *ResultError, *NoResultError, …
//		}
//		answer.Add(event)
//	}
//	fmt.Println(answer.Text)
//
// [Session] is the same for several turns. Leaving a loop over events interrupts the turn.
//
// Expected of the CLI's environment: CLAUDE_CODE_SDK_READS_SESSION_STATE=1, so that the CLI says when it is idle;
// without it a turn ends a moment after its result.
//
// What this package does not protect against: everything the agent does. Permission answers are advice that the CLI
// follows for tools that it chooses to ask about; the wall around the process is somebody else's work. The CLI is
// not trusted to keep to the protocol: whatever it writes, memory is bounded and no wait outlives its context.
package claude
