package realserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startLimit bounds a start whose context has no earlier deadline. A server is up in seconds; the rest is
	// for a machine that is busy with something else.
	startLimit = 2 * time.Minute
	// stopLimit is how long a server may take to end by itself before it is killed.
	stopLimit = 10 * time.Second
	// pollInterval is the time between two looks at something awaited.
	pollInterval = 50 * time.Millisecond
)

// errNotRunning is returned when a process ended that should be up.
var errNotRunning = errors.New("the process ended by itself")

// command is what a process runs, the same at every start.
type command struct {
	name  string
	path  string
	args  []string
	env   []string // In addition to PATH and TMPDIR; nothing else is inherited.
	dir   string   // Working folder, also HOME.
	log   string   // File that receives the output of every start.
	ready func(context.Context) error
}

// process is a server program that can be started again after it ended.
type process struct {
	command
	mu      sync.Mutex
	current *run // The last start; nil before the first.
}

// run is one start of a process.
type run struct {
	cmd  *exec.Cmd
	done chan struct{} // Closed when the process is gone.
	err  error         // How it ended; set before done is closed.
}

// start runs the command and returns when it is ready. On an error nothing is left running.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && !isClosed(p.current.done) {
		return fmt.Errorf("start %s: it is running already", p.name)
	}
	r, err := p.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := r.waitReady(ctx, p.ready); err != nil {
		r.kill()
		return fmt.Errorf("start %s: %w\n%s", p.name, err, tail(p.log))
	}
	p.current = r
	return nil
}

// stop ends the process gracefully, and by force when it takes longer than stopLimit. It is a no-op on a
// process that does not run.
func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return
	}
	_ = p.current.cmd.Process.Signal(syscall.SIGTERM)
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-p.current.done:
	case <-limit.C:
	}
	p.current.kill()
}

// kill ends the process without warning and returns when it is gone.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.current.kill()
	}
}

// restart stops the process if it runs, and starts it again.
func (p *process) restart(ctx context.Context) error {
	p.stop()
	return p.start(ctx)
}

// pid returns the id of the running process, 0 when it does not run.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || isClosed(p.current.done) {
		return 0
	}
	return p.current.cmd.Process.Pid
}

// ended returns a channel that is closed when the last start has ended. The process must have been started.
func (p *process) ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.done
}

// launch starts the program. The goroutine that starts it also waits for it and keeps its thread, because
// the kernel's parent-death signal is about the thread that forked, not about the whole process.
func (p *process) launch() (*run, error) {
	if err := os.MkdirAll(filepath.Dir(p.log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = p.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + p.dir}, p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownGroup()

	r := &run{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = log.Close()
		started <- err
		if err != nil {
			return
		}
		r.err = cmd.Wait()
		// At once, while the number cannot mean another group yet: what the server left behind.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		close(r.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return r, nil
}

// kill ends the process with everything it started, and waits for it.
func (r *run) kill() {
	if !isClosed(r.done) {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-r.done
}

// waitReady asks again and again until ready returns nil, the process ends or ctx is done.
func (r *run) waitReady(ctx context.Context, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("%w: %w", errNotRunning, r.err)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (%w)", ctx.Err(), err)
		case <-time.After(pollInterval):
		}
	}
}

// runOnce runs a command to its end and returns its output.
func runOnce(ctx context.Context, c command) (string, error) {
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + c.dir}, c.env...)
	cmd.SysProcAttr = ownGroup()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c.name, err, lastLines(string(out), 20))
	}
	return string(out), nil
}

// answers returns a readiness check: a GET that is answered with 200.
func answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
			return fmt.Errorf("%s answered %s: %s", url, resp.Status, lastLines(string(body), 10))
		}
		return nil
	}
}

// tail returns the end of a log for an error message.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "no log: " + err.Error()
	}
	return "the end of " + path + ":\n" + lastLines(string(content), 20)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
