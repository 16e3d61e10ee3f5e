package adapter_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sandboxrun/sandboxrun/adapter"
	"github.com/sandboxrun/sandboxrun/isolation"
)

// A whole run: the real Claude Code CLI, which is in PATH, works in a sandbox; a script answers in the model's place.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "greeting.txt"), []byte("goodbye\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	cfg, err := isolation.LoadWith("api-only", `model.source="script"`, `model.path="testdata/greeting.toml"`)
	if err != nil {
		log.Fatal(err)
	}
	res, err := adapter.Run(context.Background(), cfg, adapter.Task{Prompt: "make the greeting friendly", Workspace: dir, CLI: cli()})
	if err != nil {
		log.Fatal(err)
	}
	defer res.Close()
	fmt.Println(res.Answer.Text)
	for _, change := range res.Changes.List {
		fmt.Println(change.Kind, change.Path)
	}
	// Output:
	// The greeting is friendly now.
	// modified greeting.txt
}

// cli is the real CLI where scripts/prepare has put it, else the one in PATH.
func cli() string { return os.Getenv("SANDBOXRUN_CLAUDE") }
