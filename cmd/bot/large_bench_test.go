package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/events"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Sizes and bounds of BenchmarkLarge.
const (
	largePulls   = 2_000
	largeObjects = 10_000
	// fewPulls is how many pull requests read the object that few read.
	fewPulls = 5
	// flipCalls is how many calls of Gitea one verdict that changes may cost.
	flipCalls = 4
	// slowerCalls is how much longer a call may take, all in all, when every verdict
	// changes at once, than in a script that does nothing else.
	slowerCalls = 4.0
	// pollEvery is how often the script looks.
	pollEvery = time.Minute
	// largePatience is how long a step may take before the benchmark gives up.
	largePatience = 10 * time.Minute
)

const largePolicy = `version: 1
preconditions:
  - {name: Flux is up to date, flux: {kustomization: flux-system/flux-system}}
  - {name: the few, paths: ["few/**"], flux: {kustomization: flux-system/k0}}
`

const statusRoute = "POST /repos/{owner}/{repo}/statuses/{sha}"

// BenchmarkLarge runs signalbox with 2,000 open pull requests and 10,000 objects, on a
// stand-in of Gitea, and a polling script that does the same job on the same: every minute
// one list of the objects, and one call for each pull request, to post its status.
func BenchmarkLarge(b *testing.B) {
	for b.Loop() {
		l := newLarge(b)
		l.starts()
		l.flips()
		l.compare()
		l.w.stop()
	}
}

type large struct {
	b     *testing.B
	w     *world
	heads []string
	// few and perCall are what a flip that few read took until the last of them showed
	// it, and what each call took when all changed at once.
	few, perCall time.Duration
}

func newLarge(b *testing.B) *large {
	b.Helper()
	l := &large{b: b, w: newWorld(b, worldOptions{alone: true, files: map[string]string{policy.Path: largePolicy}})}
	l.w.patience = largePatience
	ctx := b.Context()
	for i := range largePulls {
		path := fmt.Sprintf("apps/%d.yaml", i)
		if i < fewPulls {
			path = fmt.Sprintf("few/%d.yaml", i)
		}
		branch := fmt.Sprint("b", i)
		sha, err := l.w.forge.Push(ctx, l.w.repo, giteatest.Push{Branch: branch, From: "main", As: "bob", Files: map[string]string{path: "a: 1\n"}, Message: branch})
		l.w.must(err)
		_, err = l.w.forge.OpenPull(ctx, l.w.repo, giteatest.NewPull{As: "bob", Title: branch, Head: branch, Base: "main"})
		l.w.must(err)
		l.heads = append(l.heads, sha)
	}
	for i := range largeObjects - 1 {
		l.w.cluster.Kustomization("flux-system", fmt.Sprint("k", i)).Ready("main@sha1:" + strings.Repeat("a", 40))
	}
	l.w.cluster.Kustomization("flux-system", "flux-system").Ready("main@sha1:" + strings.Repeat("a", 40))
	return l
}

// start starts signalbox, which does not look for anything missed by itself.
func (l *large) start() {
	l.w.start(worldOptions{adjust: func(c *config.Config) { c.Timing.Reconcile = 24 * time.Hour }})
}

// posted waits until n statuses more were posted than there were.
func (l *large) posted(before, n int) {
	l.b.Helper()
	deadline := time.NewTimer(largePatience)
	defer deadline.Stop()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for l.w.forge.Calls()[statusRoute]-before < n {
		select {
		case <-deadline.C:
			l.b.Fatalf("%d of %d statuses were posted in %s", l.w.forge.Calls()[statusRoute]-before, n, largePatience)
		case <-ticker.C:
		}
	}
}

// starts measures the first start, what it holds in memory, and a second start.
func (l *large) starts() {
	heap := heapInUse()
	began := time.Now()
	l.start()
	l.posted(0, 2*largePulls)
	l.b.ReportMetric(time.Since(began).Seconds(), "first-start-s")
	l.w.quiet()
	l.b.ReportMetric(float64(heapInUse()-heap)/(1<<20), "heap-MB")
	l.w.stop()
	began = time.Now()
	l.start()
	l.b.ReportMetric(time.Since(began).Seconds(), "restart-s")
	l.w.eventually("every pull request was looked at again", func() string {
		if n := l.w.evaluations(); n < largePulls {
			return fmt.Sprintf("%d were", n)
		}
		return ""
	})
	l.w.quiet()
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// flips measures a change that few pull requests read, and one that all do.
func (l *large) flips() {
	flip := func(name string, n int, change func()) (time.Duration, int) {
		l.w.forge.ResetCalls()
		began := time.Now()
		change()
		l.posted(0, n)
		took := time.Since(began)
		l.w.quiet()
		calls := l.w.forge.TotalCalls()
		if calls > n*flipCalls {
			l.b.Errorf("%s: %d calls for %d pull requests, the bound is %d for each", name, calls, n, flipCalls)
		}
		l.b.ReportMetric(float64(calls)/float64(n), name+"-calls/pull")
		return took, calls
	}
	few := l.w.cluster.Kustomization("flux-system", "k0")
	l.few, _ = flip("few", fewPulls, func() { few.Failing("BuildFailed", "of the benchmark") })
	l.b.ReportMetric(float64(l.few.Milliseconds()), "few-ms")
	all := l.w.cluster.Kustomization("flux-system", "flux-system")
	took, calls := flip("all", largePulls, func() { all.Failing("BuildFailed", "of the benchmark") })
	l.b.ReportMetric(took.Seconds(), "all-s")
	l.perCall = took / time.Duration(calls)
}

// compare measures one pass of the polling script, and what both cost in an hour in which
// nothing happens: signalbox looks for what it missed every five minutes.
func (l *large) compare() {
	pass := l.poll()
	hourly := int(time.Hour/pollEvery) * (largePulls + 1)
	l.w.forge.ResetCalls()
	l.w.must(l.w.app.bus.Publish(l.b.Context(), tick(l.b)))
	l.w.quiet()
	ours := l.w.forge.TotalCalls() * int(time.Hour/(5*time.Minute))
	// A change waits for the next pass, half of the time between two on average, and
	// then for its turn in it.
	delay := pollEvery/2 + pass/2
	l.b.ReportMetric(float64(hourly), "poll-calls/h")
	l.b.ReportMetric(float64(ours), "calls/h")
	l.b.ReportMetric(float64(ours)/float64(hourly), "calls/poll")
	l.b.ReportMetric(delay.Seconds(), "poll-delay-s")
	l.b.ReportMetric(l.few.Seconds()/delay.Seconds(), "delay/poll")
	slower := float64(l.perCall) / float64(pass/largePulls)
	l.b.ReportMetric(slower, "all-per-call/poll")
	if ours > hourly || l.few > delay || slower > slowerCalls {
		l.b.Errorf("against the script: %d calls an hour to %d, %s to %s, and %.1f for a call when all change; the bounds are 1, 1 and %.0f",
			ours, hourly, l.few, delay, slower, slowerCalls)
	}
}

// poll is one pass of the script.
func (l *large) poll() time.Duration {
	began := time.Now()
	ctx := l.b.Context()
	kustomizations := schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	list, err := l.w.cluster.Client().Resource(kustomizations).List(ctx, metav1.ListOptions{})
	l.w.must(err)
	if len(list.Items) != largeObjects {
		l.b.Fatalf("the script sees %d objects", len(list.Items))
	}
	for _, sha := range l.heads {
		l.w.must(l.w.eyes.PostStatus(ctx, l.w.repo, sha, pull.Status{Context: "polled", State: "success"}, "https://example.org/"))
	}
	return time.Since(began)
}

// Rate and duration of BenchmarkSustained, and the longest that one of a hundred
// deliveries may take: a tenth of what Gitea waits for an answer.
const (
	sustainedRate  = 200
	sustainedTime  = time.Minute
	sustainedBound = 500 * time.Millisecond
)

// BenchmarkSustained delivers webhooks for a minute at a steady rate, each acknowledged
// once it is on disk, and counts what arrived.
func BenchmarkSustained(b *testing.B) {
	for b.Loop() {
		intake, url := fullIntake(b)
		times := pace(b, url)
		got := arrived(b, intake, len(times))
		if got != len(times) {
			b.Errorf("%d of %d deliveries are on the bus", got, len(times))
		}
		b.ReportMetric(float64(len(times)-got), "lost")
		b.ReportMetric(float64(len(times))/sustainedTime.Seconds(), "deliveries/s")
		for _, q := range []int{50, 99} {
			b.ReportMetric(float64(percentile(times, q).Microseconds())/1000, fmt.Sprintf("p%d-ms", q))
		}
		if p99 := percentile(times, 99); p99 > sustainedBound {
			b.Errorf("one delivery of a hundred takes %s or more, the bound is %s", p99, sustainedBound)
		}
	}
}

// pace delivers at the rate, as long as it is sustained, and returns how long each
// delivery took.
func pace(b *testing.B, url string) []time.Duration {
	b.Helper()
	n := int(sustainedTime.Seconds()) * sustainedRate
	took := make(chan time.Duration, n)
	failed := make(chan error, n)
	ticker := time.NewTicker(time.Second / sustainedRate)
	defer ticker.Stop()
	for range n {
		<-ticker.C
		go func() {
			began := time.Now()
			if err := post(b.Context(), url); err != nil {
				failed <- err
				return
			}
			took <- time.Since(began)
		}()
	}
	var times []time.Duration
	for range n {
		select {
		case err := <-failed:
			b.Fatal(err)
		case d := <-took:
			times = append(times, d)
		}
	}
	return times
}

// arrived counts the events that a consumer gets until there are n, or none come any more.
func arrived(b *testing.B, from *bus.Bus, n int) int {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	seen := map[string]bool{}
	err := from.ConsumeEvents(ctx, "counted", []string{events.SubjectRoot + ".gitea.>"}, func(_ context.Context, e events.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[e.ID] = true; len(seen) == n {
			cancel()
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return len(seen)
}
