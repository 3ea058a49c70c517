package realserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// cacheVariable names the environment variable that moves the cache of built servers.
const cacheVariable = "SIGNALBOX_SERVER_CACHE"

// Builder builds servers into a cache. The zero value is ready to use and safe for concurrent use, also
// from several processes: each server is built by one of them while the others wait.
type Builder struct {
	// Cache is the folder of built servers. Empty means $SIGNALBOX_SERVER_CACHE or, without it,
	// signalbox/servers in the user's cache folder.
	Cache string
	// Progress receives a line whenever something takes long. Nil means standard error.
	Progress io.Writer
}

// Build builds the named servers with the default [Builder]; without names it builds all servers of [Names].
func Build(ctx context.Context, names ...string) ([]Built, error) {
	return Builder{}.Build(ctx, names...)
}

// Built is a server in the cache.
type Built struct {
	// Name is the server's name, one of [Names].
	Name string
	// Dir holds the binary and the files that the server needs at run time. It is read-only.
	Dir string
}

// Binary returns the path of the server's program.
func (b Built) Binary() string { return filepath.Join(b.Dir, b.Name) }

// Build makes sure that the named servers are in the cache and returns where they are, in the order of
// names; without names it means all servers. What is missing is built, one server after another. A failed
// or cancelled build leaves nothing behind. The error of a failed build ends with the compiler's output.
func (b Builder) Build(ctx context.Context, names ...string) ([]Built, error) {
	if len(names) == 0 {
		names = Names()
	}
	cache, err := b.cache()
	if err != nil {
		return nil, err
	}
	root, err := serversFolder()
	if err != nil {
		return nil, err
	}
	built := make([]Built, 0, len(names))
	for _, name := range names {
		r, err := recipeOf(name)
		if err != nil {
			return nil, err
		}
		dir, err := b.ensure(ctx, r, filepath.Join(root, r.folder()), cache)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", name, err)
		}
		built = append(built, Built{Name: name, Dir: dir})
	}
	return built, nil
}

// one builds one server.
func (b Builder) one(ctx context.Context, name string) (Built, error) {
	built, err := b.Build(ctx, name)
	if err != nil {
		return Built{}, err
	}
	return built[0], nil
}

func (b Builder) cache() (string, error) {
	cache := b.Cache
	if cache == "" {
		cache = os.Getenv(cacheVariable)
	}
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a folder for built servers (set %s to choose one): %w", cacheVariable, err)
		}
		cache = filepath.Join(user, "signalbox", "servers")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return "", fmt.Errorf("find the folder for built servers: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create the folder for built servers: %w", err)
	}
	return cache, nil
}

func (b Builder) say(format string, args ...any) {
	w := b.Progress
	if w == nil {
		w = os.Stderr
	}
	_, _ = fmt.Fprintf(w, format+"\n", args...) // Nobody is told that nobody can be told.
}

// ensure returns the folder of the recipe's server in the cache, building it when it is not there. The
// lock keeps two processes from doing the same work; the rename at the end is what makes it safe.
func (b Builder) ensure(ctx context.Context, r recipe, module, cache string) (string, error) {
	key, err := r.key(module)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, r.name+"-"+key)
	if exists(dir) {
		return dir, nil
	}

	lock := flock.New(filepath.Join(cache, r.name+".lock"))
	held, err := lock.TryLock()
	if err != nil {
		return "", fmt.Errorf("lock the cache: %w", err)
	}
	if !held {
		b.say("waiting for another process that builds %s", r.name)
		if _, err := lock.TryLockContext(ctx, 250*time.Millisecond); err != nil {
			return "", fmt.Errorf("wait for another process that builds it: %w", err)
		}
	}
	defer func() { _ = lock.Unlock() }()
	if exists(dir) {
		return dir, nil
	}

	work, err := os.MkdirTemp(cache, ".building-"+r.name+"-")
	if err != nil {
		return "", fmt.Errorf("create a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := b.compile(ctx, r, module, work); err != nil {
		return "", err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return "", fmt.Errorf("open the built server to other accounts: %w", err)
	}
	if err := os.Rename(work, dir); err != nil {
		return "", fmt.Errorf("put the built server into the cache: %w", err)
	}
	return dir, nil
}

// compile fills out, and says so before and after, and every minute in between.
func (b Builder) compile(ctx context.Context, r recipe, module, out string) error {
	version, err := r.version(ctx, module)
	if err != nil {
		return err
	}
	started := time.Now()
	b.say("building %s %s (first time: about %s on 2 cores)", r.name, version, r.cold)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				b.say("still building %s (%s)", r.name, time.Since(started).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	err = r.build(ctx, module, version, out)
	close(done)
	<-stopped
	if err != nil {
		return err
	}
	b.say("built %s in %s", r.name, time.Since(started).Round(time.Second))
	return nil
}

// goCommand runs the go command in a module's folder, outside of any workspace, and returns what it prints.
func goCommand(ctx context.Context, module string, args ...string) (string, error) {
	return toolCommand(ctx, module, []string{"GOWORK=off"}, "go", args...)
}

// toolCommand runs a build tool in a folder and returns what it prints.
func toolCommand(ctx context.Context, dir string, env []string, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PWD="+dir), env...)
	// Interrupted, a tool takes its children and its temporary files with it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("%s %s: %w\n%s", tool, args[0], err, lastLines(complaints.String(), 40))
	}
	return strings.TrimSpace(out.String()), nil
}

// serversFolder finds test/servers from the working folder upwards, so that it works for tests (which run
// in their package's folder) and for go run anywhere in the repository.
func serversFolder() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module signalbox\n") {
			return filepath.Join(dir, "test", "servers"), nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("find the repository: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: no go.mod of module signalbox in %s or above; run this inside a clone", start)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
