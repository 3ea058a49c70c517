// Command gotest runs "go test" with the arguments given, shows what go test
// shows, and closes with one line that counts the tests. Tests that were skipped
// are named with their reasons. Its exit code is that of go test.
//
// The packages that -alone names, by their folders, are tested without the race
// detector: in what only computes, on one goroutine, there is nothing to detect, and it
// makes that ten times slower.
//
// Usage: go run ./tools/gotest [-alone "FOLDER..."] [FLAG...] [PACKAGE...]
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	// An interrupt from the terminal reaches go test too, which ends its tests;
	// what they said last is still to be shown.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	runs, err := split(args, list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 2
	}
	var total count
	code := 0
	for _, args := range runs {
		c, failed := test(args, signals)
		total.passed, total.failed, total.skipped = total.passed+c.passed, total.failed+c.failed, total.skipped+c.skipped
		code = max(code, failed)
	}
	fmt.Println(total)
	if code == 0 && total.failed > 0 {
		return 1
	}
	return code
}

// split returns the arguments of each run of go test. Without -alone that is one. List
// returns the import paths of all packages of the module.
func split(args []string, list func() ([]string, error)) ([][]string, error) {
	if len(args) < 2 || args[0] != "-alone" {
		return [][]string{args}, nil
	}
	folders, args := strings.Fields(args[1]), args[2:]
	at := slices.Index(args, "./...")
	if at < 0 {
		return nil, errors.New("-alone needs ./... among the packages")
	}
	all, err := list()
	if err != nil {
		return nil, err
	}
	var alone, others []string
	for _, p := range all {
		if slices.ContainsFunc(folders, func(f string) bool { return strings.HasSuffix(p, "/"+f) }) {
			alone = append(alone, p)
		} else {
			others = append(others, p)
		}
	}
	if len(alone) != len(folders) {
		return nil, fmt.Errorf("of the folders %q of -alone %d are packages", folders, len(alone))
	}
	flags := slices.Delete(slices.Clone(args), at, at+1)
	plain := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "-race" })
	return [][]string{append(plain, alone...), append(flags, others...)}, nil
}

func list() ([]string, error) {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// test runs go test once, and returns its counts and its exit code.
func test(args []string, signals <-chan os.Signal) (count, int) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return count{}, 2
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

	c, readErr := show(os.Stdout, events)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return c, exit.ExitCode()
	case err != nil, readErr != nil:
		fmt.Fprintln(os.Stderr, "gotest:", errors.Join(err, readErr))
		return c, 2
	}
	return c, 0
}
