package isolation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Source says where a secret comes from. Exactly one field is set; in a policy a string is the Literal, and a table with
// one key is one of the others.
type Source struct {
	Literal Secret   `toml:"-"`
	Env     string   `toml:"env"`     // a variable of the host
	File    string   `toml:"file"`    // relative to the policy file
	Command []string `toml:"command"` // run without a shell, in the policy file's directory; its standard output
}

// maxSecret bounds what Resolve reads; the largest secrets in use are private keys of a few KiB.
const maxSecret = 64 << 10

// commandTimeout ends a source command that waits for someone at a keyboard.
const commandTimeout = 30 * time.Second

// UnmarshalText takes a string in a policy as the secret itself.
func (s *Source) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("the secret is empty; remove the key")
	}
	s.Literal = NewSecret(string(text))
	return nil
}

// String says where the secret comes from, never what it is.
func (s Source) String() string {
	switch s.kind() {
	case "env":
		return "the variable " + s.Env
	case "file":
		return "the file " + s.File
	case "command":
		return "the command " + s.Command[0]
	case "literal":
		return "the policy itself"
	}
	return "nowhere"
}

// kind names the one field that is set, or is "" for none or several.
func (s Source) kind() string {
	var set []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"literal", !s.Literal.IsZero()}, {"env", s.Env != ""}, {"file", s.File != ""}, {"command", len(s.Command) > 0}} {
		if f.set {
			set = append(set, f.name)
		}
	}
	if len(set) != 1 {
		return ""
	}
	return set[0]
}

// Resolve fetches the secret. Relative files and commands start in dir, "" being the current directory. One line end at
// the end is cut off. A missing variable or file, an empty secret and one with control characters, which could end a
// header early, are errors; none of them shows the secret. It waits for a command until ctx is done, at most 30 seconds.
func (s Source) Resolve(ctx context.Context, lookupEnv func(string) (string, bool), dir string) (Secret, error) {
	text, err := s.fetch(ctx, lookupEnv, dir)
	if err != nil {
		return Secret{}, err
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if text == "" {
		return Secret{}, fmt.Errorf("%s gives an empty secret", s)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Secret{}, fmt.Errorf("%s gives a secret with control characters", s)
	}
	return NewSecret(text), nil
}

func (s Source) fetch(ctx context.Context, lookupEnv func(string) (string, bool), dir string) (string, error) {
	switch s.kind() {
	case "literal":
		return s.Literal.Reveal(), nil
	case "env":
		text, ok := lookupEnv(s.Env)
		if !ok {
			return "", fmt.Errorf("%s is not set", s)
		}
		return text, nil
	case "file":
		return readSecret(resolveIn(dir, s.File))
	case "command":
		return runSecret(ctx, s.Command, dir)
	}
	return "", errors.New("the secret must come from exactly one of a string, env, file or command")
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	if len(text) > maxSecret {
		return "", fmt.Errorf("read secret: %s is larger than %d KiB", path, maxSecret>>10)
	}
	return string(text), nil
}

// runSecret keeps standard error out of the error, for a program may print there what it should not.
func runSecret(ctx context.Context, argv []string, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe open
	var out bytes.Buffer
	cmd.Stdout = &limited{w: &out, left: maxSecret}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run secret command %s: %w", argv[0], errors.Join(err, ctx.Err()))
	}
	return out.String(), nil
}

// limited passes on what fits and fails on the rest.
type limited struct {
	w    io.Writer
	left int
}

// Write fails once more than left bytes have come.
func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, fmt.Errorf("more than %d KiB of output", maxSecret>>10)
	}
	l.left -= len(p)
	return l.w.Write(p)
}

// resolveIn joins path to dir unless it is absolute.
func resolveIn(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// ResolveAPIKey fetches the key for the model API: api_key if the policy has one, else the host's ANTHROPIC_API_KEY. The
// zero Secret and no error mean that there is none; an empty variable counts as absent.
func (c *Config) ResolveAPIKey(ctx context.Context, lookupEnv func(string) (string, bool)) (Secret, error) {
	if c.APIKey == nil {
		text, _ := lookupEnv("ANTHROPIC_API_KEY")
		if text == "" {
			return Secret{}, nil
		}
		return Source{Env: "ANTHROPIC_API_KEY"}.Resolve(ctx, lookupEnv, "")
	}
	key, err := c.APIKey.Resolve(ctx, lookupEnv, c.Dir("api_key"))
	if err != nil {
		return Secret{}, fmt.Errorf("api_key: %w", err)
	}
	return key, nil
}
