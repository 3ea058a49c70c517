package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"signalbox/internal/fact"
	"signalbox/internal/renovate"
)

// maxLog bounds what is read of a log, in bytes.
const maxLog = 32 << 20

// kept is what is kept of a run.
var kept = renovate.Keep{Proof: 5, Branches: 50}

// Logs opens the log of a container. No more than limit bytes are read of it.
type Logs func(ctx context.Context, namespace, pod, container string, limit int64) (io.ReadCloser, error)

// newLogs returns how a real API server is asked.
func newLogs(client rest.Interface) Logs {
	return func(ctx context.Context, namespace, pod, container string, limit int64) (io.ReadCloser, error) {
		r := client.Get().AbsPath("api", "v1", "namespaces", namespace, "pods", pod, "log")
		return r.Param("container", container).Param("limitBytes", strconv.FormatInt(limit, 10)).Stream(ctx)
	}
}

// podReader reads what is not watched, in one namespace.
type podReader struct {
	*connection
	namespace string
	patience  time.Duration
}

func coreResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: name}
}

// configMaps reads ConfigMaps by their names.
func (p podReader) configMaps(ctx context.Context, names []string) map[string]configMap {
	out := map[string]configMap{}
	for _, name := range names {
		limited, cancel := context.WithTimeoutCause(ctx, p.patience, errNoAnswer)
		o, err := p.client.Resource(coreResource("configmaps")).Namespace(p.namespace).Get(limited, name, metav1.GetOptions{})
		cancel()
		switch {
		case apierrors.IsNotFound(err):
			out[name] = configMap{problem: "it does not exist"}
		case apierrors.IsForbidden(err):
			out[name] = configMap{problem: "signalbox may not read it"}
		case err != nil:
			out[name] = configMap{problem: explain("get", "configmaps", err).message}
		default:
			m := configMap{data: map[string]string{}}
			data, _ := field(o.Object, "data").(map[string]any)
			for key, v := range data {
				m.data[key] = whole(v)
			}
			out[name] = m
		}
	}
	return out
}

// run reads the logs of a job. The names are those of the containers in which
// Renovate runs, as far as that is known. The run is what most must be feared of
// any of them; one that cannot be read makes it unknown, unless another one tells
// of a live run.
func (p podReader) run(ctx context.Context, j batchJob, names []string) *fact.RenovateRun {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*p.patience, errNoAnswer)
	defer cancel()
	out := j.run()
	logs, problem := p.logsOf(ctx, j, names)
	var reports []podReport
	for _, l := range logs {
		report, trouble := p.read(ctx, l)
		if !l.certain && len(report.Runs) == 0 {
			continue // It is of another program.
		}
		reports = append(reports, podReport{report, l.newest})
		problem = cmp.Or(problem, trouble)
	}
	if len(reports) == 0 {
		reports, problem = []podReport{{newest: true}}, cmp.Or(problem, "no container of job "+j.name+" has run")
	}
	describeLogs(out, reports)
	if problem != "" {
		out.LogProblem = problem
		if out.Mode != fact.RenovateLive {
			out.Mode = fact.RenovateUnknown
		}
	}
	return out
}

// read reads one log, or says why it cannot.
func (p podReader) read(ctx context.Context, l podLog) (renovate.Report, string) {
	stream, err := p.logs(ctx, p.namespace, l.pod, l.container, maxLog+1)
	if err != nil {
		return renovate.Report{}, needs(explain("get", "pods/log in "+p.namespace, err), err, "get pods/log", p.namespace)
	}
	defer func() { _ = stream.Close() }()
	report, err := renovate.Analyze(stream, renovate.Limits{Bytes: maxLog})
	what := "the log of container " + l.container + " of pod " + l.pod
	switch {
	case err != nil:
		return report, what + " broke off: " + why(root(err))
	case report.Bytes == 0:
		return report, what + " is empty"
	case report.Cut:
		return report, fmt.Sprintf("%s is longer than the %d MiB that are read", what, maxLog>>20)
	}
	return report, ""
}

// needs is the message of a failure, which for a missing right names only that.
func needs(f failure, err error, right, namespace string) string {
	if apierrors.IsForbidden(err) {
		return "missing right: " + right + " in " + namespace
	}
	return why(f.message)
}

// podReport is what one log says. newest says that it is of the last pod of its
// job: what failed before it was tried again.
type podReport struct {
	renovate.Report
	newest bool
}

// tried is what counts of a run that was tried again: not how it failed.
func tried(run renovate.Run) renovate.Run {
	run.Failures, run.Repositories = nil, slices.Clone(run.Repositories)
	for i := range run.Repositories {
		run.Repositories[i].Failures, run.Repositories[i].Updates = nil, nil
	}
	return run
}

// describeLogs fills in what the logs say of a run.
func describeLogs(out *fact.RenovateRun, reports []podReport) {
	worst := reports[0].Report
	for _, report := range reports {
		if mode := renovate.Worst(worst.Mode, report.Mode); mode != worst.Mode {
			worst = report.Report
		}
	}
	out.Mode = worst.Mode.Word()
	for _, report := range reports {
		for _, run := range report.Runs {
			if !report.newest {
				run = tried(run)
			}
			kept.Add(out, run, "")
		}
	}
	if len(out.Proof) == 0 || worst.Mode == renovate.ModeUnknown {
		out.Proof = []string{cmp.Or(worst.Why, "the log was not read")}
	}
}
