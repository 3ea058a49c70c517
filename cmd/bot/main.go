// Command bot is signalbox: a merge gate for people who run Kubernetes by
// GitOps with Gitea and Flux.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // The time zones of windows, where the system has none.
)

func main() { os.Exit(run()) }

func run() int {
	// The first signal ends the work in order; after it, the second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	err := newRoot().ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(os.Stderr, "signalbox:", err)
		return exitFailure
	}
}

// Exit codes. A check gives 0 for clear, 1 for waiting or blocked.
const (
	exitNotClear  = 1
	exitFailure   = 2
	exitUndecided = 2
)

// exitCode ends the program with a code, when all is said already.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
