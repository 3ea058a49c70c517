package digest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
)

func TestFlux(t *testing.T) {
	young := now.Add(-time.Minute)
	for name, tt := range map[string]struct {
		change func(*fact.Fact)
		want   string
	}{
		"ready":          {nil, ""},
		"not ready":      {failing("BuildFailed", "kustomize build\n failed"), "broken not-ready: is not ready: BuildFailed: kustomize build failed"},
		"tried another":  {func(f *fact.Fact) { failing("BuildFailed", "x")(f); f.Flux.Attempted = "main@sha1:" + shaB }, "broken not-ready: is not ready at bbbbbbbbbb: BuildFailed: x"},
		"without words":  {failing("", ""), "broken not-ready: is not ready"},
		"suspended":      {func(f *fact.Fact) { f.Flux.Suspended = true }, "notable suspended: is suspended"},
		"suspended then": {func(f *fact.Fact) { failing("BuildFailed", "x")(f); f.Flux.Suspended = true }, "notable not-ready: is suspended, and was not ready: BuildFailed: x"},
		"stalled":        {func(f *fact.Fact) { failing("BuildFailed", "x")(f); f.Flux.Stalled = true }, "broken not-ready: is stalled, and goes on only after a change: BuildFailed: x"},
		"deleting":       {func(f *fact.Fact) { f.Flux.Deleting = true }, "broken deleting: is being deleted, and something keeps it: look at its finalizers"},
		"just deleted":   {func(f *fact.Fact) { f.Flux.Deleting, f.Since = true, young }, ""},
		"not observed":   {func(f *fact.Fact) { f.Flux.Generation = 2 }, "broken not-ready: was changed, and its controller has not taken that up"},
		"just changed":   {func(f *fact.Fact) { f.Flux.Generation, f.Since = 2, young }, ""},
		"never":          {func(f *fact.Fact) { f.Flux.Ready = fact.Condition{} }, "broken not-ready: has never been reconciled"},
		"just made":      {func(f *fact.Fact) { f.Flux.Ready, f.Since = fact.Condition{}, young }, ""},
		"too long":       {func(f *fact.Fact) { f.Flux.Ready = fact.Condition{Status: fact.Unknown, Reason: "Progressing"} }, "unclear not-ready: has been reconciling for too long to tell: Progressing"},
		"no source":      {func(f *fact.Fact) { f.Flux.Source.Name = "gone" }, "broken not-ready: has no source: GitRepository flux-system/gone does not exist"},
		"other source":   {func(f *fact.Fact) { f.Flux.Source = &fact.Ref{Kind: "ExternalArtifact", Name: "x"} }, ""},
		"unreadable":     {func(f *fact.Fact) { f.Problem = "no" }, "unclear not-ready: cannot be read: no"},
		"absent":         {func(f *fact.Fact) { f.Absent, f.Flux = true, nil }, ""},
		"behind":         {func(f *fact.Fact) { f.Flux.Applied = "main@sha1:" + shaB }, "broken behind: has applied bbbbbbbbbb, and its source GitRepository flux-system/flux-system has aaaaaaaaaa"},
		"just behind":    {func(f *fact.Fact) { f.Flux.Applied, f.SeenAt = "main@sha1:"+shaB, young }, ""},
		"rolling out":    {func(f *fact.Fact) { f.Flux.Applied, f.Flux.Attempted = "main@sha1:"+shaB, "main@sha1:"+shaA }, ""},
		"old spelling":   {func(f *fact.Fact) { f.Flux.Applied = "main/" + shaA }, ""},
		"no commit":      {func(f *fact.Fact) { f.Flux.Applied = "latest@sha256:x" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("prod")
			w.flux("GitRepository", "flux-system", nil)
			w.flux("Kustomization", "apps", tt.change)
			got := strings.Join(lines(w.find().Findings), "\n")
			got = strings.Replace(strings.Replace(got, "flux/prod/kustomization/flux-system/apps/", "", 1), "Kustomization flux-system/apps ", "", 1)
			if got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFluxCauses(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*world)
		want []string
	}{
		"a chain has one root": {func(w *world) {
			w.flux("Kustomization", "a-late", waitsFor("middle"))
			w.flux("Kustomization", "middle", waitsFor("root"))
			w.flux("Kustomization", "root", failing("BuildFailed", "x"))
			w.flux("Kustomization", "other", failing("BuildFailed", "y"))
		}, []string{"other", "root", " middle", " a-late"}},
		"a source is the root of what fails because of it": {func(w *world) {
			w.flux("GitRepository", "flux-system", failing("GitOperationFailed", "no route to host"))
			w.flux("Kustomization", "apps", failing("ArtifactFailed", "Source artifact not found, retrying in 30s"))
			w.flux("Kustomization", "own", failing("ArtifactFailed", "kustomization path not found: stat /x"))
			w.flux("Kustomization", "ready", nil)
		}, []string{"flux-system", " apps", "own"}},
		"a circle ends": {func(w *world) {
			w.flux("Kustomization", "b", waitsFor("c"))
			w.flux("Kustomization", "c", waitsFor("b"))
			w.flux("Kustomization", "d", waitsFor("c"))
			w.flux("Kustomization", "e", waitsFor("e"))
		}, []string{"c", " b", " d", "e"}},
		"a dependency that does not exist is a fault of its own": {func(w *world) {
			w.flux("Kustomization", "bad", failing("BuildFailed", "x"))
			w.flux("Kustomization", "apps", func(f *fact.Fact) {
				failing("DependencyNotReady", "dependency 'flux-system/nope' not found: kustomizations \"nope\" not found")(f)
				f.Flux.DependsOn = []fact.Ref{{Namespace: "flux-system", Name: "nope"}, {Namespace: "flux-system", Name: "bad"}}
			})
		}, []string{"bad", "apps"}},
		"what is suspended can be the root": {func(w *world) {
			w.flux("Kustomization", "base", func(f *fact.Fact) { f.Flux.Suspended = true })
			w.flux("Kustomization", "apps", waitsFor("base"))
		}, []string{"base", " apps"}},
		"a chart is between a release and its source": {func(w *world) {
			w.flux("HelmRepository", "charts", failing("FetchFailed", "x"))
			w.flux("HelmChart", "flux-system-db", failing("NoSourceArtifact", "no artifact available for HelmRepository source 'charts'"))
			w.flux("HelmRelease", "db", func(f *fact.Fact) {
				failing("SourceNotReady", "HelmChart 'flux-system/flux-system-db' is not ready")(f)
				f.Flux.Source = &fact.Ref{Kind: "HelmRepository", Namespace: "flux-system", Name: "charts"}
			})
		}, []string{"charts", " flux-system-db", " db"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("prod")
			w.flux("GitRepository", "flux-system", nil)
			tt.set(w)
			res := w.find()
			var got []string
			seen := map[string]int{}
			for _, f := range res.Findings {
				got = append(got, f.Subject[strings.Index(f.Subject, "/")+1:])
				seen[f.ID]++
				for _, u := range f.Under {
					got = append(got, " "+u.Subject[strings.Index(u.Subject, "/")+1:])
					seen[u.ID]++
					if len(u.Under) > 0 {
						t.Errorf("%s has others under it", u.ID)
					}
				}
			}
			for id, n := range seen {
				if n != 1 {
					t.Errorf("%s is told %d times", id, n)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if circle := strings.HasPrefix(res.Findings[0].Text, "waits in a circle of dependencies: DependencyNotReady"); circle != (name == "a circle ends") {
				t.Errorf("a circle is told: %t, by %q", circle, res.Findings[0].Text)
			}
		})
	}
}

func TestFluxCounts(t *testing.T) {
	w := newWorld("prod", "dev")
	w.flux("GitRepository", "flux-system", nil)
	w.flux("HelmRepository", "oci", func(f *fact.Fact) { f.Flux.Ready, f.Flux.ObservedGeneration = fact.Condition{}, 0 })
	for i := range 4 {
		w.flux("Kustomization", fmt.Sprint("k", i), nil)
	}
	w.flux("Kustomization", "k1", failing("x", "y"))
	w.flux("Kustomization", "k2", func(f *fact.Fact) { f.Flux.Suspended = true })
	w.flux("HelmRelease", "h", func(f *fact.Fact) {
		f.Flux.Source = &fact.Ref{Kind: "HelmRepository", Namespace: "flux-system", Name: "oci"}
	})
	res := w.find()
	want := []digest.Summary{{Cluster: "prod", Text: "2 of 3 Kustomizations, 1 of 1 HelmReleases and 1 of 1 sources on prod are ready; 1 more is suspended"}}
	if diff := cmp.Diff(want, res.Summaries[digest.Flux]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(digest.Counts{Ready: 4, Total: 5, Open: map[digest.Section]int{digest.Flux: 1}}, res.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeSeen(t *testing.T) {
	w := newWorld("prod", "dev", "lab")
	w.flux("GitRepository", "flux-system", failing("x", "y"))
	w.flux("Kustomization", "apps", failing("x", "y"))
	kinds := w.facts[fact.ClusterKey("prod")].Cluster.Kinds
	kinds["kustomization"] = fact.Watch{State: fact.WatchFailing, Message: "kustomizations is forbidden"}
	kinds["bucket"] = fact.Watch{State: fact.WatchNotInstalled}
	kinds["helmchart"] = fact.Watch{State: fact.WatchSyncing}
	w.put(fact.Fact{Key: fact.HeartbeatKey("dev"), Heartbeat: &fact.Heartbeat{Silent: true, LastHeard: since}})
	delete(w.facts, fact.HeartbeatKey("lab"))
	res := w.find()
	if diff := cmp.Diff([]string{
		"broken flux/prod/gitrepository/flux-system/flux-system/not-ready: GitRepository flux-system/flux-system is not ready: x: y",
		"broken gate/dev/silent: Cluster dev is silent: nothing has been heard from it",
		"unclear gate/lab/silent: Cluster lab has not been heard from yet",
	}, lines(res.Findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	blind := func(s digest.Section, cluster, prefix, why string) digest.Blind {
		return digest.Blind{Section: s, Cluster: cluster, Prefix: prefix, Why: why}
	}
	if diff := cmp.Diff([]digest.Blind{
		blind(digest.Flux, "prod", "flux/prod/helmchart/", "the list of HelmCharts on prod has not arrived yet"),
		blind(digest.Flux, "prod", "flux/prod/kustomization/", "Kustomizations on prod cannot be watched: kustomizations is forbidden"),
		blind(digest.Flux, "dev", "", "cluster dev is not heard from"),
		blind(digest.Flux, "lab", "", "cluster lab is not heard from"),
		blind(digest.Nodes, "dev", "", "cluster dev is not heard from"),
		blind(digest.Nodes, "lab", "", "cluster lab is not heard from"),
		blind(digest.Storage, "dev", "", "cluster dev is not heard from"),
		blind(digest.Storage, "lab", "", "cluster lab is not heard from"),
	}, res.Blind); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := res.Findings[1].Since; !got.Equal(since) {
		t.Errorf("silent since %v", got)
	}
}
