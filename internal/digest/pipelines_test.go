package digest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
)

func TestRunners(t *testing.T) {
	online, away := fact.Runner{Name: "a", Online: true}, fact.Runner{Name: "b/c"}
	for name, tt := range map[string]struct {
		actions fact.Actions
		want    []string
		blind   string
	}{
		"online":                   {fact.Actions{Runners: []fact.Runner{online}}, nil, ""},
		"one away":                 {fact.Actions{Runners: []fact.Runner{online, away}}, []string{"notable pipelines/repo/7/runner/b%2fc/away: Runner b/c of ops/home-gitops is offline"}, ""},
		"disabled":                 {fact.Actions{Runners: []fact.Runner{online, {Name: "d", Online: true, Disabled: true}}}, []string{"notable pipelines/repo/7/runner/d/away: Runner d of ops/home-gitops is disabled"}, ""},
		"none left":                {fact.Actions{Runners: []fact.Runner{away}}, []string{"broken pipelines/repo/7/runner//none: ops/home-gitops has no runner that is online, so no workflow runs", "notable pipelines/repo/7/runner/b%2fc/away: Runner b/c of ops/home-gitops is offline"}, ""},
		"none":                     {fact.Actions{}, []string{"broken pipelines/repo/7/runner//none: ops/home-gitops has no runner, so no workflow runs"}, ""},
		"none, and nothing to run": {fact.Actions{}, nil, ""},
		"not seen":                 {fact.Actions{RunnersProblem: "forbidden"}, nil, "signalbox may not see every runner of ops/home-gitops: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.put(fact.Fact{Key: fact.ActionsKey(7), Actions: &tt.actions})
			if name != "none, and nothing to run" {
				w.put(fact.Fact{Key: fact.RunsKey(7, "ci.yaml", "refs/heads/main"), Runs: &fact.Runs{}})
			}
			w.put(fact.Fact{Key: fact.ActionsKey(8), Actions: &fact.Actions{}}) // of nobody
			res := w.find()
			if diff := cmp.Diff(tt.want, lines(res.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, f := range res.Findings {
				if f.Repo != 7 {
					t.Errorf("%s is of repository %d", f.ID, f.Repo)
				}
			}
			if blind := append(res.Blind, digest.Blind{})[0]; blind.Why != tt.blind {
				t.Errorf("blind %+v", blind)
			}
			if told := res.Told(); len(told) > 0 {
				t.Errorf("told %+v, which is so everywhere", told)
			}
		})
	}
}

func TestRenovate(t *testing.T) {
	run := func(change func(*fact.Renovate)) fact.Renovate {
		r := fact.Renovate{
			Last:       &fact.RenovateRun{ID: "12", Conclusion: "success", Mode: fact.RenovateFull, Started: since, Completed: since, URL: "https://gitea.example.org/run/12"},
			Configured: fact.RenovateConfigured{Schedules: []string{"0 * * * *"}},
		}
		change(&r)
		return r
	}
	for name, tt := range map[string]struct {
		renovate fact.Renovate
		want     string
	}{
		"well":          {run(func(*fact.Renovate) {}), ""},
		"missing":       {fact.Renovate{Missing: true}, "broken missing does not exist"},
		"never":         {run(func(r *fact.Renovate) { r.Last = nil }), "notable never has never run, or its runs are forgotten"},
		"by hand":       {fact.Renovate{}, ""},
		"failed":        {run(func(r *fact.Renovate) { r.Last.Conclusion, r.Last.Failures = "failure", []string{"no\ntoken"} }), "broken failed failed (run 12): no token"},
		"secretly":      {run(func(r *fact.Renovate) { r.Last.Failures = []string{"no token"} }), "broken failed says success, and Renovate failed (run 12): no token"},
		"skipped":       {run(func(r *fact.Renovate) { r.Last.Conclusion, r.Last.Job = "skipped", "renovate" }), "broken skipped says success and did nothing: run 12 skipped its job renovate"},
		"cancelled":     {run(func(r *fact.Renovate) { r.Last.Conclusion = "cancelled" }), "notable cancelled was cancelled (run 12)"},
		"no conclusion": {run(func(r *fact.Renovate) { r.Last.Conclusion, r.Last.LogProblem = "", "the job is gone" }), "unclear unknown has ended, and nobody can tell how (run 12): the job is gone"},
		"no log":        {run(func(r *fact.Renovate) { r.Last.LogProblem = "404" }), "unclear unknown says success, and nobody can tell what it did (run 12): 404"},
		"suspended":     {run(func(r *fact.Renovate) { r.Configured.Suspended = true; r.Last.Started = now.AddDate(0, 0, -9) }), "notable suspended is suspended: nothing starts it"},
		"unreadable":    {run(func(r *fact.Renovate) { r.Configured.Problem = "two jobs" }), "unclear unreadable is told to do what nobody can tell: two jobs"},
		"errored":       {run(func(r *fact.Renovate) { r.Dashboard = map[string]int{"errored": 2, "open": 3} }), "notable errored 2 updates failed, by its dashboard"},
		"rate-limited":  {run(func(r *fact.Renovate) { r.Dashboard = map[string]int{"rate-limited": 1} }), "notable rate-limited 1 update is held back by its limits, by its dashboard"},
		"overdue":       {run(func(r *fact.Renovate) { r.Last.Started = now.AddDate(0, 0, -3) }), "broken overdue has not run for longer than it should: its schedule starts it every 1 hour"},
		"late, a bit":   {run(func(r *fact.Renovate) { r.Last.Started = now.AddDate(0, 0, -1) }), ""},
		"weekly": {run(func(r *fact.Renovate) {
			r.Last.Started, r.Configured.Schedules = now.AddDate(0, 0, -10), []string{"TZ=Europe/Berlin 0 3 * * 1"}
		}), ""},
		"weekly, gone": {run(func(r *fact.Renovate) {
			r.Last.Started, r.Configured.Schedules = now.AddDate(0, 0, -30), []string{"TZ=Europe/Berlin 0 3 * * 1"}
		}), "broken overdue has not run for longer than it should: its schedule starts it every 7 days"},
		"odd schedule": {run(func(r *fact.Renovate) {
			r.Last.Started, r.Configured.Schedules = now.AddDate(0, 0, -30), []string{"TZ=UTC"}
		}), ""},
		"no such day": {run(func(r *fact.Renovate) {
			r.Last.Started, r.Configured.Schedules = now.AddDate(0, 0, -30), []string{"0 0 30 2 *"}
		}), ""},
		"still running": {run(func(r *fact.Renovate) { r.Last.Started, r.Running = now.AddDate(0, 0, -3), &fact.RenovateRun{} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("prod")
			w.put(fact.Fact{Key: fact.RenovateKey(7, "renovate.yaml"), Renovate: &tt.renovate})
			w.put(fact.Fact{Key: fact.RenovateCronJobKey("prod", "ci", "renovate"), Renovate: &tt.renovate})
			got := w.find().Findings
			var want []string
			for _, of := range []struct{ at, subject string }{
				{"pipelines/cluster/prod/renovate/ci/renovate/", "Renovate in CronJob ci/renovate"}, {"pipelines/repo/7/renovate/renovate.yaml/", "Renovate in renovate.yaml of ops/home-gitops"},
			} {
				if tt.want != "" {
					severity, fault, text := cut3(tt.want)
					want = append(want, severity+" "+of.at+fault+": "+of.subject+" "+text)
				}
			}
			if diff := cmp.Diff(want, lines(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func cut3(s string) (a, b, c string) {
	parts := strings.SplitN(s, " ", 3)
	return parts[0], parts[1], parts[2]
}

func TestRenovateSummary(t *testing.T) {
	w := newWorld()
	w.put(fact.Fact{Key: fact.RenovateKey(7, "renovate.yaml"), Renovate: &fact.Renovate{
		Last:      &fact.RenovateRun{ID: "1", Conclusion: "success", Mode: fact.RenovateLive, Completed: now.Add(-26 * time.Hour)},
		Dashboard: map[string]int{"open": 3, "detected": 0, "rate-limited": 1},
	}})
	want := []digest.Summary{
		{Repo: 7, Text: "Renovate in renovate.yaml of ops/home-gitops was a live run last, 26 hours ago"},
		{Repo: 7, Text: "The dashboard of Renovate in renovate.yaml of ops/home-gitops lists 3 open and 1 rate-limited"},
	}
	if diff := cmp.Diff(want, w.find().Summaries[digest.Pipelines]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRuns(t *testing.T) {
	jobs := []fact.Job{{Name: "lint", Conclusion: "success"}, {Name: "deploy", Conclusion: "skipped"}}
	for name, tt := range map[string]struct {
		on   string
		runs []fact.Run
		want []string
	}{
		"skipped": {
			"refs/heads/main",
			[]fact.Run{{ID: 3, Status: "in_progress"}, {ID: 2, Status: "completed", Conclusion: "success", Jobs: jobs}, {ID: 1, Status: "completed", Conclusion: "failure"}},
			[]string{"notable pipelines/repo/7/workflow/ci.yaml/skipped: Workflow ci.yaml of ops/home-gitops says success on main (run 2), and skipped its job deploy"},
		},
		"failed":        {"refs/heads/main", []fact.Run{{ID: 2, Status: "completed", Conclusion: "failure", Jobs: jobs}}, []string{"broken pipelines/repo/7/workflow/ci.yaml/failed: Workflow ci.yaml of ops/home-gitops failed on main (run 2)"}},
		"well":          {"refs/heads/main", []fact.Run{{ID: 2, Status: "completed", Conclusion: "success", Jobs: jobs[:1]}}, nil},
		"of a branch":   {"refs/heads/other", []fact.Run{{ID: 2, Status: "completed", Conclusion: "failure"}}, nil},
		"of a commit":   {shaA, []fact.Run{{ID: 2, Status: "completed", Conclusion: "failure"}}, nil},
		"none finished": {"refs/heads/main", []fact.Run{{ID: 2, Status: "queued"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.put(fact.Fact{Key: fact.RunsKey(7, "ci.yaml", tt.on), Runs: &fact.Runs{Runs: tt.runs}})
			if diff := cmp.Diff(tt.want, lines(w.find().Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
