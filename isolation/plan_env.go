package isolation

import "fmt"

// The model API as the agent sees it: plain HTTP to the real host name, with a placeholder for a key. The gateway, which
// is all that this name leads to, adds the real key and speaks verified HTTPS. With this host name the CLI behaves as
// with the real one (CLI 2.1.329); the placeholder has the shape of a real key.
const (
	ModelHost        = "api.anthropic.com"
	ModelPlaceholder = "sk-ant-api03-sandboxrun-placeholder-the-real-key-is-added-outside-by-the-gateway-000000000000000000000000000AA"
)

// addEnv decides the environment: proxy variables for everything, the model's address and a placeholder for the agent.
func (p *Plan) addEnv(c *Config, h Host) {
	kind := AnyCommand
	base := proxyVariables()
	if _, ok := h.Paths[RoleAgent]; ok {
		kind = ClaudeCode
		base = append(base, Var{"ANTHROPIC_BASE_URL", "http://" + ModelHost}, Var{"ANTHROPIC_API_KEY", ModelPlaceholder},
			Var{"NODE_EXTRA_CA_CERTS", modelCAPath})
	}
	vars, report := Environment(c, kind, h.Env, base)
	p.Env, p.Dropped = Environ(vars), report.Dropped
}

// proxyVariables point at the gateway's socket in the sandbox's own network; what listens inside is reached directly.
func proxyVariables() []Var {
	proxy, direct := fmt.Sprintf("http://127.0.0.1:%d", proxyPort), "localhost,127.0.0.1,::1"
	return []Var{
		{"HTTP_PROXY", proxy}, {"HTTPS_PROXY", proxy}, {"http_proxy", proxy}, {"https_proxy", proxy},
		{"NO_PROXY", direct}, {"no_proxy", direct},
	}
}
