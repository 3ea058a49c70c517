package kube

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

// withStatus is the CronJob with times of its runs; zero for none.
func withStatus(scheduled, succeeded time.Time, active ...string) *unstructured.Unstructured {
	o := cronJobWith(dryRun("full"))
	status := map[string]any{}
	for name, at := range map[string]time.Time{"lastScheduleTime": scheduled, "lastSuccessfulTime": succeeded} {
		if !at.IsZero() {
			status[name] = at.Format(time.RFC3339)
		}
	}
	var refs []any
	for _, name := range active {
		refs = append(refs, map[string]any{"kind": "Job", "namespace": "renovate", "name": name})
	}
	status["active"] = refs
	o.Object["status"] = status
	return o
}

// wantLost expects that the last run is not known, and why.
func wantLost(t *testing.T, s *fakeSink, id, why string) {
	t.Helper()
	if x := s.renovate(); x.Last == nil || x.Last.ID != id || x.Last.Mode != fact.RenovateUnknown || !strings.Contains(x.Last.LogProblem, why) {
		t.Errorf("last = %+v, want %s of which nothing is known: %s", x.Last, id, why)
	}
}

func wantLast(t *testing.T, s *fakeSink, id, mode string) {
	t.Helper()
	if x := s.renovate(); x.Last == nil || x.Last.ID != id || x.Last.Mode != mode {
		t.Errorf("last = %+v, want %s, %s", x.Last, id, mode)
	}
}

// A run that nobody saw does not leave the one before it as the last.
func TestRenovateRunOfADownTime(t *testing.T) {
	for name, tt := range map[string]struct{ scheduled, succeeded time.Duration }{
		"started": {scheduled: time.Minute}, "succeeded": {succeeded: 2 * time.Minute}, "both": {time.Minute, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := renovating(t, "full-info.jsonl"), newFakeSink()
			synctest.Test(t, func(t *testing.T) {
				wish := fact.WishRenovate("prod", renovateQuery)
				_, stop := start(t, "prod", c, s, wish)
				pass(time.Minute)
				stop()
				at := time.Now().UTC()
				after := func(d time.Duration) (when time.Time) {
					if d > 0 {
						when = at.Add(d)
					}
					return when
				}
				c.Delete(job("r1", "", "", at))
				apply(t, c, withStatus(after(tt.scheduled), after(tt.succeeded)))
				pass(time.Hour)
				for range 2 { // Also once more, when that is what is held.
					w, stop := start(t, "prod", c, s, wish)
					<-w.Settled()
					pass(10 * time.Minute)
					if x := s.renovate().Last; x.Mode != fact.RenovateUnknown || x.ID == "renovate/r1" || !strings.Contains(x.LogProblem, "its job is gone") || (x.Conclusion == "success") != (tt.succeeded > 0) {
						t.Errorf("last = %+v", x)
					}
					stop()
				}
				_, stop = start(t, "prod", c, s, wish)
				defer stop()
				at = time.Now().UTC()
				c.SetLog("renovate", "r2-a", "renovate", renovateLog(t, "full-info.jsonl"))
				apply(t, c, podOf("r2-a", "r2", at), job("r2", cronJobUID, "Complete", at), withStatus(at, at.Add(time.Minute)))
				pass(time.Minute)
				wantLast(t, s, "renovate/r2", fact.RenovateFull)
			})
		})
	}
}

func TestRenovateJobThatVanishes(t *testing.T) {
	tests := map[string]func(t *testing.T, c *kubetest.Cluster, at time.Time){
		"removed when it ends": func(t *testing.T, c *kubetest.Cluster, at time.Time) {
			apply(t, c, job("r2", cronJobUID, "Complete", at))
			c.Delete(job("r2", "", "", at))
		},
		"removed while it runs": func(_ *testing.T, c *kubetest.Cluster, at time.Time) { c.Delete(job("r2", "", "", at)) },
		"known to the CronJob only": func(t *testing.T, c *kubetest.Cluster, at time.Time) {
			c.Delete(job("r2", "", "", at))
			apply(t, c, withStatus(time.Time{}, time.Time{}, "r2"))
			pass(time.Second)
			apply(t, c, withStatus(time.Time{}, time.Time{}))
		},
	}
	for name, vanish := range tests {
		for _, down := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c, s := renovating(t, "full-info.jsonl"), newFakeSink()
				synctest.Test(t, func(t *testing.T) {
					wish := fact.WishRenovate("prod", renovateQuery)
					_, stop := start(t, "prod", c, s, wish)
					defer func() { stop() }()
					pass(time.Minute)
					at := time.Now().UTC()
					apply(t, c, job("r2", cronJobUID, "", at))
					pass(time.Minute)
					if x := s.renovate(); x.Running == nil || x.Running.ID != "renovate/r2" || x.Last.Mode != fact.RenovateFull {
						t.Errorf("renovate = %+v", x)
					}
					if down {
						stop()
					}
					vanish(t, c, at)
					if down {
						_, stop = start(t, "prod", c, s, wish)
					}
					pass(time.Minute)
					wantLost(t, s, "renovate/r2", "its job is gone")
					pass(time.Hour)
					wantLost(t, s, "renovate/r2", "successfulJobsHistoryLimit")
				})
			})
		}
	}
}

// The former run stands while the log of the next of its kind is read, and no
// longer.
func TestRenovateDoesNotFlap(t *testing.T) {
	begin := func(t *testing.T, log string) (*kubetest.Cluster, *fakeSink, time.Time, func()) {
		c, s := renovating(t, "full-info.jsonl"), newFakeSink()
		_, stop := start(t, "prod", c, s, fact.WishRenovate("prod", renovateQuery))
		pass(time.Minute)
		at := time.Now().UTC()
		apply(t, c, job("r2", cronJobUID, "", at), withStatus(at, time.Time{}, "r2"))
		pass(time.Minute)
		if log != "" {
			c.SetLog("renovate", "r2-a", "renovate", renovateLog(t, log))
		}
		return c, s, at, stop
	}
	end := func(t *testing.T, c *kubetest.Cluster, at time.Time) {
		apply(t, c, podOf("r2-a", "r2", at), job("r2", cronJobUID, "Complete", at))
	}
	t.Run("read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, s, at, stop := begin(t, "full-info.jsonl")
			defer stop()
			// What the CronJob says may be here before its job is.
			apply(t, c, withStatus(at, at.Add(time.Minute)))
			pass(time.Second)
			end(t, c, at)
			pass(time.Minute)
			wantLast(t, s, "renovate/r2", fact.RenovateFull)
			for _, f := range s.written(renovateKey()) {
				if f.Renovate.Last != nil && f.Renovate.Last.Mode != fact.RenovateFull {
					t.Errorf("in between it was %+v", f.Renovate.Last)
				}
			}
		})
	})
	t.Run("live", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, s, at, stop := begin(t, "live-empty.jsonl")
			defer stop()
			end(t, c, at)
			pass(5 * time.Second)
			wantLast(t, s, "renovate/r2", fact.RenovateLive)
			c.Delete(podOf("r2-a", "", at))
			pass(time.Hour)
			wantLast(t, s, "renovate/r2", fact.RenovateLive)
		})
	})
	t.Run("never read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, s, at, stop := begin(t, "")
			defer stop()
			c.Break(func(ctx context.Context, r kubetest.Request) error {
				if r.Resource == "pods/log" {
					return kubetest.Hang(ctx, r)
				}
				return nil
			})
			end(t, c, at)
			pass(renovateHold - time.Second)
			wantLast(t, s, "renovate/r1", fact.RenovateFull)
			pass(2 * time.Second)
			wantLost(t, s, "renovate/r2", "")
		})
	})
	t.Run("configured to be live", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, s, at, stop := begin(t, "live-empty.jsonl")
			defer stop()
			apply(t, c, cronJobWith())
			pass(time.Second)
			n := len(s.written(renovateKey()))
			end(t, c, at)
			pass(5 * time.Second)
			after := s.written(renovateKey())[n:]
			if slices.ContainsFunc(after, func(f fact.Fact) bool { return f.Renovate.Running == nil && f.Renovate.Last.ID == "renovate/r1" }) {
				t.Errorf("the former dry run stood: %+v", after)
			}
			wantLast(t, s, "renovate/r2", fact.RenovateLive)
		})
	})
}
