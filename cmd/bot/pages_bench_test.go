package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/overview"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/web"
)

// Bounds of a page: in bytes, and in time as a share of what it takes to write all that
// there is as JSON.
const (
	pageBytes = 300 << 10
	pageBound = 1.0
)

// BenchmarkPages makes pages of 5,000 pull requests and 2,000 Kustomizations from the
// views that signalbox has, and compares that with writing all of them as JSON.
func BenchmarkPages(b *testing.B) {
	server, all := pagesOf(b, 5_000, 2_000)
	pages := []string{"/", "/?q=profile+17", "/pulls/ops/home/17", "/clusters", "/clusters/prod", "/clusters/prod?show=all", "/digests/now", "/audit", "/health"}
	for _, page := range pages {
		b.Run(strings.ReplaceAll(page[1:], "/", "_")+"_", func(b *testing.B) {
			var took, yardstick time.Duration
			size := 0
			for b.Loop() {
				start := time.Now()
				w := httptest.NewRecorder()
				server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, page, nil))
				took += time.Since(start)
				if w.Code != http.StatusOK {
					b.Fatalf("%s answers %d", page, w.Code)
				}
				if size = w.Body.Len(); size > pageBytes {
					b.Errorf("%s has %d bytes, the bound is %d", page, size, pageBytes)
				}
				start = time.Now()
				if _, err := json.Marshal(all); err != nil {
					b.Fatal(err)
				}
				yardstick += time.Since(start)
			}
			ratio := took.Seconds() / yardstick.Seconds()
			b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/page")
			b.ReportMetric(float64(size), "bytes")
			b.ReportMetric(ratio, "page/json")
			if b.N > 5 && ratio > pageBound {
				b.Errorf("it takes %.2f of what it takes to write all as JSON, the bound is %.1f", ratio, pageBound)
			}
		})
	}
}

// pagesOf serves pages of a world of some size, to everybody. It returns what they are
// made of too.
func pagesOf(b *testing.B, pulls, objects int) (http.Handler, any) {
	b.Helper()
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	made := bustest.New(b)
	records, err := bus.OpenBucket[handlers.Record](ctx, made, bucketPulls)
	must(err)
	ledger, err := bus.OpenLedger(ctx, made)
	must(err)
	now := time.Now().UTC()
	repositories := handlers.NewRepositories(oneHome{}, []handlers.RepositorySetting{{Owner: "ops", Name: "home"}})
	_, err = repositories.Refresh(ctx)
	must(err)
	index := handlers.NewIndex()
	records.OnChange(index.Change)
	var everything []any
	for i := range pulls {
		p := pull.Pull{
			Repo: pull.Repo{ID: 7, Owner: "ops", Name: "home"}, Number: int64(i + 1), Title: fmt.Sprintf("Move the profile %d", i), State: pull.Open,
			URL: fmt.Sprintf("https://gitea.example.org/ops/home/pulls/%d", i+1), Author: pull.Person{ID: 2, Login: "bob"},
			Head: pull.Branch{Repo: "ops/home", Name: fmt.Sprint("b", i), SHA: fmt.Sprintf("%040x", i)}, Base: pull.Branch{Name: "main"}, CreatedAt: now,
		}
		state := []policy.GateState{policy.Clear, policy.Waiting, policy.Blocked}[i%3]
		r := handlers.Record{EvaluatedAt: now, Verdict: policy.Verdict{
			Ref: p.Ref(), Head: p.Head.SHA, Base: "main", Preconditions: policy.Gate{State: state, Reason: "apps is not Ready on prod"}, Approval: policy.Gate{State: policy.Clear},
			Results: []policy.Result{{Name: "apps is Ready", State: policy.Unmet, Reason: "apps is not Ready on prod", Checks: []policy.Check{{Cluster: "prod", State: policy.Unmet, Reason: "apps is not Ready"}}}},
			Reads:   []fact.Key{fact.Kube("prod", "Kustomization", "flux-system", fmt.Sprint("k", i%max(objects, 1)))},
		}}
		r.Inputs.Snapshot.Pull = p
		_, err := records.Put(ctx, p.Ref().String(), r, 0)
		must(err)
		everything = append(everything, r)
	}
	facts := made.Facts()
	put := func(f fact.Fact) {
		f.Since, f.SeenAt = now.Add(-time.Hour), now
		_, err := facts.Put(ctx, f)
		must(err)
		everything = append(everything, f)
	}
	put(fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{}})
	put(fact.Fact{Key: fact.ClusterKey("prod"), Cluster: &fact.Cluster{Kinds: map[string]fact.Watch{"kustomization": {State: fact.WatchSynced}}}})
	for i := range objects {
		f := fact.Flux{
			Generation: 1, ObservedGeneration: 1, Applied: fmt.Sprintf("main@sha1:%040x", 1), Path: "./apps",
			Ready: fact.Condition{Status: fact.True, Reason: "ReconciliationSucceeded", Message: "Applied revision: main"},
		}
		if i > 0 {
			f.DependsOn = []fact.Ref{{Kind: "Kustomization", Namespace: "flux-system", Name: fmt.Sprint("k", (i-1)/4)}}
		}
		if i%100 == 99 {
			f.Ready = fact.Condition{Status: fact.False, Reason: "BuildFailed", Message: strings.Repeat("no matches for kind ", 10)}
		}
		put(fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", fmt.Sprint("k", i)), UID: fmt.Sprint(i), Version: "1", Flux: &f})
	}
	o := &outlook{
		outlook: &handlers.Outlook{
			Facts: facts, Records: records, Repositories: repositories, Ledger: ledger, DeadLetters: made.Dead().Count,
			Clusters: []string{"prod"}, Checks: digest.DefaultChecks(), Kured: digest.DefaultKured(), Now: time.Now,
		},
		digests: &handlers.Digests{Reports: noReports{}}, samples: &handlers.Samples{Store: noSamples{}},
	}
	address, err := url.Parse("https://signalbox.example.org/")
	must(err)
	server, err := web.New(web.Config{
		URL: address, Gitea: address, Public: true, Clusters: []string{"prod"}, Pulls: standings{records, index, repositories}, Facts: facts,
		Decisions: ledger, Digests: reports{o}, Health: benchHealth{}, Rights: nobodyAsks{}, People: nobodyAsks{}, Commands: nobodyAsks{},
		Changes: newLive(), Sessions: nobodyAsks{}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	must(err)
	b.Cleanup(server.Close)
	return server.Handler(), slices.Clip(everything)
}

// oneHome has one repository.
type oneHome struct{}

func (oneHome) Repo(context.Context, string, string) (pull.Repo, string, error) {
	return pull.Repo{ID: 7, Owner: "ops", Name: "home"}, "main", nil
}

func (oneHome) RepoByID(ctx context.Context, _ int64) (pull.Repo, string, error) {
	return oneHome{}.Repo(ctx, "", "")
}

type noReports struct{ handlers.Reports }

func (noReports) All() iter.Seq2[string, digest.Report] {
	return func(func(string, digest.Report) bool) {}
}

type noSamples struct{ handlers.SampleStore }

func (noSamples) All() iter.Seq2[string, digest.Sample] {
	return func(func(string, digest.Sample) bool) {}
}

type benchHealth struct{}

func (benchHealth) Retry(context.Context, uint64) error { return web.ErrNoDeadLetter }
func (benchHealth) Drop(context.Context, uint64) error  { return web.ErrNoDeadLetter }

func (benchHealth) Health(context.Context) overview.Health { return overview.Health{} }

func (benchHealth) DeadLetters(context.Context, int) ([]overview.DeadLetter, int, error) {
	return nil, 0, nil
}

// nobodyAsks is what public pages do not need.
type nobodyAsks struct {
	web.Rights
	web.People
	web.Commands
	web.Sessions
}
