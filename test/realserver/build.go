package realserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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

// Build builds the named servers with the default [Builder]; without names it builds all of them.
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
		dir, err := b.ensure(ctx, r, filepath.Join(root, name), cache)
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
	fmt.Fprintf(w, format+"\n", args...)
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

func (b Builder) compile(ctx context.Context, r recipe, module, out string) error {
	version, err := goCommand(ctx, module, "list", "-mod=readonly", "-m", "-f", "{{.Version}}", r.module)
	if err != nil {
		return err
	}
	started := time.Now()
	b.say("building %s %s (first time: about %s on 2 cores)", r.name, version, r.cold)
	done := make(chan struct{})
	stopped := make(chan struct{})
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
	args := append([]string{"build", "-mod=readonly", "-buildvcs=false"}, r.flags(version)...)
	_, err = goCommand(ctx, module, append(args, "-o", filepath.Join(out, r.name), r.program)...)
	close(done)
	<-stopped
	if err != nil {
		return err
	}

	// Only now is the module sure to be on this machine.
	source, err := goCommand(ctx, module, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", r.module)
	if err != nil {
		return err
	}
	for _, folder := range r.folders {
		if err := os.CopyFS(filepath.Join(out, folder), os.DirFS(filepath.Join(source, folder))); err != nil {
			return fmt.Errorf("copy %s of %s: %w", folder, r.module, err)
		}
	}
	b.say("built %s in %s", r.name, time.Since(started).Round(time.Second))
	return nil
}

// goCommand runs the go command in a module's folder, outside of any workspace, and returns what it prints.
func goCommand(ctx context.Context, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+module)
	// Interrupted, the go command takes its compilers and its temporary folder with it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(complaints.String(), 40))
	}
	return strings.TrimSpace(out.String()), nil
}

// recipe says how one server is built.
type recipe struct {
	name    string   // Folder under test/servers, and file name of the program.
	module  string   // Module that the server comes from.
	program string   // Package of its main function.
	tags    string   // Build tags.
	linked  []string // Variables set by the linker; %s stands for the version without its v.
	folders []string // Folders of the module that are needed at run time.
	cold    string   // How long the first build takes on 2 cores.
}

// Names of the servers that can be built.
const (
	nameEtcd                = "etcd"
	nameGitea               = "gitea"
	nameKubeAPIServer       = "kube-apiserver"
	nameSourceController    = "source-controller"
	nameKustomizeController = "kustomize-controller"
)

// recipes returns how each server is built, the quick ones first.
func recipes() []recipe {
	return []recipe{
		{
			name: nameEtcd, module: "go.etcd.io/etcd/server/v3", program: "go.etcd.io/etcd/server/v3",
			cold: "a minute",
		},
		{
			// Without a version the SDK refuses to talk to the server.
			name: nameGitea, module: "code.gitea.io/gitea", program: "code.gitea.io/gitea",
			tags:    "sqlite sqlite_unlock_notify",
			linked:  []string{"main.Version=%s"},
			folders: []string{"options", "public", "templates"},
			cold:    "5 minutes",
		},
		{
			name: nameKubeAPIServer, module: "k8s.io/kubernetes", program: "k8s.io/kubernetes/cmd/kube-apiserver",
			linked: []string{"k8s.io/component-base/version.gitVersion=v%s"},
			cold:   "6 minutes",
		},
		{
			name: nameSourceController, module: "github.com/fluxcd/source-controller", program: "github.com/fluxcd/source-controller",
			folders: []string{crdFolder},
			cold:    "4 minutes",
		},
		{
			name: nameKustomizeController, module: "github.com/fluxcd/kustomize-controller", program: "github.com/fluxcd/kustomize-controller",
			folders: []string{crdFolder},
			cold:    "4 minutes",
		},
	}
}

// Names returns the names of all servers.
func Names() []string {
	var names []string
	for _, r := range recipes() {
		names = append(names, r.name)
	}
	return names
}

func recipeOf(name string) (recipe, error) {
	all := recipes()
	i := slices.IndexFunc(all, func(r recipe) bool { return r.name == name })
	if i < 0 {
		return recipe{}, fmt.Errorf("no server is named %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return all[i], nil
}

func (r recipe) flags(version string) []string {
	var flags []string
	if r.tags != "" {
		flags = append(flags, "-tags="+r.tags)
	}
	var link strings.Builder
	link.WriteString("-ldflags=-s -w")
	for _, variable := range r.linked {
		fmt.Fprintf(&link, " -X "+variable, strings.TrimPrefix(version, "v"))
	}
	return append(flags, link.String())
}

// key identifies everything that decides what a build yields.
func (r recipe) key(module string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, r.name, r.program, r.flags("v0"), r.folders)
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("read the module: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(content))
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
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
