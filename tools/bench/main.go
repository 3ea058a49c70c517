// Command bench runs the benchmarks of the module, shows what go test shows, and, where
// all of them ran and none failed, writes what they measured into a document, with the
// machine and the date. Its exit code is that of go test.
//
// Usage: go run ./tools/bench [-write FILE] [FLAG...] [PACKAGE...]
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var file string
	if len(args) > 1 && args[0] == "-write" {
		file, args = args[1], args[2:]
	}
	// An interrupt from the terminal reaches go test too, which ends its work.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	var out bytes.Buffer
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"test", "-run", "^$"}, args...)...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &out), os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	if file == "" {
		return 0
	}
	if err := write(file, out.Bytes(), machine(time.Now())); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// machine says what the figures were measured on, and when.
func machine(now time.Time) string {
	return fmt.Sprintf("%s, %d processors of %s, %s of memory, %s on %s",
		now.UTC().Format(time.DateOnly), runtime.NumCPU(), field("/proc/cpuinfo", "model name"), memory(), runtime.Version(), runtime.GOOS)
}

// field returns what a file in the form of Linux says of something.
func field(path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() string {
	kilobytes, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"))
	if err != nil {
		return "an unknown size"
	}
	return fmt.Sprintf("%.0f GiB", float64(kilobytes)/(1<<20))
}
