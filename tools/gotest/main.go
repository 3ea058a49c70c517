// Command gotest runs "go test" with the arguments given, shows what go test
// shows, and closes with one line that counts the tests. Tests that were skipped
// are named with their reasons. Its exit code is that of go test.
//
// Usage: go run ./tools/gotest [FLAG...] [PACKAGE...]
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	// An interrupt from the terminal reaches go test too, which ends its tests;
	// what they said last is still to be shown.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s)
			case <-done:
				return
			}
		}
	}()

	count, readErr := show(os.Stdout, events)
	err = cmd.Wait()
	fmt.Println(count)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	case err != nil, readErr != nil:
		fmt.Fprintln(os.Stderr, "gotest:", errors.Join(err, readErr))
		return 2
	case count.failed > 0:
		return 1
	}
	return 0
}
