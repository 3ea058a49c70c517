package kube

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"signalbox/internal/expression"
)

// verdict is what a test says of an object.
type verdict uint8

const (
	passing verdict = iota + 1
	failed
	unclear
)

// maxWhy bounds why an object is in its set, in bytes. It is kept once for each
// object.
const maxWhy = 300

func why(s string) string { return clean(oneLine(steady(s)), maxWhy) }

// expressionTest returns the test of a CEL expression.
func expressionTest(source string) (func(object map[string]any) cell, error) {
	program, err := expression.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("the test cannot be read: %w", err)
	}
	return func(object map[string]any) cell {
		ok, err := program.Eval(object)
		switch {
		case err != nil:
			return cell{verdict: unclear, why: why(err.Error())}
		case ok:
			return cell{verdict: passing}
		default:
			return cell{verdict: failed}
		}
	}, nil
}

// kstatus is the test of the objects that have none of their own: it passes
// what is Current by the rules of kstatus, which kubectl, Flux and others
// follow. Those know the built-in kinds; of any other they look at a Stalled,
// Reconciling and Ready condition and at the observed generation. An object
// that has nothing of this, such as one without a status, is Current.
func kstatus(object map[string]any) cell {
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		return cell{verdict: unclear, why: why(err.Error())}
	}
	switch result.Status {
	case status.CurrentStatus:
		return cell{verdict: passing}
	case status.UnknownStatus:
		return cell{verdict: unclear, why: why(result.Message)}
	default:
		return cell{verdict: failed, why: why(uncounted(result.Message))}
	}
}

// counters are the parts of a message of kstatus that count what is ready: they
// change with each replica of a rollout, of which nobody has to be told.
var counters = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`^(\w+): \d+/(\d+)$`), "$1: not all of $2"},
	{regexp.MustCompile(`\b\d+ (?:out )?of (\d+)\b`), "not all of $1"},
	{regexp.MustCompile(`^Pending termination: \d+$`), "Pending termination"},
	{regexp.MustCompile(`^Job in progress\. success:.*$`), "Job in progress"},
}

// uncounted returns a message without its counters.
func uncounted(message string) string {
	message = clean(message, 2*maxMessage)
	for _, c := range counters {
		message = c.pattern.ReplaceAllString(message, c.with)
	}
	return message
}
