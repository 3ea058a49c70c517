package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failureKind tells failures apart that need different help. Within one kind
// the first message stands: an API server that is down shows as a refused
// connection, a lost one and a missing answer in turn, and that is no news.
type failureKind string

const (
	failureNone         failureKind = ""
	failureUnreachable  failureKind = "unreachable"
	failureUnauthorized failureKind = "unauthorized"
	failureForbidden    failureKind = "forbidden"
	failureMissing      failureKind = "missing"
	failureOther        failureKind = "other"
)

// failure is why a request to the API server did not work.
type failure struct {
	kind failureKind
	// message is one line for a person.
	message string
}

// errNoAnswer is the cause of a request that was given up.
var errNoAnswer = errors.New("no answer in time")

// explain makes a failure of the error of a request. Verb and resource name
// the right that the request needs.
func explain(verb, resource string, err error) failure {
	reason := oneLine(steady(root(err)))
	switch {
	case apierrors.IsForbidden(err):
		return failure{failureForbidden, fmt.Sprintf("missing right: %s %s (list and watch are needed); the API server says: %s", verb, resource, reason)}
	case apierrors.IsUnauthorized(err):
		return failure{failureUnauthorized, "the API server refuses the credentials: " + reason}
	case apierrors.IsNotFound(err):
		return failure{failureMissing, fmt.Sprintf("%s %s: %s", verb, resource, reason)}
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return slow(verb, resource)
	case unreachable(err):
		return failure{failureUnreachable, "the API server cannot be reached: " + reason}
	default:
		return failure{failureOther, fmt.Sprintf("%s %s: %s", verb, resource, reason)}
	}
}

func slow(verb, resource string) failure {
	return failure{failureUnreachable, fmt.Sprintf("no answer from the API server in time: %s %s", verb, resource)}
}

// unreachable reports whether the API server did not answer or said that it
// cannot serve now.
func unreachable(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return true
}

// outdated reports whether the API server has no history from the version on
// that was asked for: it was compacted, or is not there yet. An informer then
// lists anew, and nothing is wrong.
func outdated(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// root is the text of an error without what surrounds it: the request's URL,
// whose parameters differ each time, and the words that a client puts around
// what it did not understand.
func root(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if cause, ok := apierrors.StatusCause(err, metav1.CauseTypeUnexpectedServerResponse); ok && cause.Message != "" {
		return strings.TrimPrefix(cause.Message, "unable to decode an event from the watch stream: ")
	}
	if errors.Is(err, io.EOF) {
		return "the connection was closed"
	}
	return err.Error()
}

// anonymous reports whether the API server took a request for one without
// credentials.
func anonymous(err error) bool {
	return strings.Contains(err.Error(), `"system:anonymous"`)
}
