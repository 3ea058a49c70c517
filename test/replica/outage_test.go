//go:build e2e

package replica

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	// soon is how long a new pull request may be without its statuses while all is well.
	soon = 3 * time.Second
	// calm is how long all must be well until an outage counts as over.
	calm = 3 * time.Second
	// probeEvery is the time between two probes.
	probeEvery = 500 * time.Millisecond
)

// probe is a pull request that was opened to see whether signalbox works.
type probe struct {
	*change
	// shown is when its statuses were there; zero while they are not.
	shown time.Time
}

// outage does something to the stage while people work, and measures how long it takes until all that was
// told is seen to, and a new pull request at once again.
func (st *stage) outage(l *load, what string, do func()) time.Duration {
	st.t.Helper()
	plain := kinds()[0]
	var probes []*probe
	began := time.Now()
	do()
	done := time.Since(began)
	ticker := time.NewTicker(probeEvery / 5)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if n%5 == 0 {
			c, err := l.start(st.t.Context(), &plain)
			st.must(err)
			probes = append(probes, &probe{change: c})
		}
		for _, p := range probes {
			if p.shown.IsZero() && st.shows(p.change) == nil {
				p.shown = time.Now()
			}
		}
		if st.isCalm(probes) {
			break
		}
		if time.Since(began) > 2*patience {
			st.t.Fatalf("%s: no calm within %s", what, 2*patience)
		}
		select {
		case <-ticker.C:
		case <-st.t.Context().Done():
			st.t.Fatal(st.t.Context().Err())
		}
	}
	took, slow, lost := time.Duration(0), 0, 0
	for _, p := range probes {
		switch {
		case p.shown.IsZero():
			lost++
		case p.shown.Sub(p.opened) > soon:
			took = max(took, p.shown.Sub(began))
			slow++
		}
	}
	st.t.Logf("%-40s recovered after %5.1fs (the act itself took %.1fs; %d probes: %d late, %d not told; answers %v)",
		what, took.Seconds(), done.Seconds(), len(probes), slow, lost, st.front.answers(began))
	return took
}

// isCalm reports whether the probes of the last moments were seen to at once, and all those of which
// signalbox was told.
func (st *stage) isCalm(probes []*probe) bool {
	well := 0
	for _, p := range slices.Backward(probes) {
		recent := time.Duration(well)*probeEvery < calm
		switch {
		case p.shown.IsZero() && (!recent || time.Since(p.opened) > soon):
			if recent || st.front.told(p.number) {
				return false
			}
		case p.shown.IsZero():
			// It has time.
		case recent && p.shown.Sub(p.opened) > soon:
			return false
		default:
			well++
		}
	}
	return time.Duration(well)*probeEvery >= calm
}

// allReady waits until every replica says that it takes events.
func (st *stage) allReady(what string) {
	st.t.Helper()
	took := st.eventually(2*patience, what, func() error {
		for _, r := range st.replicas {
			if err := r.ready(st.t.Context()); err != nil {
				return err
			}
		}
		return nil
	})
	st.t.Logf("%-40s after %5.1fs", what, took.Seconds())
}

// hits counts what a replica has changed in Gitea since a time.
func (r *replica) hits(since time.Time) []string {
	var out []string
	for _, q := range r.gitea.Requests() {
		if q.Method != http.MethodGet && q.At.After(since) {
			out = append(out, fmt.Sprintf("%s after %s", q, q.At.Sub(since).Round(time.Millisecond)))
		}
	}
	return out
}
