package realserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// RenovateOptions say how Renovate is run.
type RenovateOptions struct {
	Options
	// Gitea is the server that Renovate works on.
	Gitea *Gitea
	// Repository is written owner/name.
	Repository string
	// Registry is the URL of the npm registry in which Renovate looks for updates; see [StartRegistry]. No
	// other address outside of Gitea is asked.
	Registry string
	// Env are further variables ("NAME=value"), which win over those of the harness: RENOVATE_TOKEN and
	// RENOVATE_DRY_RUN are given here, LOG_FORMAT and LOG_LEVEL are Renovate's own if they are not.
	Env []string
	// Line receives each line of the output as it comes. An error of it ends Renovate.
	Line func(line string) error
}

// Renovate runs Renovate on one repository until it ends, and returns its exit code. Nothing of the
// environment of this process reaches it but PATH, and what it keeps is below Options.Dir.
func Renovate(ctx context.Context, o RenovateOptions) (int, error) {
	var err error
	if o.Options, err = o.check(); err != nil {
		return 0, err
	}
	program, err := o.Builder.one(ctx, nameRenovate)
	if err != nil {
		return 0, err
	}
	base := filepath.Join(o.Dir, "renovate")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return 0, fmt.Errorf("run renovate: %w", err)
	}
	code, err := runLines(ctx, command{name: nameRenovate, path: program.Binary(), dir: base, env: o.environment(base)}, o.Line)
	if err != nil {
		return 0, fmt.Errorf("run renovate on %s: %w", o.Repository, err)
	}
	return code, nil
}

func (o RenovateOptions) environment(base string) []string {
	return append([]string{
		"RENOVATE_PLATFORM=gitea", "RENOVATE_ENDPOINT=" + o.Gitea.URL(),
		"RENOVATE_REPOSITORIES=" + o.Repository, "RENOVATE_BASE_DIR=" + base,
		"RENOVATE_GIT_AUTHOR=renovate <renovate@example.org>",
		"RENOVATE_NPMRC=registry=" + o.Registry,
		// It would ask elsewhere for these.
		"RENOVATE_FETCH_CHANGE_LOGS=off",
		// Built by a script that was not run; without this, every log begins with a warning about it.
		"RENOVATE_X_IGNORE_RE2=true",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "NO_COLOR=1",
	}, o.Env...)
}

// runLines runs a command to its end, hands on its output line by line and returns its exit code.
func runLines(ctx context.Context, c command, line func(string) error) (int, error) {
	// The kernel kills the program when the thread ends that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + c.dir}, c.env...)
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	failed := eachLine(out, line)
	if failed != nil {
		_ = cmd.Cancel()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case failed != nil:
		return 0, failed
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	}
	return 0, err
}

// eachLine reads lines of any length.
func eachLine(r io.Reader, line func(string) error) error {
	lines := bufio.NewReader(r)
	for {
		text, err := lines.ReadString('\n')
		if n := len(text); n > 0 && text[n-1] == '\n' {
			text = text[:n-1]
		}
		if err == nil || text != "" {
			if err := line(text); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
