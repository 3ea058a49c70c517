//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"signalbox/test/realserver"
)

var (
	world *realserver.World
	// program is the path of the built signalbox.
	program string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	// What runs side by side waits for most of its time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "signalbox-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "bot")
	if err := build(context.Background(), program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return realserver.RunTests(m, realserver.WorldOptions{}, func(w *realserver.World) { world = w })
}

// build builds the program with the race detector, so that the tests look for
// races too.
func build(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-race", "-o", path, "signalbox/cmd/bot")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build signalbox: %w\n%s", err, out)
	}
	return nil
}
