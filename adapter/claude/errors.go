package claude

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrEnded is what a session is left with when the CLI has closed its output.
	ErrEnded = errors.New("claude has ended")
	// ErrInterrupted is the class of a *[ResultError] for a turn that an interrupt ended.
	ErrInterrupted = errors.New("turn interrupted")
	// ErrBusy is the error of a turn that begins while another one runs.
	ErrBusy = errors.New("a turn is running")
	// ErrNoStructured is the class of a turn that succeeded without the answer that [Options].Schema asks for.
	ErrNoStructured = errors.New("claude gave no answer of the form that the schema asks for")
)

// NotFoundError says that there is no CLI to start. This package does not look for one; whoever does returns this.
type NotFoundError struct {
	Path string // what was tried, empty for a search
	Err  error
}

func (e *NotFoundError) Error() string {
	return "Claude Code CLI not found. Install: npm install -g @anthropic-ai/claude-code"
}

func (e *NotFoundError) Unwrap() error { return e.Err }

// ProcessError says how the CLI's process ended. Whoever started the process makes it, around the error that the
// session ended with.
type ProcessError struct {
	ExitCode int
	Signal   string // empty unless a signal ended it
	Stderr   string // the tail, redacted; see [Tail]
	Err      error
}

func (e *ProcessError) Error() string {
	how := fmt.Sprintf("exit status %d", e.ExitCode)
	if e.Signal != "" {
		how = "signal " + e.Signal
	}
	if text := strings.TrimSpace(e.Stderr); text != "" {
		how += ": " + text
	}
	return "claude process ended with " + how
}

func (e *ProcessError) Unwrap() error { return e.Err }

// NoResultError says that the CLI's output ended in the middle of a turn.
type NoResultError struct {
	Err error // nil for a plain end of file
}

func (e *NoResultError) Error() string {
	if e.Err == nil {
		return "claude ended without a result"
	}
	return "claude ended without a result: " + e.Err.Error()
}

func (e *NoResultError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrEnded}
	}
	return []error{ErrEnded, e.Err}
}

// DecodeError says that a line of the CLI's output is no protocol frame.
type DecodeError struct {
	Line string // at most 200 bytes of its beginning, redacted
	Err  error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode output of claude: %v in %q", e.Err, e.Line)
}

func (e *DecodeError) Unwrap() error { return e.Err }

func newDecodeError(line []byte, err error) *DecodeError {
	head := Redact(string(line[:min(len(line), 4096)])) // before cutting, so that no half of a secret escapes
	return &DecodeError{Line: string(bytes.ToValidUTF8([]byte(head[:min(len(head), 200)]), nil)), Err: err}
}

// StartupError says that the CLI did not start as it was asked to. Nothing was sent to the model.
type StartupError struct {
	Step   string // initialize, version, permission mode, settings
	Reason string
	Err    error
}

func (e *StartupError) Error() string {
	text := "start claude: " + e.Step
	for _, part := range []string{e.Reason, errText(e.Err)} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

func (e *StartupError) Unwrap() error { return e.Err }

// ControlError says that the CLI refused a control request.
type ControlError struct {
	Subtype string
	Message string
	Code    string
}

func (e *ControlError) Error() string {
	return e.Subtype + " refused by claude: " + cmp.Or(e.Message, e.Code, "no reason given")
}

// ResultError says that a turn ended with an error, in the CLI's own words.
type ResultError struct {
	Subtype        string
	Errors         []string
	Text           string
	APIStatus      int // HTTP status of the model API, 0 if that was not the trouble
	TerminalReason string
	SessionID      string
}

func (e *ResultError) Error() string {
	if e.interrupted() {
		return ErrInterrupted.Error()
	}
	what := cmp.Or(e.Text, strings.Join(e.Errors, "; "), e.TerminalReason, e.Subtype, "no reason given")
	return "claude ended the turn with an error: " + what
}

// Is makes an interrupted turn match [ErrInterrupted].
func (e *ResultError) Is(target error) bool { return target == ErrInterrupted && e.interrupted() }

func (e *ResultError) interrupted() bool { return strings.HasPrefix(e.TerminalReason, "aborted_") }

// MaxTurnsError says that a turn used up [Options].MaxTurns.
type MaxTurnsError struct {
	Turns int // as the CLI counts: one more than the limit
	Err   *ResultError
}

func (e *MaxTurnsError) Error() string { return fmt.Sprintf("claude reached max turns (%d)", e.Turns) }

func (e *MaxTurnsError) Unwrap() error { return e.Err }

// BudgetError says that the session cost more than [Options].MaxBudgetUSD.
type BudgetError struct {
	CostUSD float64
	Err     *ResultError
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("claude reached the budget: %.4f USD spent", e.CostUSD)
}

func (e *BudgetError) Unwrap() error { return e.Err }

// ThrottleError says that the model API could not be used now; the same run may work later.
type ThrottleError struct {
	Kind     string // rate_limit, overloaded or timeout
	Attempts int    // calls to the API that failed, the CLI's own retries included
	Err      *ResultError
}

func (e *ThrottleError) Error() string {
	return fmt.Sprintf("model API unavailable (%s): %v", e.Kind, e.Err)
}

func (e *ThrottleError) Unwrap() error { return e.Err }

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
