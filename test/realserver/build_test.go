package realserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lines collects progress of several builders.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tinyModule writes a module with one program and returns its folder and recipe.
func tinyModule(t *testing.T, source string) (string, recipe) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.org/tiny\n\ngo 1.26\n", "go.sum": "", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, recipe{name: "tiny", module: "example.org/tiny", program: "example.org/tiny", cold: "a moment"}
}

func TestTwoBuildersBuildOnce(t *testing.T) {
	module, r := tinyModule(t, "package main\n\nfunc main() {}\n")
	cache := t.TempDir()
	var progress lines
	var both sync.WaitGroup
	dirs := make([]string, 2)
	for i := range dirs {
		both.Go(func() {
			var err error
			if dirs[i], err = (Builder{Progress: &progress}).ensure(t.Context(), r, module, cache); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if n := strings.Count(progress.String(), "building tiny"); n != 1 {
		t.Errorf("built %d times, want once:\n%s", n, progress.String())
	}
	if dirs[0] != dirs[1] {
		t.Errorf("the builders found different folders: %v", dirs)
	}
	if _, err := os.Stat(Built{Name: "tiny", Dir: dirs[0]}.Binary()); err != nil {
		t.Error(err)
	}
}

func TestFailedBuildLeavesNothingBehind(t *testing.T) {
	module, r := tinyModule(t, "package main\n\nfunc main() { missing() }\n")
	cache := t.TempDir()
	_, err := Builder{Progress: &lines{}}.ensure(t.Context(), r, module, cache)
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("the error does not end with the compiler's words: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(cache, ".b*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(left, hidden...) {
		if filepath.Base(path) != "tiny.lock" {
			t.Errorf("left behind: %s", path)
		}
	}
}

func TestBuildCanBeCancelled(t *testing.T) {
	module, r := tinyModule(t, "package main\n\nfunc main() {}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Builder{Progress: &lines{}}).ensure(ctx, r, module, t.TempDir()); err == nil {
		t.Error("a cancelled build succeeded")
	}
}

func TestBuildUnknownServer(t *testing.T) {
	_, err := Builder{Cache: t.TempDir()}.Build(t.Context(), "gitae")
	if err == nil || !strings.Contains(err.Error(), `no server is named "gitae"; there are etcd, nats-server, dendrite, gitea,`) {
		t.Errorf("got %v", err)
	}
}

func TestKeyFollowsWhatDecidesTheBuild(t *testing.T) {
	module, r := tinyModule(t, "")
	key := func(r recipe) string {
		t.Helper()
		k, err := r.key(module)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	before := key(r)
	if again := key(r); again != before {
		t.Errorf("the same module has two keys, %s and %s", before, again)
	}
	tagged := r
	tagged.tags = "sqlite"
	if key(tagged) == before {
		t.Error("the key does not depend on the flags")
	}
	if err := os.WriteFile(filepath.Join(module, "go.sum"), []byte("example.org/x v1.0.0 h1:x=\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if key(r) == before {
		t.Error("the key does not depend on go.sum")
	}
}

// TestEveryRecipeHasItsModule reads what Build would read before it builds.
func TestEveryRecipeHasItsModule(t *testing.T) {
	root, err := serversFolder()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes() {
		if r.module == "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, r.folder(), "go.mod"))
		if err != nil {
			t.Error(err)
			continue
		}
		if want := "tool " + r.program; r.program != "" && !strings.Contains(string(content), want+"\n") {
			t.Errorf("go.mod of %s does not say %q", r.name, want)
		}
	}
}
