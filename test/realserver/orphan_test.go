//go:build linux && !e2e

package realserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNothingOutlivesAKilledTest kills a test binary that has a server running.
func TestNothingOutlivesAKilledTest(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperHoldsAServer$")
	cmd.Env = append(os.Environ(), "HOLD_A_SERVER_IN="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "running %d\n", &pid); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed; that is its error.
	gone(t, pid)
}

// TestHelperHoldsAServer is the test binary that TestNothingOutlivesAKilledTest kills.
func TestHelperHoldsAServer(t *testing.T) {
	dir := os.Getenv("HOLD_A_SERVER_IN")
	if dir == "" {
		t.Skip("runs for TestNothingOutlivesAKilledTest only")
	}
	p := &process{command: command{
		name: "script", path: "/bin/sleep", args: []string{"600"}, dir: dir, log: filepath.Join(dir, "log"),
		ready: func(ctx context.Context) error { return nil },
	}}
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("running %d\n", p.pid())
	select {}
}
