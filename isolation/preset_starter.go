package isolation

// Starter is a commented policy to begin with; it passes Load as it is.
const Starter = `# A policy for sandboxrun. Check it with:  sandboxrun policy check sandboxrun.toml
# What it grants, in sentences:            sandboxrun policy explain ./sandboxrun.toml
# Every key there is:                      sandboxrun policy schema
version = 1
description = "what this policy is for"

# Everything of a preset (see: sandboxrun policy list) and then what stands below. Lists replace, tables merge.
extends = "api-only"

# Variables of the host to let through, by name or glob. Secret-like names need naming exactly.
pass_env = ["LC_*"]

# The model API's key; it stays outside the sandbox. Without this line: the host's ANTHROPIC_API_KEY.
# api_key = { file = "anthropic.key" }

# More variables inside.
[env]
# CI = "1"

[network_policy]
# "host", "*.host" for its subdomains, "host:port". A list replaces that of the preset.
allowed_domains = ["api.anthropic.com"]
# denied_domains = []
# allowed_ports = [443]

[sandbox]
# Host paths beyond the workspace; relative ones start at the workspace.
# readable_paths = ["/opt/toolchain"]
# writable_paths = ["../shared-cache"]

[limits]
wall_time = "1h"
# pids = 1024
# disk = "2GiB"

[agent]
# model = "` + DefaultModel + `"
# max_turns = 50
# max_budget_usd = 5.0
# disallowed_tools = ["WebSearch"]
`
