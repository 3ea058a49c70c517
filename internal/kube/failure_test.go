package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/kube/kubetest"
)

func TestExplain(t *testing.T) {
	buckets := schema.GroupResource{Group: "source.toolkit.fluxcd.io", Resource: "buckets"}
	refused := kubetest.Down(t.Context(), kubetest.Request{})
	lost := apierrors.NewInternalError(errors.New("x"))
	lost.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeUnexpectedServerResponse, Message: "unable to decode an event from the watch stream: http2: client connection lost",
	}}
	tests := map[string]struct {
		err  error
		want failure
	}{
		"refused": {
			&url.Error{Op: "Get", URL: "https://127.0.0.1:6443/apis?resourceVersion=77&timeoutSeconds=451", Err: refused},
			failure{failureUnreachable, "the API server cannot be reached: dial tcp 127.0.0.1:6443: connect: connection refused"},
		},
		"closed":       {&url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: io.EOF}, failure{failureUnreachable, "the API server cannot be reached: the connection was closed"}},
		"lost":         {lost, failure{failureUnreachable, "the API server cannot be reached: http2: client connection lost"}},
		"overloaded":   {apierrors.NewTooManyRequests("slow down", 1), failure{failureUnreachable, "the API server cannot be reached: slow down"}},
		"given up":     {fmt.Errorf("get: %w", errNoAnswer), failure{failureUnreachable, "no answer from the API server in time: watch " + buckets.String()}},
		"deadline":     {context.DeadlineExceeded, failure{failureUnreachable, "no answer from the API server in time: watch " + buckets.String()}},
		"unauthorized": {apierrors.NewUnauthorized("Unauthorized"), failure{failureUnauthorized, "the API server refuses the credentials: Unauthorized"}},
		"forbidden": {
			apierrors.NewForbidden(buckets, "", errors.New("User \"bob\" cannot watch\nresource")),
			failure{failureForbidden, "missing right: watch buckets.source.toolkit.fluxcd.io (list and watch are needed); the API server says: buckets.source.toolkit.fluxcd.io is forbidden: User \"bob\" cannot watch resource"},
		},
		"missing": {
			apierrors.NewGenericServerResponse(404, "watch", buckets, "", "404 page not found", 0, true),
			failure{failureMissing, "watch buckets.source.toolkit.fluxcd.io: 404 page not found"},
		},
		"other": {apierrors.NewBadRequest("no such field"), failure{failureOther, "watch buckets.source.toolkit.fluxcd.io: no such field"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := explain("watch", buckets.String(), tt.err)
			if got != tt.want {
				t.Errorf("explain = %+v, want %+v", got, tt.want)
			}
			if strings.Contains(got.message, "resourceVersion=") {
				t.Errorf("the message differs at each try: %q", got.message)
			}
		})
	}
}

func TestAnonymous(t *testing.T) {
	for user, want := range map[string]bool{"system:anonymous": true, "bob": false} {
		err := apierrors.NewForbidden(crdResource().GroupResource(), "", fmt.Errorf("User %q cannot list resource", user))
		if got := anonymous(err); got != want {
			t.Errorf("anonymous(%v) = %v, want %v", err, got, want)
		}
	}
}
