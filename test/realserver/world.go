package realserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
)

// WorldOptions are the options of a [World]. The zero value is a world in a temporary folder.
type WorldOptions struct {
	// Dir is where the servers keep their data and logs. Empty means a temporary folder that
	// [World.Discard] removes.
	Dir string
	// Gitea holds further options for Gitea; its Options are ignored.
	Gitea GiteaOptions
	// WithoutFlux leaves the controllers and their CustomResourceDefinitions out.
	WithoutFlux bool
	// Builder provides the programs.
	Builder Builder
}

// World is a Gitea, a cluster and the Flux that connects them, for all tests of a test binary. Tests keep
// out of each other's way by names: see [World.Name].
type World struct {
	Gitea *Gitea
	Kube  *Kube
	Flux  *Flux // Nil in a world without.
	Dir   string

	temporary bool
	stop      sync.Once
	names     atomic.Int64
	mu        sync.Mutex
	users     map[string]User
}

// StartWorld builds what is missing and starts all servers. On an error nothing is left running, and the
// error says where the logs are.
func StartWorld(ctx context.Context, o WorldOptions) (*World, error) {
	programs := []string{nameEtcd, nameKubeAPIServer, nameGitea}
	if !o.WithoutFlux {
		programs = append(programs, nameSourceController, nameKustomizeController)
	}
	if _, err := o.Builder.Build(ctx, programs...); err != nil {
		return nil, err
	}
	w := &World{Dir: o.Dir, users: map[string]User{}}
	if w.Dir == "" {
		dir, err := os.MkdirTemp("", "signalbox-world-")
		if err != nil {
			return nil, fmt.Errorf("start a world: %w", err)
		}
		w.Dir, w.temporary = dir, true
	}
	options := func(name string) Options { return Options{Dir: filepath.Join(w.Dir, name), Builder: o.Builder} }

	group, starting := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		gitea := o.Gitea
		gitea.Options = options("gitea")
		w.Gitea, err = StartGitea(starting, gitea)
		return err
	})
	group.Go(func() (err error) {
		if w.Kube, err = StartKube(starting, options("kube")); err != nil || o.WithoutFlux {
			return err
		}
		w.Flux, err = StartFlux(starting, w.Kube, options("flux"))
		return err
	})
	if err := group.Wait(); err != nil {
		w.Stop()
		return nil, fmt.Errorf("start a world in %s: %w", w.Dir, err)
	}
	return w, nil
}

// Stop ends all servers. It may be called more than once.
func (w *World) Stop() {
	w.stop.Do(func() {
		var all sync.WaitGroup
		all.Go(func() {
			if w.Flux != nil {
				w.Flux.Stop()
			}
			if w.Kube != nil {
				w.Kube.Stop()
			}
		})
		all.Go(func() {
			if w.Gitea != nil {
				w.Gitea.Stop()
			}
		})
		all.Wait()
	})
}

// Discard stops the world and removes its data and logs, if they are in a temporary folder.
func (w *World) Discard() error {
	w.Stop()
	if !w.temporary {
		return nil
	}
	return os.RemoveAll(w.Dir)
}

// User returns the account with that name, and creates it when it is asked for first.
func (w *World) User(ctx context.Context, name string) (User, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, ok := w.users[name]; ok {
		return u, nil
	}
	u, err := w.Gitea.CreateUser(ctx, name)
	if err != nil {
		return User{}, err
	}
	w.users[name] = u
	return u, nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Name returns a name that no other test has, made from the test's: for an organisation, a repository, a
// namespace or a user. It has at most 35 characters.
func (w *World) Name(t testing.TB) string {
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	name = notInNames.ReplaceAllString(name, "-")
	return fmt.Sprintf("%s-%d", strings.Trim(name[:min(len(name), 28)], "-"), w.names.Add(1))
}

// RunTests starts a world, hands it to use and runs the tests; it is what a TestMain needs, which passes
// the result to os.Exit. Data and logs are removed when all tests pass, and kept with a note of where they
// are otherwise. An interrupt stops the world before it ends the test binary.
func RunTests(m *testing.M, o WorldOptions, use func(*World)) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	w, err := StartWorld(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	finished := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
			w.Stop()
			fmt.Fprintf(os.Stderr, "interrupted; logs are in %s\n", w.Dir)
			cancel() // From here on a signal does what it does without us.
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		case <-finished:
		}
	})
	use(w)
	code := m.Run()
	close(finished)
	watch.Wait()
	if code != 0 {
		w.Stop()
		fmt.Fprintf(os.Stderr, "data and logs of the servers are in %s\n", w.Dir)
		return code
	}
	if err := w.Discard(); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(errors.New("remove the data of the servers"), err))
	}
	return code
}
