package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// init takes the process over when it was started as a stage. It runs before any package that imports this one is
// initialised, so that a stage costs little and nothing of the importing program runs in it.
func init() {
	switch filepath.Base(os.Args[0]) {
	case ZeroName:
		becomeZero()
	case InitName:
		becomeInit()
	}
}

// exitStage is the status of a stage that could not do its work; the reason went to the runner.
const exitStage = 125

// fail reports err of one step to the runner and ends the stage.
func fail(c *Control, stage, step string, err error) {
	report := &StageError{Stage: stage, Step: step, Text: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		report.Errno = int(errno)
	}
	if c.Send(Message{Error: report}) != nil {
		fmt.Fprintln(os.Stderr, report)
	}
	syscall.Exit(exitStage)
}

// readOrders decodes the memfd f, from its start, into orders.
func readOrders(f *os.File, orders any) error {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil && err != io.EOF {
		return err
	}
	return json.Unmarshal(data, orders)
}
