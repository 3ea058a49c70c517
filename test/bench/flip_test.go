//go:build e2e

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/test/realserver"
	"signalbox/test/realserver/bot"
	"signalbox/test/realserver/seed"
)

var world *realserver.World

func TestMain(m *testing.M) {
	os.Exit(realserver.RunTests(m, realserver.WorldOptions{WithoutFlux: true}, func(w *realserver.World) { world = w }))
}

const (
	// bound is how much longer signalbox may take than the bare program, without
	// its debounce.
	bound = 2.0
	// debounce is the default.
	debounce = 300 * time.Millisecond
	// settle is how long a flip may take before the benchmark gives up.
	settle = 20 * time.Second

	bareContext = "bare"
	ourContext  = "signalbox / preconditions (main)"
)

// releases are what the benchmark flips: a kind that no controller is at work
// on here.
var releases = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec:
  group: helm.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: HelmRelease, listKind: HelmReleaseList, plural: helmreleases, singular: helmrelease}
  versions:
    - name: v2
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// BenchmarkFlip measures the time from a change of Ready in the API server to
// the status in Gitea, of signalbox and of a bare program that watches the
// object and posts a status for each change. Both see each flip.
func BenchmarkFlip(b *testing.B) {
	s := newStage(b)
	var full, bare []time.Duration
	ready := true
	for b.Loop() {
		ready = !ready
		start := time.Now()
		s.flip(b, ready)
		f, r := s.await(b, ready, start)
		full, bare = append(full, f), append(bare, r)
	}
	report := func(name string, times []time.Duration, q int) time.Duration {
		sorted := slices.Sorted(slices.Values(times))
		t := sorted[min(len(sorted)*q/100, len(sorted)-1)]
		b.ReportMetric(float64(t.Milliseconds()), name)
		return t
	}
	p50, bare50 := report("p50-ms", full, 50), report("bare-p50-ms", bare, 50)
	report("p99-ms", full, 99)
	report("bare-p99-ms", bare, 99)
	ratio := float64(p50-debounce) / float64(bare50)
	b.ReportMetric(ratio, "x-bare")
	if len(full) > 10 && ratio > bound {
		b.Errorf("signalbox takes %.1f times as long as the bare program, the bound is %.0f", ratio, bound)
	}
}

type stage struct {
	repo   *seed.Repository
	reader *sdk.Client
	head   string
}

func newStage(b *testing.B) *stage {
	b.Helper()
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	name := world.Name(b)
	must(world.Kube.Apply(ctx, []byte(definition)))
	must(world.Kube.CreateNamespace(ctx, name))
	repo, err := seed.Plant(ctx, world, seed.Options{Owner: name, Namespace: name, Policy: fmt.Sprintf(`version: 1
preconditions:
  - {name: ready, flux: {helmRelease: %s/app}}
`, name)})
	must(err)
	s := &stage{repo: repo}
	s.reader, err = world.Gitea.API(ctx, repo.Bob.Token)
	must(err)
	must(world.Kube.Apply(ctx, fmt.Appendf(nil, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app, namespace: %s}\nspec: {interval: 1h}\n", name)))
	s.flip(b, true)

	pr, _, err := repo.OpenMove(ctx, b.TempDir())
	must(err)
	s.head = pr.Head.Sha
	program, err := bot.Build(ctx, b.TempDir())
	must(err)
	account, err := bot.Account(ctx, world.Kube, name)
	must(err)
	token, err := world.Gitea.CreateToken(ctx, repo.Bot, name, bot.Scopes()...)
	must(err)
	running, err := bot.Start(ctx, bot.Options{
		Program: program, Dir: b.TempDir(), GiteaURL: world.Gitea.URL(), Token: token,
		Repositories: []string{repo.String()}, Clusters: map[string]realserver.Access{"prod": account},
	})
	must(err)
	b.Cleanup(running.Stop)
	s.bare(b)
	s.await(b, true, time.Now())
	return s
}

// flip writes the status as the controller would.
func (s *stage) flip(b *testing.B, ready bool) {
	b.Helper()
	status, reason := "True", "UpgradeSucceeded"
	if !ready {
		status, reason = "False", "UpgradeFailed"
	}
	client := world.Kube.Dynamic().Resource(releases).Namespace(s.repo.Namespace)
	have, err := client.Get(b.Context(), "app", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	have.Object["status"] = map[string]any{
		"observedGeneration": have.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": status, "reason": reason, "message": "of the benchmark",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": have.GetGeneration(),
		}},
	}
	if _, err := client.UpdateStatus(b.Context(), have, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// await waits until both contexts say the same as the object, and returns how
// long each took.
func (s *stage) await(b *testing.B, ready bool, start time.Time) (full, bare time.Duration) {
	b.Helper()
	want := map[bool]sdk.StatusState{true: sdk.StatusSuccess, false: sdk.StatusPending}[ready]
	for full == 0 || bare == 0 {
		list, _, err := s.reader.ListStatuses(s.repo.Owner, s.repo.Name, s.head, sdk.ListStatusesOption{ListOptions: sdk.ListOptions{PageSize: 10}})
		if err != nil {
			b.Fatal(err)
		}
		newest := map[string]*sdk.Status{}
		for _, st := range list {
			if n := newest[st.Context]; n == nil || st.ID > n.ID {
				newest[st.Context] = st
			}
		}
		if st := newest[ourContext]; full == 0 && st != nil && st.State == want {
			full = time.Since(start)
		}
		if st := newest[bareContext]; bare == 0 && st != nil && st.State == want {
			bare = time.Since(start)
		}
		if time.Since(start) > settle {
			b.Fatalf("the statuses did not follow within %s: signalbox %s, bare %s", settle, full, bare)
		}
	}
	return full, bare
}

// bare runs the least that does the same for one object and one commit.
func (s *stage) bare(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w, err := world.Kube.Dynamic().Resource(releases).Namespace(s.repo.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		b.Fatal(err)
	}
	alice, err := world.Gitea.API(ctx, s.repo.Alice.Token)
	if err != nil {
		cancel()
		b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for e := range w.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			state := sdk.StatusPending
			if c, _ := realserver.StatusCondition(o, "Ready"); c.Status == metav1.ConditionTrue {
				state = sdk.StatusSuccess
			}
			_, _, err := alice.CreateStatus(s.repo.Owner, s.repo.Name, s.head, sdk.CreateStatusOption{Context: bareContext, State: state})
			if err != nil && !errors.Is(err, context.Canceled) {
				b.Error(err)
			}
		}
	})
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
