package realserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell returns a process that runs a script, and is ready when the script has created the file "ready".
func shell(t *testing.T, script string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{command: command{
		name: "script", path: "/bin/sh", args: []string{"-c", script}, dir: dir, log: filepath.Join(dir, "logs", "script.log"),
		ready: func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, "ready"))
			return err
		},
	}}
	t.Cleanup(p.kill)
	return p
}

// gone waits for the end of a process that is not a child of this one.
func gone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := poll(ctx, "wait for the end of the process", func() (bool, string) {
		// What ended and was not waited for yet is as gone as it can be here.
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return true, ""
		}
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), "it is there"
	}); err != nil {
		t.Error(err)
	}
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestStopEndsGracefullyAndTakesChildrenAlong(t *testing.T) {
	p := shell(t, `trap 'echo asked to end; exit 0' TERM; sleep 600 & echo $! >child; touch ready; wait`)
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	child := readPID(t, filepath.Join(p.dir, "child"))
	p.stop()
	if log := tail(p.log); !strings.Contains(log, "asked to end") {
		t.Errorf("it was not asked to end: %s", log)
	}
	gone(t, child)
	if p.pid() != 0 {
		t.Error("a stopped process has a process id")
	}
	p.stop() // Twice is fine.
}

func TestKillAndRestart(t *testing.T) {
	p := shell(t, `trap '' TERM; echo started; touch ready; sleep 600`)
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := p.pid()
	p.kill()
	gone(t, first)
	if err := p.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.pid() == first || p.pid() == 0 {
		t.Errorf("the process id after the restart is %d, before it was %d", p.pid(), first)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := poll(ctx, "wait for both starts in the log", func() (bool, string) {
		log := tail(p.log)
		return strings.Count(log, "started") == 2, log
	}); err != nil {
		t.Error(err)
	}
	if err := p.start(t.Context()); err == nil {
		t.Error("a second start of a running process succeeded")
	}
}

func TestStartReportsWhatTheServerSaid(t *testing.T) {
	p := shell(t, `echo the port is taken >&2; exit 3`)
	err := p.start(t.Context())
	if !errors.Is(err, errNotRunning) || !strings.Contains(err.Error(), "the port is taken") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

func TestStartGivesUpInTime(t *testing.T) {
	p := shell(t, `echo $$ >pid; sleep 600`)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := p.start(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	gone(t, readPID(t, filepath.Join(p.dir, "pid")))
}
