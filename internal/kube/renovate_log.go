package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"signalbox/internal/fact"
	"signalbox/internal/renovate"
)

// Bounds of what is read and kept of a log.
const (
	maxLog      = 32 << 20
	maxProof    = 5
	maxBranches = 50
)

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

// describeLogs fills in what the logs say of a run.
func describeLogs(out *fact.RenovateRun, reports []podReport) {
	worst := reports[0].Report
	for _, report := range reports {
		if mode := renovate.Worst(worst.Mode, report.Mode); mode != worst.Mode {
			worst = report.Report
		}
	}
	out.Mode = modeWord(worst.Mode)
	for _, report := range reports {
		for _, run := range report.Runs {
			out.Version = cmp.Or(out.Version, run.Version)
			if !report.newest {
				run.Failures = nil
			}
			for _, f := range run.Failures {
				out.Failures = appendText(out.Failures, failureText(f), maxProof)
			}
			for _, r := range run.Repositories {
				if !report.newest {
					r.Failures, r.Updates = nil, nil
				}
				describeRepository(out, r)
			}
		}
	}
	if len(out.Proof) == 0 || worst.Mode == renovate.ModeUnknown {
		out.Proof = []string{cmp.Or(worst.Why, "the log was not read")}
	}
}

func describeRepository(out *fact.RenovateRun, r renovate.Repository) {
	mark := r.Name + ": "
	proof := r.Proof
	if out.Mode == fact.RenovateLive {
		proof = r.Disproof
	}
	for _, e := range proof {
		out.Proof = appendText(out.Proof, fmt.Sprintf("%sline %d: %s", mark, e.Line, e.Text), maxProof)
	}
	for _, f := range r.Failures {
		out.Failures = appendText(out.Failures, mark+failureText(f), maxProof)
	}
	for _, b := range r.Branches {
		out.Branches = appendText(out.Branches, mark+b.Name, maxBranches)
		switch {
		case b.Pull != 0:
			out.Pulls = appendText(out.Pulls, strings.TrimSpace(fmt.Sprintf("%s#%d %s", mark, b.Pull, b.Title)), maxBranches)
		case b.Title != "":
			out.Pulls = appendText(out.Pulls, mark+b.Title, maxBranches)
		}
	}
	if len(r.Updates) > 0 && out.Updates == nil {
		out.Updates = map[string]int{}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Updates)) {
		out.Updates[kind] += r.Updates[kind]
	}
}

func failureText(f renovate.Failure) string {
	if f.Detail == "" {
		return f.Message
	}
	return f.Message + ": " + f.Detail
}

// appendText adds a text that is not there yet, up to a limit.
func appendText(list []string, text string, limit int) []string {
	if len(list) >= limit || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
