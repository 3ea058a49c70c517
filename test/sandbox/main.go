// Command sandbox starts everything that signalbox lives between, on this machine and without containers:
// Gitea, a Kubernetes API server, Flux, and signalbox itself, with a GitOps repository, four people and an
// open pull request. It prints addresses, accounts and what to try, and ends all of it on Ctrl-C.
//
// The first run builds the servers, which takes some 20 minutes on two cores; later runs take seconds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	dir := flags.String("dir", "", "new folder for data and logs, which is kept (default: a temporary one, which is removed)")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // The flag set has said why.
	}
	if flags.NArg() > 0 {
		return report(fmt.Errorf("it takes no arguments, got %q", flags.Args()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := start(ctx, os.Stdout, *dir)
	if err == nil {
		s.printGuide()
		err = s.serve(ctx, os.Stdin)
	}
	if ctx.Err() != nil {
		err = nil // Whatever failed did because of the interrupt.
	}
	s.say("\nending everything\n")
	return report(errors.Join(err, s.end(err == nil)))
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
	return 0
}
