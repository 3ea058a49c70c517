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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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

// run reads the log of a job. The names are those of the containers in which
// Renovate runs, as far as that is known.
func (p podReader) run(ctx context.Context, j batchJob, names []string) *fact.RenovateRun {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*p.patience, errNoAnswer)
	defer cancel()
	out := j.run()
	report, problem := p.log(ctx, j, names)
	describeLog(out, report)
	if problem != "" {
		out.LogProblem = problem
		if out.Mode != fact.RenovateLive {
			out.Mode = fact.RenovateUnknown
		}
	}
	return out
}

// log finds and reads the log of a job, or says why it cannot.
func (p podReader) log(ctx context.Context, j batchJob, names []string) (renovate.Report, string) {
	if p.logs == nil {
		return renovate.Report{}, "this client cannot be asked for logs"
	}
	pods, err := p.client.Resource(coreResource("pods")).Namespace(p.namespace).List(ctx, metav1.ListOptions{
		Limit: 50, LabelSelector: labels.SelectorFromSet(labels.Set{"job-name": j.name}).String(),
	})
	if err != nil {
		return renovate.Report{}, needs(explain("list", "pods in "+p.namespace, err), err, "list pods", p.namespace)
	}
	var newest *unstructured.Unstructured
	for i := range pods.Items {
		pod := &pods.Items[i]
		if o := metav1.GetControllerOf(pod); o == nil || string(o.UID) != j.uid {
			continue
		}
		if newest == nil || newest.GetCreationTimestamp().Time.Before(pod.GetCreationTimestamp().Time) {
			newest = pod
		}
	}
	if newest == nil {
		return renovate.Report{}, "the pod of job " + j.name + " is gone, and its log with it"
	}
	name := containerOf(newest.Object, names)
	stream, err := p.logs(ctx, p.namespace, newest.GetName(), name, maxLog+1)
	if err != nil {
		return renovate.Report{}, needs(explain("get", "pods/log in "+p.namespace, err), err, "get pods/log", p.namespace)
	}
	defer func() { _ = stream.Close() }()
	report, err := renovate.Analyze(stream, renovate.Limits{Bytes: maxLog})
	switch {
	case err != nil:
		return report, "the log of job " + j.name + " broke off: " + why(root(err))
	case report.Bytes == 0:
		return report, "the log of job " + j.name + " is empty"
	case report.Cut:
		return report, fmt.Sprintf("the log of job %s is longer than the %d MiB that are read", j.name, maxLog>>20)
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

// containerOf returns the container of a pod in which Renovate runs: one of the
// names, or else the one whose image is called so, or else the first.
func containerOf(pod map[string]any, names []string) string {
	first, byImage := "", ""
	for _, kind := range []string{"containers", "initContainers"} {
		for _, item := range list(pod, "spec", kind) {
			m, _ := item.(map[string]any)
			name := text(m, "name")
			if slices.Contains(names, name) {
				return name
			}
			if strings.Contains(text(m, "image"), "renovate") {
				byImage = cmp.Or(byImage, name)
			}
			first = cmp.Or(first, name)
		}
	}
	return cmp.Or(byImage, first)
}

// describeLog fills in what a log says of a run.
func describeLog(out *fact.RenovateRun, report renovate.Report) {
	out.Mode = modeWord(report.Mode)
	for _, run := range report.Runs {
		out.Version = cmp.Or(out.Version, run.Version)
		for _, f := range run.Failures {
			out.Failures = appendText(out.Failures, failureText(f), maxProof)
		}
		for _, r := range run.Repositories {
			describeRepository(out, r)
		}
	}
	if len(out.Proof) == 0 || report.Mode == renovate.ModeUnknown {
		out.Proof = []string{cmp.Or(report.Why, "the log was not read")}
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
