package kube

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"signalbox/internal/fact"
	"signalbox/internal/kube/kubetest"
)

var renovateQuery = fact.RenovateQuery{Namespace: "renovate", Name: "renovate"}

func renovateKey() fact.Key { return fact.RenovateCronJobKey("prod", "renovate", "renovate") }

func (s *fakeSink) renovate() fact.Renovate {
	f, _ := s.Lookup(renovateKey())
	if f.Renovate == nil {
		return fact.Renovate{}
	}
	return *f.Renovate
}

const cronJobUID = "11111111-0000-4000-8000-000000000000"

// cronJobWith is a CronJob whose container has the environment.
func cronJobWith(env ...any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "CronJob",
		"metadata": map[string]any{"namespace": "renovate", "name": "renovate"},
		"spec": map[string]any{
			"schedule": "0 3 * * *",
			"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "renovate", "image": "ghcr.io/renovatebot/renovate:39", "env": env}},
			}}}},
		},
	}}
	o.SetUID(cronJobUID)
	return o
}

func dryRun(value string) any { return map[string]any{"name": "RENOVATE_DRY_RUN", "value": value} }

// job is a job of the CronJob. Without a condition it is at work.
func job(name, owner, conditionType string, started time.Time) *unstructured.Unstructured {
	status := map[string]any{"startTime": started.Format(time.RFC3339), "active": int64(1)}
	if conditionType != "" {
		ended := started.Add(time.Minute).Format(time.RFC3339)
		status = map[string]any{
			"startTime":  started.Format(time.RFC3339),
			"conditions": []any{map[string]any{"type": conditionType, "status": "True", "lastTransitionTime": ended}},
		}
		if conditionType == "Complete" {
			status["completionTime"] = ended
		}
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": "renovate", "name": name}, "status": status,
	}}
	o.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"kind": "CronJob", "controller": true, "uid": owner, "name": "renovate"}}
	o.SetUID(types.UID("job-" + name))
	return o
}

func podOf(name, jobName string, created time.Time) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "renovate", "name": name},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "proxy", "image": "envoy"}, map[string]any{"name": "renovate", "image": "ghcr.io/renovatebot/renovate:39"}}},
	}}
	o.SetLabels(map[string]string{"job-name": jobName})
	o.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "controller": true, "uid": "job-" + jobName, "name": jobName}}
	o.Object["metadata"].(map[string]any)["creationTimestamp"] = created.Format(time.RFC3339)
	return o
}

func renovateLog(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "renovate", "testdata", "logs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// renovating is a cluster with the CronJob, a job that succeeded and its log.
func renovating(t *testing.T, log string) *kubetest.Cluster {
	t.Helper()
	c := kubetest.New()
	c.Serve(kubetest.CronJobs, kubetest.Jobs, kubetest.Pods, kubetest.ConfigMaps)
	at := time.Date(1999, 12, 31, 3, 0, 0, 0, time.UTC)
	apply(t, c, cronJobWith(dryRun("full")), job("r1", cronJobUID, "Complete", at), podOf("r1-b", "r1", at.Add(time.Second)),
		job("other", "another-uid", "Complete", at.Add(time.Hour)))
	if log == "-" {
		c.SetLog("renovate", "r1-b", "renovate", "")
	} else if log != "" {
		c.SetLog("renovate", "r1-b", "renovate", renovateLog(t, log))
	}
	return c
}

func TestRenovate(t *testing.T) {
	tests := map[string]struct{ mode, proof string }{
		"full-info.jsonl":    {fact.RenovateFull, "DRY-RUN"},
		"live-empty.jsonl":   {fact.RenovateLive, "created"},
		"full-info.txt":      {fact.RenovateFull, "DRY-RUN"},
		"extract-info.jsonl": {fact.RenovateExtract, "Extracted"},
		"bad-token.jsonl":    {fact.RenovateUnknown, ""},
	}
	for log, tt := range tests {
		t.Run(log, func(t *testing.T) {
			c, s := renovating(t, log), newFakeSink()
			synctest.Test(t, func(t *testing.T) {
				w, stop := start(t, "prod", c, s)
				defer stop()
				w.Wish([]fact.Wish{fact.WishRenovate("prod", renovateQuery)})
				w.Await(t.Context(), []fact.Key{renovateKey()})
				r := s.renovate()
				if r.Watch == nil || r.Watch.State != fact.WatchSynced || r.Last == nil {
					t.Fatalf("renovate = %+v", r)
				}
				if r.Last.Mode != tt.mode || r.Last.LogProblem != "" || r.Last.ID != "renovate/r1" || r.Last.Conclusion != "success" {
					t.Errorf("last = %+v", r.Last)
				}
				if !strings.Contains(strings.Join(r.Last.Proof, "\n"), tt.proof) {
					t.Errorf("proof %q, want %q in it", r.Last.Proof, tt.proof)
				}
				if r.Configured.OnSchedule != fact.RenovateFull || !slices.Equal(r.Configured.Schedules, []string{"0 3 * * *"}) {
					t.Errorf("configured = %+v", r.Configured)
				}
				if got := s.written(renovateKey()); len(got) != 1 {
					t.Errorf("%d facts were written until the first answer, want 1", len(got))
				}
			})
		})
	}
}

func TestRenovateRuns(t *testing.T) {
	c, s := renovating(t, "full-info.jsonl"), newFakeSink()
	var r requests
	c.Break(r.fault)
	logs := func() (n int) {
		for _, q := range r.all() {
			if q.Resource == "pods/log" {
				n++
			}
		}
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, fact.WishRenovate("prod", renovateQuery))
		pass(time.Hour)
		if n := logs(); n != 2 {
			t.Errorf("%d logs were read of the two containers of one job", n)
		}

		t.Log("a job begins, and ends")
		at := time.Now().UTC()
		apply(t, c, job("r2", cronJobUID, "", at))
		pass(time.Second)
		if x := s.renovate(); x.Running == nil || x.Running.ID != "renovate/r2" || x.Last == nil || x.Last.Mode != fact.RenovateFull {
			t.Errorf("renovate = %+v", x)
		}
		c.SetLog("renovate", "r2-a", "renovate", renovateLog(t, "live-empty.jsonl"))
		apply(t, c, podOf("r2-a", "r2", at), job("r2", cronJobUID, "Complete", at))
		pass(time.Second)
		if x := s.renovate(); x.Running != nil || x.Last == nil || x.Last.ID != "renovate/r2" || x.Last.Mode != fact.RenovateLive {
			t.Errorf("renovate = %+v %+v", x, x.Last)
		}
		for _, f := range s.written(renovateKey()) {
			if l := f.Renovate.Last; l.ID == "renovate/r2" && l.Mode == fact.RenovateFull {
				t.Errorf("the mode of one job was told of another: %+v", l)
			}
		}

		t.Log("the jobs are cleaned up, and signalbox starts again")
		c.Delete(job("r1", "", "", at))
		c.Delete(job("r2", "", "", at))
		c.Delete(podOf("r2-a", "", at))
		pass(time.Second)
		stop()
		before, n := s.writes(), logs()
		w, stop := start(t, "prod", c, s, fact.WishRenovate("prod", renovateQuery))
		<-w.Settled()
		pass(time.Hour)
		if x := s.renovate(); x.Last == nil || x.Last.Mode != fact.RenovateLive || s.writes() != before || logs() != n {
			t.Errorf("renovate = %+v, %d facts and %d logs more", x, s.writes()-before, logs()-n)
		}

		t.Log("a job fails")
		at = time.Now().UTC()
		apply(t, c, job("r3", cronJobUID, "Failed", at))
		pass(time.Second)
		if x := s.renovate(); x.Last.ID != "renovate/r3" || x.Last.Conclusion != "failure" || x.Last.Mode != fact.RenovateUnknown || !strings.Contains(x.Last.LogProblem, "the pod of job r3 is gone") {
			t.Errorf("last = %+v", x.Last)
		}

		t.Log("the CronJob is suspended, and goes")
		suspended := cronJobWith(dryRun(""))
		suspended.Object["spec"].(map[string]any)["suspend"] = true
		suspended.Object["spec"].(map[string]any)["timeZone"] = "Europe/Berlin"
		apply(t, c, suspended)
		pass(time.Second)
		if x := s.renovate().Configured; !x.Suspended || x.OnSchedule != fact.RenovateLive || x.Schedules[0] != "TZ=Europe/Berlin 0 3 * * *" {
			t.Errorf("configured = %+v", x)
		}
		c.Delete(suspended)
		pass(time.Second)
		if x := s.renovate(); !x.Missing || x.Configured.Problem == "" {
			t.Errorf("renovate = %+v", x)
		}
		stop()
	})
}

func TestRenovateLogThatCannotBeRead(t *testing.T) {
	tests := map[string]struct {
		fault   kubetest.Fault
		log     string
		problem string
	}{
		"pods forbidden": {kubetest.Forbid("list", "pods"), "full-info.jsonl", "missing right: list pods in renovate"},
		"log forbidden":  {kubetest.Forbid("get", "pods/log"), "full-info.jsonl", "missing right: get pods/log in renovate"},
		"empty":          {nil, "-", "the log of container renovate of pod r1-b is empty"},
		"no kubelet":     {nil, "", "connection refused"},
		"log never answers": {func(ctx context.Context, r kubetest.Request) error {
			if r.Resource == "pods/log" {
				return kubetest.Hang(ctx, r)
			}
			return nil
		}, "full-info.jsonl", "no answer from the API server in time"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := renovating(t, tt.log), newFakeSink()
			c.Break(tt.fault)
			synctest.Test(t, func(t *testing.T) {
				w, stop := start(t, "prod", c, s)
				defer stop()
				w.Wish([]fact.Wish{fact.WishRenovate("prod", renovateQuery)})
				w.Await(t.Context(), []fact.Key{renovateKey()})
				pass(2 * time.Minute)
				last := s.renovate().Last
				if last == nil || last.Mode != fact.RenovateUnknown || !strings.Contains(last.LogProblem, tt.problem) {
					t.Fatalf("last = %+v", last)
				}
				before := s.writes()
				pass(10 * renovateRefresh)
				if n := s.writes() - before; n != 0 {
					t.Errorf("%d facts were written of the same problem", n)
				}
				c.Break(nil)
				c.SetLog("renovate", "r1-b", "renovate", renovateLog(t, "full-info.jsonl"))
				pass(2 * renovateRefresh)
				if last := s.renovate().Last; last.Mode != fact.RenovateFull || last.LogProblem != "" {
					t.Errorf("last = %+v", last)
				}
			})
		})
	}
}

// All containers and pods of a job count, and most what wrote.
func TestRenovateLogs(t *testing.T) {
	at := time.Date(1999, 12, 31, 3, 0, 0, 0, time.UTC)
	renovate := func(name string) any {
		return map[string]any{"name": name, "image": "ghcr.io/renovatebot/renovate:39"}
	}
	pod := func(name string, containers ...any) *unstructured.Unstructured {
		p := podOf(name, "r1", at)
		p.Object["spec"] = map[string]any{"containers": containers}
		return p
	}
	with := func(p *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
		p.Object["status"] = map[string]any{"containerStatuses": []any{status}}
		return p
	}
	proxy := map[string]any{"name": "proxy", "image": "envoy"}
	const full, live = "full-info.jsonl", "live-empty.jsonl"
	tests := map[string]struct {
		pods          []*unstructured.Unstructured
		logs          map[string]string
		mode, problem string
	}{
		"two containers": {
			[]*unstructured.Unstructured{pod("a", renovate("home"), renovate("work"))},
			map[string]string{"a/home": full, "a/work": full},
			fact.RenovateFull, "",
		},
		"two containers, one wrote": {
			[]*unstructured.Unstructured{pod("a", renovate("home"), renovate("work"))},
			map[string]string{"a/home": full, "a/work": live},
			fact.RenovateLive, "",
		},
		"two containers, one log is gone": {
			[]*unstructured.Unstructured{pod("a", renovate("home"), renovate("work"))},
			map[string]string{"a/home": full},
			fact.RenovateUnknown, "connection refused",
		},
		"one wrote, one log is gone": {
			[]*unstructured.Unstructured{pod("a", renovate("home"), renovate("work"))},
			map[string]string{"a/work": live},
			fact.RenovateLive, "connection refused",
		},
		"another program's log is gone": {
			[]*unstructured.Unstructured{pod("a", proxy, renovate("home"))},
			map[string]string{"a/home": full},
			fact.RenovateFull, "",
		},
		"another program's container wrote": {
			[]*unstructured.Unstructured{pod("a", map[string]any{"name": "own", "image": "own"}, renovate("home"))},
			map[string]string{"a/home": full, "a/own": live},
			fact.RenovateLive, "",
		},
		"the first pod wrote": {
			[]*unstructured.Unstructured{pod("a", renovate("home")), pod("b", renovate("home"))},
			map[string]string{"a/home": live, "b/home": full},
			fact.RenovateLive, "",
		},
		"the first pod failed": {
			[]*unstructured.Unstructured{podOf("r1-a", "r1", at.Add(-time.Minute)), pod("b", renovate("home"))},
			map[string]string{"r1-a/renovate": full, "b/home": full},
			fact.RenovateFull, "",
		},
		"a container was started twice": {
			[]*unstructured.Unstructured{with(pod("a", renovate("home")), map[string]any{"name": "home", "restartCount": int64(1)})},
			map[string]string{"a/home": full},
			fact.RenovateUnknown, "container home of pod a was started 2 times",
		},
		"a pod never ran": {
			[]*unstructured.Unstructured{with(pod("a", renovate("home")), map[string]any{"name": "home", "state": map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff"}}})},
			nil, fact.RenovateUnknown, "no container of job r1 has run",
		},
		"a pod is gone": {
			[]*unstructured.Unstructured{pod("a", renovate("home"))},
			map[string]string{"a/home": full, "": "3"},
			fact.RenovateUnknown, "2 of the 3 pods of job r1 are gone",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := kubetest.New(), newFakeSink()
			c.Serve(kubetest.CronJobs, kubetest.Jobs, kubetest.Pods, kubetest.ConfigMaps)
			j := job("r1", cronJobUID, "Complete", at)
			if tt.logs[""] != "" {
				j.Object["status"].(map[string]any)["failed"], j.Object["status"].(map[string]any)["succeeded"] = int64(2), int64(1)
				delete(tt.logs, "")
			}
			apply(t, c, cronJobWith(dryRun("full")), j)
			apply(t, c, tt.pods...)
			for at, log := range tt.logs {
				pod, container, _ := strings.Cut(at, "/")
				c.SetLog("renovate", pod, container, renovateLog(t, log))
			}
			synctest.Test(t, func(t *testing.T) {
				w, stop := start(t, "prod", c, s)
				defer stop()
				w.Wish([]fact.Wish{fact.WishRenovate("prod", renovateQuery)})
				w.Await(t.Context(), []fact.Key{renovateKey()})
				last := s.renovate().Last
				if last == nil || last.Mode != tt.mode || !strings.Contains(last.LogProblem, tt.problem) || (last.LogProblem == "") != (tt.problem == "") {
					t.Errorf("last = %+v, want %s because of %q", last, tt.mode, tt.problem)
				}
			})
		})
	}
}

func TestRenovateConfigMaps(t *testing.T) {
	ref := map[string]any{"name": "RENOVATE_DRY_RUN", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "settings", "key": "dryRun"}}}
	settings := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "renovate", "name": "settings"},
			"data": map[string]any{"dryRun": value, "RENOVATE_DRY_RUN": value},
		}}
	}
	from := cronJobWith()
	containers := list(from.Object, "spec", "jobTemplate", "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": "settings"}}}
	secret := cronJobWith(map[string]any{"name": "RENOVATE_DRY_RUN", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "token", "key": "x"}}})
	tests := map[string]struct {
		cronJob   *unstructured.Unstructured
		configMap *unstructured.Unstructured
		fault     kubetest.Fault
		mode, why string
	}{
		"key":       {cronJobWith(ref), settings("lookup"), nil, fact.RenovateLookup, "RENOVATE_DRY_RUN is lookup"},
		"all":       {from, settings("extract"), nil, fact.RenovateExtract, "RENOVATE_DRY_RUN is extract"},
		"missing":   {cronJobWith(ref), nil, nil, fact.RenovateUnknown, "ConfigMap settings, key dryRun (it does not exist)"},
		"forbidden": {cronJobWith(ref), settings("lookup"), kubetest.Forbid("get", "configmaps"), fact.RenovateUnknown, "signalbox may not read it"},
		"secret":    {secret, nil, nil, fact.RenovateUnknown, "Secret token, which is never read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := renovating(t, "full-info.jsonl"), newFakeSink()
			apply(t, c, tt.cronJob)
			if tt.configMap != nil {
				apply(t, c, tt.configMap)
			}
			var r requests
			c.Break(func(ctx context.Context, q kubetest.Request) error {
				_ = r.fault(ctx, q)
				if tt.fault != nil {
					return tt.fault(ctx, q)
				}
				return nil
			})
			synctest.Test(t, func(t *testing.T) {
				_, stop := start(t, "prod", c, s, fact.WishRenovate("prod", renovateQuery))
				defer stop()
				pass(5 * time.Second)
				if x := s.renovate().Configured; x.OnSchedule != tt.mode || !strings.Contains(x.Why, tt.why) {
					t.Errorf("configured = %+v, want %s because %q", x, tt.mode, tt.why)
				}
				if tt.fault == nil && tt.configMap != nil {
					apply(t, c, settings("full"))
					pass(2 * renovateRefresh)
					if x := s.renovate().Configured; x.OnSchedule != fact.RenovateFull {
						t.Errorf("configured = %+v after the ConfigMap changed", x)
					}
				}
				for _, q := range r.all() {
					if strings.Contains(q.Resource, "secret") {
						t.Errorf("asked for %+v", q)
					}
				}
			})
		})
	}
}

func TestRenovateMalformed(t *testing.T) {
	c, s := renovating(t, "full-info.jsonl"), newFakeSink()
	odd := cronJobWith("x", map[string]any{"name": int64(1)}, nil)
	odd.Object["spec"].(map[string]any)["schedule"] = int64(5)
	bare := odd.DeepCopy()
	bare.Object["spec"] = "none"
	oddJob := job("r9", cronJobUID, "", time.Now())
	oddJob.Object["status"] = []any{}
	synctest.Test(t, func(t *testing.T) {
		_, stop := start(t, "prod", c, s, fact.WishRenovate("prod", renovateQuery))
		defer stop()
		for _, o := range []*unstructured.Unstructured{odd, bare} {
			apply(t, c, o, oddJob)
			pass(time.Minute)
			if x := s.renovate(); x.Watch.State != fact.WatchSynced || x.Missing || x.Configured.OnSchedule == fact.RenovateFull {
				t.Errorf("renovate = %+v", x)
			}
		}
	})
}
