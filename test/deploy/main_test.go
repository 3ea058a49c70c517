//go:build e2e

package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"signalbox/test/realserver"
)

// root is the folder of the repository.
const root = "../.."

var (
	world *realserver.World
	// program is the path of the program as it is released.
	program string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "signalbox-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "bot")
	cmd := exec.CommandContext(context.Background(), "make", "-s", "-C", root, "build", "BOT="+program)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "make build: %v\n%s", err, out)
		return 1
	}
	return realserver.RunTests(m, realserver.WorldOptions{}, func(w *realserver.World) { world = w })
}

// patience is how long a test waits for what takes a moment on an idle machine.
const patience = time.Minute

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
