package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// minVersion is the first CLI that keeps to a strict network allow list.
var minVersion = [3]int{2, 1, 219}

var errInitTimeout = errors.New("no answer in time")

// Info is what the CLI answers to initialize.
type Info struct {
	Version        string         `json:"claude_code_version"`
	PermissionMode PermissionMode `json:"current_permission_mode"`
	HookOnFailure  bool           `json:"hook_on_failure_supported"`
	PID            int            `json:"pid"` // in the CLI's own process namespace
}

// start opens the conversation. Every step must succeed: a CLI that is not as asked for runs nothing.
func (s *Session) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.InitTimeout, errInitTimeout)
	defer cancel()
	if err := s.initialize(ctx); err != nil {
		return err
	}
	if err := checkVersion(s.info.Version); err != nil {
		return &StartupError{Step: "version", Err: err}
	}
	if err := s.checkMode(); err != nil {
		return &StartupError{Step: "permission mode", Err: err}
	}
	return s.checkSettings(ctx)
}

func (s *Session) initialize(ctx context.Context) error {
	payload, err := s.Control(ctx, "initialize", s.opts.initialize())
	if err != nil {
		return s.startupError("initialize", err)
	}
	fill(payload, &s.info)
	return nil
}

// initialize holds what is too long or too private for the command line.
func (o Options) initialize() map[string]any {
	fields := map[string]any{"hooks": nil}
	if o.SystemPrompt != "" {
		fields["systemPrompt"] = []string{o.SystemPrompt}
	}
	if o.AppendSystemPrompt != "" {
		fields["appendSystemPrompt"] = o.AppendSystemPrompt
	}
	if o.Schema != nil {
		fields["jsonSchema"] = o.Schema
	}
	return fields
}

// startupError says why a first request had no good answer. A CLI that cannot start says so in a result and ends.
func (s *Session) startupError(step string, err error) error {
	if !s.gone() {
		return &StartupError{Step: step, Err: unnamed(err)}
	}
	for {
		e, last := s.events.take(context.Background()) // closes at once
		if last != nil {
			return &StartupError{Step: step, Err: noResult(last)}
		}
		if e.Result != nil && e.Result.IsError {
			return &StartupError{Step: step, Reason: e.Result.StartupFailure, Err: e.Result.Err()}
		}
	}
}

// unnamed takes the request's name off an error that will name it again.
func unnamed(err error) error {
	var refused *ControlError
	if errors.As(err, &refused) {
		return refused
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func checkVersion(version string) error {
	var v [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n != 3 {
		return fmt.Errorf("claude says its version is %q; need 2.1.219 or later", version)
	}
	for i, least := range minVersion {
		if v[i] != least {
			if v[i] < least {
				return fmt.Errorf("claude is %s; need 2.1.219 or later", version)
			}
			break
		}
	}
	return nil
}

// checkMode catches an environment or a managed setting that overrides the mode, which the CLI does without a word.
func (s *Session) checkMode() error {
	if got := s.info.PermissionMode; got != "" && got != s.opts.mode() {
		return fmt.Errorf("claude runs with %s instead of %s", got, s.opts.mode())
	}
	return nil
}

// checkSettings catches a settings file that the CLI dropped: one invalid value is enough, and it says so only here.
func (s *Session) checkSettings(ctx context.Context) error {
	payload, err := s.Control(ctx, "get_settings", nil)
	if err != nil {
		return s.startupError("settings", err)
	}
	var got struct {
		Effective json.RawMessage `json:"effective"`
		Errors    []struct {
			File    string `json:"file"`
			Path    string `json:"path"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	fill(payload, &got)
	if len(got.Errors) > 0 {
		e := got.Errors[0]
		return &StartupError{Step: "settings", Reason: fmt.Sprintf("%s: %s: %s", e.File, e.Path, Redact(e.Message))}
	}
	if s.opts.Settings == nil {
		return nil
	}
	lost, err := notInForce(s.opts.Settings, got.Effective)
	if err != nil {
		return &StartupError{Step: "settings", Err: err}
	}
	if len(lost) > 0 {
		return &StartupError{Step: "settings", Reason: "not in force: " + strings.Join(lost, ", ")}
	}
	return nil
}
