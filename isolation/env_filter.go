package isolation

import "strings"

// screen returns why a host variable stays outside, or "". A policy that names it exactly vouches for it: then only the
// floor, the names that are sandboxrun's own, and those that could turn the sandbox's programs stop it.
func screen(name, value string, exact bool) Reason {
	upper := strings.ToUpper(name)
	switch {
	case isFloorName(upper):
		return ReasonFloor
	case strings.HasPrefix(upper, "BASH_FUNC_") || strings.HasPrefix(value, "() {"):
		return ReasonFunction
	case isProxy(upper):
		return ReasonProxy
	case isReserved(upper):
		return reservedReason(upper)
	case !isVariable(name):
		return ReasonMalformed
	case exact:
		return ""
	case ownNames.has(upper):
		return ReasonOwn
	case hookNames.has(upper):
		return ReasonHook
	case serviceNames.has(upper):
		return ReasonService
	case isSecretName(upper):
		return ReasonName
	case isSecretValue(value):
		return ReasonValue
	}
	return ""
}

func reservedReason(upper string) Reason {
	if hookNames.has(upper) {
		return ReasonHook
	}
	return ReasonOwn
}

// names is a set of names, each a word, or a prefix when it ends in *.
type names []string

func (n names) has(upper string) bool {
	for _, pattern := range n {
		if prefix, ok := strings.CutSuffix(pattern, "*"); upper == pattern || ok && strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return false
}

// isFloorName knows the names that no policy lets through from the host.
func isFloorName(name string) bool { return floorNames.has(strings.ToUpper(name)) }

// isReserved knows the names that neither [env] nor pass_env may set, in any case: they move the agent's home, load
// code into every program inside, or lead around the gateway.
func isReserved(name string) bool {
	return reservedNames.has(strings.ToUpper(name))
}

func isProxy(upper string) bool { return upper == "PROXY" || strings.HasSuffix(upper, "_PROXY") }

var floorNames = names{"HOME*", "CLAUDE_*", "CLAUDECODE", "ANTHROPIC_*", "AWS_*", "GOOGLE_*"}

var reservedNames = names{
	"HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "XDG_*", "LD_*", "DYLD_*", "GLIBC_TUNABLES",
	"NODE_OPTIONS", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "BASH_FUNC_*",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY", "SOCKS_PROXY", "WS_PROXY", "WSS_PROXY",
	"NPM_CONFIG_PROXY", "NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_NOPROXY",
	"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB",
	"ANTHROPIC_BASE_URL", "ANTHROPIC_UNIX_SOCKET",
}

// ownNames describe the host's session and machine; the sandbox has its own.
var ownNames = names{
	"PATH", "USER", "USERNAME", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "TEMPDIR", "PWD", "OLDPWD", "SHLVL", "_",
	"HOSTNAME", "HOST", "MAIL", "XDG_*", "IS_SANDBOX", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER",
	"DISABLE_ERROR_REPORTING",
}

// hookNames make programs load code, run commands, or read their configuration and trust from elsewhere.
var hookNames = names{
	// The dynamic loader, the C library, name resolution.
	"LD_*", "DYLD_*", "GLIBC_TUNABLES", "MALLOC_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "LOCALDOMAIN",
	"RES_OPTIONS", "RESOLV_*", "NIS_PATH", "TZDIR", "GETCONF_DIR",
	// Shells.
	"BASH_*", "BASHOPTS", "ENV", "SHELLOPTS", "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "IFS", "CDPATH",
	"GLOBIGNORE",
	"ZDOTDIR", "FPATH", "INPUTRC", "HISTFILE",
	// Languages.
	"NODE_*", "BUN_*", "DENO_*", "TS_NODE_*", "PYTHON*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "LUA_*", "PHP*",
	"R_*", "RUSTC*",
	"RUSTUP_*", "RUSTFLAGS", "RUSTDOC*", "CARGO_*", "GOFLAGS", "GOENV", "GOROOT", "GOTOOLDIR", "GOTOOLCHAIN", "GOPROXY",
	"GOAUTH", "GONOSUMDB", "GONOSUMCHECK", "GOSUMDB", "GOPRIVATE", "CGO_*",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "CLASSPATH", "MAVEN_*", "GRADLE_*",
	"SBT_*", "JVM_*",
	"DOTNET_*", "COMPLUS_*", "CORECLR_*", "COR_*", "NUGET_*", "TCLLIBPATH", "ERL_*", "ELIXIR_*", "OCAML*", "GUILE_*",
	// Builds and packages.
	"MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "CC", "CXX", "CPP", "LD", "AR", "CFLAGS", "CXXFLAGS", "CPPFLAGS",
	"LDFLAGS", "CMAKE_*",
	"PKG_CONFIG*", "NPM_*", "YARN_*", "PNPM_*", "PIP_*", "UV_*", "POETRY_*", "CONDA_*", "HOMEBREW_*", "NIX_*", "GUIX_*",
	// Programs that other programs start.
	"GIT_*", "SSH_*", "SUDO_*", "*_ASKPASS", "ASKPASS", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER",
	"LESS*", "VIMINIT",
	"EXINIT", "MYVIMRC", "EMACS*", "GDB*", "CURL_*", "WGETRC", "RSYNC_*", "TAR_OPTIONS", "SED_*", "GREP_OPTIONS",
	"FZF_*", "RIPGREP_*",
	"DIRENV_*", "TERMINFO*", "TERMCAP", "GTK_*", "QT_*", "GIO_*", "GST_*", "MESA_*", "VK_*",
	// Trust.
	"SSL_*", "SSLKEYLOGFILE", "OPENSSL_*", "REQUESTS_CA_BUNDLE", "GNUTLS_*",
}

// serviceNames lead to accounts, agents and services of the host.
var serviceNames = names{
	"AZURE_*", "ARM_*", "GCP_*", "GCLOUD_*", "CLOUDSDK_*", "DIGITALOCEAN_*", "LINODE_*", "HCLOUD_*",
	"CLOUDFLARE_*", "CF_*", "FLY_*",
	"HEROKU_*", "VERCEL_*", "NETLIFY_*", "ALICLOUD_*", "ALIBABA_*", "TENCENTCLOUD_*", "OCI_*", "IBMCLOUD_*", "SCW_*",
	"OPENAI_*", "GEMINI_*", "MISTRAL_*", "COHERE_*", "GROQ_*", "HF_*", "HUGGING*", "OPENROUTER_*", "DEEPSEEK_*", "XAI_*",
	"PERPLEXITY_*", "TOGETHER_*", "REPLICATE_*", "FIREWORKS_*", "CODEX_*", "CURSOR_*", "COPILOT_*", "LANGCHAIN_*",
	"LANGSMITH_*",
	"VAULT_*", "CONSUL_*", "NOMAD_*", "TF_*", "PULUMI_*", "ANSIBLE_*", "OP_*", "BW_*", "DOPPLER_*", "INFISICAL_*",
	"SOPS_*",
	"KUBECONFIG", "KUBE*", "DOCKER_*", "CONTAINER_*", "BUILDKIT_*", "REGISTRY_*", "PODMAN_*", "HELM_*",
	"DATABASE_*", "DB_*", "PG*", "POSTGRES*", "MYSQL*", "MARIADB*", "REDIS*", "MONGO*", "ELASTIC*", "RABBITMQ_*",
	"AMQP_*", "KAFKA_*",
	"SENTRY_*", "DATADOG_*", "DD_*", "NEW_RELIC_*", "SLACK_*", "TWILIO_*", "STRIPE_*", "SENDGRID_*", "MAILGUN_*",
	"SMTP_*",
	"GITHUB_*", "GH_*", "GITLAB_*", "BITBUCKET_*", "GITEA_*", "ACTIONS_*", "RUNNER_*", "CI_*", "BUILDKITE_*",
	"CIRCLE_*", "JENKINS_*",
	"TRAVIS_*", "SYSTEM_*", "TWINE_*", "SNYK_*", "SONAR_*", "CODECOV_*", "OTEL_EXPORTER_*",
	"GPG_*", "GNUPG*", "KRB5*", "DBUS_*", "DISPLAY", "WAYLAND_*", "XAUTHORITY", "ICEAUTHORITY", "GNOME_*",
	"PULSE_*", "PIPEWIRE_*",
	"LISTEN_*", "NOTIFY_*", "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_*", "CREDENTIALS_DIRECTORY", "TMUX*",
	"STY", "WINDOW*",
	"VSCODE_*", "IDEA_*", "JETBRAINS_*", "NVIM*", "WSL_*", "WSLENV",
}
