package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// podLog is the log of one container.
type podLog struct {
	pod, container string
	// newest says that the pod is the last of its job, and certain that Renovate
	// runs in the container, as far as anybody can tell.
	newest, certain bool
}

// Bounds of what is read of one job.
const (
	maxPods = 50
	maxLogs = 20
)

// logsOf returns the logs that tell what a job did, and why these are not all.
func (p podReader) logsOf(ctx context.Context, j batchJob, names []string) (logs []podLog, problem string) {
	if p.logs == nil {
		return nil, "this client cannot be asked for logs"
	}
	found, err := p.client.Resource(coreResource("pods")).Namespace(p.namespace).List(ctx, metav1.ListOptions{
		Limit: maxPods, LabelSelector: labels.SelectorFromSet(labels.Set{"job-name": j.name}).String(),
	})
	if err != nil {
		return nil, needs(explain("list", "pods in "+p.namespace, err), err, "list pods", p.namespace)
	}
	pods := slices.DeleteFunc(found.Items, func(pod unstructured.Unstructured) bool {
		o := metav1.GetControllerOf(&pod)
		return o == nil || string(o.UID) != j.uid
	})
	slices.SortStableFunc(pods, func(a, b unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	switch {
	case len(pods) == 0:
		return nil, "the pod of job " + j.name + " is gone, and its log with it"
	case int64(len(pods)) < j.pods:
		problem = fmt.Sprintf("%d of the %d pods of job %s are gone, and their logs with them", j.pods-int64(len(pods)), j.pods, j.name)
	case found.GetContinue() != "":
		problem = fmt.Sprintf("job %s has more than %d pods", j.name, maxPods)
	}
	for i := range pods {
		of, lost := containersOf(&pods[i], names)
		newest := len(logs) == 0
		for _, l := range of {
			l.newest = newest
			logs = append(logs, l)
		}
		if problem == "" {
			problem = lost
		}
	}
	// The others come last, as they may take all of the time.
	slices.SortStableFunc(logs, func(a, b podLog) int {
		switch {
		case a.certain == b.certain:
			return 0
		case a.certain:
			return -1
		default:
			return 1
		}
	})
	if len(logs) > maxLogs {
		logs, problem = logs[:maxLogs], fmt.Sprintf("job %s has more than the %d logs that are read", j.name, maxLogs)
	}
	return logs, problem
}

// containersOf returns the logs of a pod: surely those of the containers that have
// one of the names or an image that is called so, or else of all of them. lost
// says of which of those a former try is not to be read.
func containersOf(pod *unstructured.Unstructured, names []string) (logs []podLog, lost string) {
	certain := false
	for _, kind := range []string{"containers", "initContainers"} {
		for _, item := range list(pod.Object, "spec", kind) {
			m, _ := item.(map[string]any)
			l := podLog{pod: pod.GetName(), container: text(m, "name")}
			if neverRan(pod.Object, l.container) {
				continue
			}
			l.certain = slices.Contains(names, l.container) || strings.Contains(text(m, "image"), "renovate")
			certain = certain || l.certain
			logs = append(logs, l)
		}
	}
	for i := range logs {
		logs[i].certain = logs[i].certain || !certain
		if n := number(containerStatus(pod.Object, logs[i].container), "restartCount"); n > 0 && logs[i].certain && lost == "" {
			lost = fmt.Sprintf("container %s of pod %s was started %d times, and only its last log is read", logs[i].container, logs[i].pod, n+1)
		}
	}
	return logs, lost
}

// containerStatus returns what a pod says of a container, or nil.
func containerStatus(pod map[string]any, name string) map[string]any {
	for _, kind := range []string{"containerStatuses", "initContainerStatuses"} {
		for _, item := range list(pod, "status", kind) {
			if m, _ := item.(map[string]any); text(m, "name") == name {
				return m
			}
		}
	}
	return nil
}

// neverRan reports whether a pod says that a container was never started.
func neverRan(pod map[string]any, name string) bool {
	status := containerStatus(pod, name)
	return field(status, "state", "waiting") != nil && field(status, "lastState", "terminated") == nil && number(status, "restartCount") == 0
}
