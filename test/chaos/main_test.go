//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"os"
	"testing"

	"signalbox/test/realserver"
	"signalbox/test/realserver/bot"
)

var (
	world *realserver.World
	// program is the path of the built signalbox.
	program string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "signalbox-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// With the race detector, so that the storms look for races too.
	if program, err = bot.Build(context.Background(), dir, "-race", "-tags", "goolm"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The test says how the objects of Flux are.
	return realserver.RunTests(m, realserver.WorldOptions{WithoutFlux: true}, func(w *realserver.World) { world = w })
}
