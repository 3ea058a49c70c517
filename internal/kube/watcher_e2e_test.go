//go:build e2e

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"signalbox/internal/fact"
	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// world has Flux at work; what breaks an API server starts one of its own.
var world *realserver.World

func TestMain(m *testing.M) {
	os.Exit(realserver.RunTests(m, realserver.WorldOptions{}, func(w *realserver.World) { world = w }))
}

// limit returns a context that ends before the test's patience does.
func limit(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// ownKube starts an API server for this test alone.
func ownKube(ctx context.Context, t *testing.T) *realserver.Kube {
	t.Helper()
	k, err := realserver.StartKube(ctx, realserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	return k
}

// watchReal runs a watcher until the test ends.
func watchReal(t *testing.T, cfg Config) *fakeSink {
	t.Helper()
	s, _ := watchRealWishes(t, cfg, nil)
	return s
}

// watchRealWishes is watchReal with wishes of the start.
func watchRealWishes(t *testing.T, cfg Config, wishes []fact.Wish) (*fakeSink, *Watcher) {
	t.Helper()
	s := newFakeSink()
	cfg.Cluster = "prod"
	w, err := New(cfg, s, slog.New(slog.NewTextHandler(t.Output(), nil)), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if wishes != nil {
		w.Wish(wishes)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return s, w
}

// idle lets time pass in which something must not happen.
func idle(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func as(t *testing.T, a realserver.Access) Config {
	t.Helper()
	cfg, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	return Config{REST: cfg}
}

// until waits until met says "", and reports how long it took.
func until(ctx context.Context, t *testing.T, what string, met func() string) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		why := met()
		if why == "" {
			d := time.Since(start)
			t.Logf("%-55s %6.2fs", what, d.Seconds())
			return d
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %s", what, why)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// inState is met when each of the kinds is in a state, with a part of its
// message.
func inState(s *fakeSink, state fact.WatchState, message string, kinds ...string) func() string {
	return func() string {
		for _, k := range kinds {
			if w := s.watch(k); w.State != state || !strings.Contains(w.Message, message) {
				return fmt.Sprintf("the watch on %s is %s: %s", k, w.State, w.Message)
			}
		}
		return ""
	}
}

// installed are the kinds whose definitions the harness installs.
var installed = []string{"kustomization", "gitrepository", "ocirepository", "helmrepository", "helmchart", "bucket"}

const bare = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: default}
spec: {interval: 10m, path: %s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`

// path is met when the fact of a bare Kustomization has a path.
func path(s *fakeSink, name, want string) func() string {
	return func() string {
		f := s.object("kustomization", "default", name)
		if f.Absent || f.Flux == nil || f.Flux.Path != want {
			return fmt.Sprintf("the fact of %s is %+v %+v", name, f, f.Flux)
		}
		return ""
	}
}

func gone(s *fakeSink, name string) func() string {
	return func() string {
		if f := s.object("kustomization", "default", name); !f.Absent {
			return fmt.Sprintf("the fact of %s is %+v", name, f)
		}
		return ""
	}
}

func heard(s *fakeSink) func() string {
	return func() string {
		if s.heard() == 0 {
			return "no heartbeat"
		}
		return ""
	}
}

func TestRealKindsComeAndGo(t *testing.T) {
	ctx := limit(t, 3*time.Minute)
	k := ownKube(ctx, t)
	s := watchReal(t, Config{Kubeconfig: k.Kubeconfig(), Context: "admin"})
	until(ctx, t, "not installed", inState(s, fact.WatchNotInstalled, "", installed...))
	var b realserver.Builder
	for range 2 {
		if err := realserver.InstallFluxCRDs(ctx, k, b); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "installed", inState(s, fact.WatchSynced, "", installed...))
		until(ctx, t, "not installed: helm", inState(s, fact.WatchNotInstalled, "helmreleases.helm.toolkit.fluxcd.io", "helmrelease"))
		if err := k.Apply(ctx, fmt.Appendf(nil, bare, "apps", "./a")); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "created", path(s, "apps", "./a"))
		if err := realserver.RemoveFluxCRDs(ctx, k, b); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "removed", inState(s, fact.WatchNotInstalled, "", installed...))
		until(ctx, t, "absent", gone(s, "apps"))
	}
	for _, w := range s.written(fact.ClusterKey("prod")) {
		for kind, state := range w.Cluster.Kinds {
			if state.State == fact.WatchFailing {
				t.Errorf("the watch on %s was failing on the way: %s", kind, state.Message)
			}
		}
	}
}

func TestRealLeastPrivilege(t *testing.T) {
	ctx := limit(t, 4*time.Minute)
	k := ownKube(ctx, t)
	if err := realserver.InstallFluxCRDs(ctx, k, realserver.Builder{}); err != nil {
		t.Fatal(err)
	}
	rules, err := yaml.Marshal(RequiredRules())
	if err != nil {
		t.Fatal(err)
	}
	role := fmt.Appendf(nil, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: signalbox}
rules:
%s`, rules)
	binding := []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: signalbox}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: signalbox}
subjects: [{kind: ServiceAccount, name: signalbox, namespace: default}]
`)
	account := []byte("{apiVersion: v1, kind: ServiceAccount, metadata: {name: signalbox, namespace: default}}")
	for _, m := range [][]byte{account, role, fmt.Appendf(nil, bare, "apps", "./a")} {
		if err := k.Apply(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	access, err := k.ServiceAccount(ctx, "default", "signalbox")
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := realserver.NewProxy(k.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	s := watchReal(t, as(t, access.Via(proxy.Addr())))
	until(ctx, t, "without any right", inState(s, fact.WatchFailing,
		`missing right: watch customresourcedefinitions.apiextensions.k8s.io kustomizations.kustomize.toolkit.fluxcd.io (list and watch are needed); the API server says: `, "kustomization"))
	t.Log(s.watch("kustomization").Message)
	until(ctx, t, "heard, for the API server knows the account", heard(s))
	if err := k.Apply(ctx, binding); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "with the required rules", inState(s, fact.WatchSynced, "", installed...))
	until(ctx, t, "the fact", path(s, "apps", "./a"))

	// One kind less: the next watch is refused, and that kind alone is failing.
	lesser := []byte(strings.Replace(string(role), "  - buckets\n", "", 1))
	if string(lesser) == string(role) {
		t.Fatalf("no buckets in %s", role)
	}
	if err := k.Apply(ctx, lesser); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "a right is taken away", func() string {
		proxy.Cut()
		idle(ctx, time.Second)
		return inState(s, fact.WatchFailing, "missing right: watch buckets.source.toolkit.fluxcd.io", "bucket")()
	})
	until(ctx, t, "the other kinds", inState(s, fact.WatchSynced, "", installed[:5]...))
	if err := k.Apply(ctx, role); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "it is given back", inState(s, fact.WatchSynced, "", installed...))
}

func TestRealCredentialsExpire(t *testing.T) {
	ctx := limit(t, 3*time.Minute)
	k := ownKube(ctx, t)
	if err := realserver.InstallFluxCRDs(ctx, k, realserver.Builder{}); err != nil {
		t.Fatal(err)
	}
	if err := k.Apply(ctx, fmt.Appendf(nil, bare, "apps", "./a")); err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/kubeconfig"
	write := func(token string) {
		a := k.Access()
		a.Token = token
		if err := realserver.WriteKubeconfig(file, map[string]realserver.Access{"prod": a}); err != nil {
			t.Fatal(err)
		}
	}
	write("expired")
	s := watchReal(t, Config{Kubeconfig: file, Limits: Limits{ProbeEvery: time.Second}})
	until(ctx, t, "refused", inState(s, fact.WatchFailing, "the API server refuses the credentials", installed...))
	if n := s.heard(); n != 0 {
		t.Errorf("%d heartbeats with credentials that are not good", n)
	}
	write(k.Access().Token)
	until(ctx, t, "the kubeconfig is renewed", inState(s, fact.WatchSynced, "", installed...))
	until(ctx, t, "the fact", path(s, "apps", "./a"))
	until(ctx, t, "heard", heard(s))
}

func TestRealOutages(t *testing.T) {
	ctx := limit(t, 6*time.Minute)
	k := ownKube(ctx, t)
	if err := realserver.InstallFluxCRDs(ctx, k, realserver.Builder{}); err != nil {
		t.Fatal(err)
	}
	if err := k.Apply(ctx, fmt.Appendf(nil, bare, "apps", "./a")); err != nil {
		t.Fatal(err)
	}
	proxy, err := realserver.NewProxy(k.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	cfg := as(t, k.Access().Via(proxy.Addr()))
	cfg.Limits.ProbeEvery = 2 * time.Second
	cfg.Limits.Probe = time.Second
	s := watchReal(t, cfg)
	until(ctx, t, "synced", inState(s, fact.WatchSynced, "", installed...))
	until(ctx, t, "the fact", path(s, "apps", "./a"))
	change := func(t *testing.T, to string) {
		t.Helper()
		if err := k.Apply(ctx, fmt.Appendf(nil, bare, "apps", to)); err != nil {
			t.Fatal(err)
		}
	}
	silent := func(t *testing.T) {
		t.Helper()
		idle(ctx, cfg.Limits.Probe+500*time.Millisecond) // A probe may be under way.
		n := s.heard()
		idle(ctx, 2*cfg.Limits.ProbeEvery)
		if s.heard() != n {
			t.Error("a heartbeat of a cluster that does not answer")
		}
	}

	t.Run("the watch is cut", func(t *testing.T) {
		before := s.writes()
		for range 5 {
			proxy.Cut()
			idle(ctx, time.Second)
		}
		change(t, "./b")
		until(ctx, t, "a change after it", path(s, "apps", "./b"))
		if n := s.writes() - before; n != 1 {
			t.Errorf("%d facts were written, want that of the change alone", n)
		}
	})
	t.Run("the API server is killed and back within the grace", func(t *testing.T) {
		before := s.writes()
		k.Kill()
		if err := k.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		change(t, "./c")
		until(ctx, t, "a change after it", path(s, "apps", "./c"))
		for _, f := range s.after(before) {
			t.Logf("written: %s %+v", f.Key, f.Cluster)
		}
	})
	t.Run("the API server is killed for a while", func(t *testing.T) {
		k.Kill()
		silent(t)
		until(ctx, t, "failing", inState(s, fact.WatchFailing, "the API server", installed...))
		t.Log(s.watch("kustomization").Message)
		if err := k.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		change(t, "./d")
		until(ctx, t, "a change after it", path(s, "apps", "./d"))
		until(ctx, t, "synced again", inState(s, fact.WatchSynced, "", installed...))
	})
	t.Run("nothing comes through the connection", func(t *testing.T) {
		proxy.Hang()
		silent(t)
		change(t, "./e")
		until(ctx, t, "failing", inState(s, fact.WatchFailing, "", installed...))
		t.Log(s.watch("kustomization").Message)
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "the change of meanwhile", path(s, "apps", "./e"))
		until(ctx, t, "synced again", inState(s, fact.WatchSynced, "", installed...))
	})
	t.Run("connections are refused", func(t *testing.T) {
		proxy.Refuse()
		silent(t)
		if err := k.Delete(ctx, fmt.Appendf(nil, bare, "apps", "./e")); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "failing", inState(s, fact.WatchFailing, "", installed...))
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "the deletion of meanwhile", gone(s, "apps"))
		until(ctx, t, "synced again", inState(s, fact.WatchSynced, "", installed...))
	})
}

// Flux reconciles every ten seconds here, and a tier that fails every five.
func TestRealFluxPassesThroughProgressing(t *testing.T) {
	ctx := limit(t, 5*time.Minute)
	name := world.Name(t)
	repo, err := seed.Plant(ctx, world, seed.Options{Owner: name, Namespace: name})
	if err != nil {
		t.Fatal(err)
	}
	s := watchReal(t, as(t, world.Kube.Access()))
	if err := repo.Bootstrap(ctx); err != nil {
		t.Fatal(err)
	}
	is := func(object, status, part string) func() string {
		return func() string {
			f := s.object("kustomization", name, object)
			if f.Flux == nil || f.Flux.Ready.Status != status || !strings.Contains(f.Flux.Ready.Message, part) ||
				status == fact.True && f.Flux.Generation != f.Flux.ObservedGeneration {
				return fmt.Sprintf("the fact of %s is %+v", object, f.Flux)
			}
			return ""
		}
	}
	steady := func() {
		t.Helper()
		passed := progressing(ctx, t, name, 45*time.Second, func() int { return s.writes() })
		for object, n := range passed {
			t.Logf("%s passed through Progressing %d times", object, n)
		}
		if passed["platform"] < 2 || passed["platform-config"] < 2 {
			t.Error("too few to prove anything")
		}
	}
	until(ctx, t, "platform is Ready", is("platform", fact.True, "Applied revision"))
	until(ctx, t, "platform-config is not", is("platform-config", fact.False, `no matches for kind "StorageProfile"`))
	until(ctx, t, "apps waits", is("apps", fact.False, "is not ready"))
	steady()
	for _, f := range s.after(0) {
		if f.Key.Namespace == name && f.Flux != nil {
			t.Logf("written: %-60s v%s %d/%d %s %s", f.Key, f.Version, f.Flux.ObservedGeneration, f.Flux.Generation, f.Flux.Ready.Status, f.Flux.Ready.Message)
		}
	}
	if err := repo.InstallStorageProfiles(ctx); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "platform-config recovers", is("platform-config", fact.True, "Applied revision"))
	until(ctx, t, "apps follows", is("apps", fact.True, "Applied revision"))
	steady()
}

// progressing watches for some time how often the Kustomizations of a namespace
// pass through Progressing, and fails if facts are written meanwhile.
func progressing(ctx context.Context, t *testing.T, namespace string, d time.Duration, writes func() int) map[string]int {
	t.Helper()
	// The last write may still be on its way.
	idle(ctx, 2*time.Second)
	before := writes()
	gvr := schema.GroupVersionResource{Group: groupKustomize, Version: "v1", Resource: "kustomizations"}
	w, err := world.Kube.Dynamic().Resource(gvr).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	passed := map[string]int{}
	last := map[string]string{}
	over := time.After(d)
	for {
		select {
		case e := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("the watch ended: %+v", e)
			}
			c := condition(u.Object, "Ready")
			if c.Status == fact.Unknown && last[u.GetName()] != fact.Unknown {
				passed[u.GetName()]++
			}
			last[u.GetName()] = c.Status
		case <-over:
			if n := writes() - before; n != 0 {
				t.Errorf("%d facts were written while nothing changed", n)
			}
			return passed
		}
	}
}
