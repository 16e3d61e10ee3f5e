// Package isolation turns a policy file into a value, and the value into what a sandboxed run needs: an environment, the
// agent's settings and, on hosts that can, a plan of namespaces and mounts that can be printed and started.
//
//	cfg, err := isolation.Load("api-only") // a preset by its name, a file by a slash or .toml
//	if err != nil {
//		return err // every line names file, line and key
//	}
//	for _, w := range cfg.Warnings() {
//		log.Print(w)
//	}
//	env, report := isolation.Environment(cfg, isolation.ClaudeCode, os.Environ(), nil)
//	settings, err := isolation.ClaudeSettings(cfg)
//
// A [Config] is inert data. Its zero value is the strictest policy, the same as a file that says version = 1 and nothing
// else: no network, nothing of the host's environment, a workspace whose changes stay inside. Fields only grant.
//
// [Load] refuses a policy that asks for something this release does not enforce, so that a key is either honoured or an
// error. It does not protect against a policy that grants too much: what a policy says is what the run may do, and
// [Config.Warnings] and [Explain] say what that is.
package isolation
