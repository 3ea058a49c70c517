package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"signalbox/internal/kube"
	"signalbox/internal/kube/kubetest"
)

// reviewed is a stand-in cluster that also answers what an account may do.
type reviewed struct {
	dynamic.Interface
	may func(kube.Right) bool
	err error
}

func (r reviewed) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	in := r.Interface.Resource(gvr)
	if gvr.Resource != "selfsubjectaccessreviews" {
		return in
	}
	return reviews{in, r}
}

type reviews struct {
	dynamic.NamespaceableResourceInterface
	r reviewed
}

func (r reviews) Create(_ context.Context, obj *unstructured.Unstructured, _ metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	if r.r.err != nil {
		return nil, r.r.err
	}
	a, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "resourceAttributes")
	right := kube.Right{Verb: a["verb"], Group: a["group"], Resource: a["resource"], Namespace: a["namespace"], Name: a["name"]}
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"allowed": r.r.may(right)}}}, nil
}

// least are the rights of RequiredRules.
func least(r kube.Right) bool {
	return slices.ContainsFunc(kube.RequiredRules(), func(rule kube.Rule) bool {
		return slices.Contains(rule.Verbs, r.Verb) && slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
	})
}

func words(rights []kube.Right) []string {
	var out []string
	for _, r := range rights {
		out = append(out, r.String())
	}
	return out
}

func TestInspect(t *testing.T) {
	apps := kube.Object{Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}
	gone := kube.Object{Kind: "Kustomization", Namespace: "flux-system", Name: "gone"}
	release := kube.Object{Kind: "HelmRelease", Namespace: "apps", Name: "web"}
	tests := []struct {
		name            string
		may             func(kube.Right) bool
		missing, excess []string
	}{
		{"least rights", least, nil, nil},
		{"everything", func(kube.Right) bool { return true }, nil, []string{"* *"}},
		{
			"secrets of one namespace", func(r kube.Right) bool {
				return least(r) || r.Verb == "get" && r.Resource == "secrets" && r.Namespace == "flux-system"
			}, nil, []string{"get secrets in flux-system"},
		},
		{"secrets of all namespaces are told once", func(r kube.Right) bool { return least(r) || r.Verb == "get" && r.Resource == "secrets" }, nil, []string{"get secrets"}},
		{
			"one right less", func(r kube.Right) bool { return least(r) && (r.Resource != "buckets" || r.Verb != "watch") },
			[]string{"watch buckets.source.toolkit.fluxcd.io"},
			nil,
		},
		{
			"one definition less", func(r kube.Right) bool { return least(r) && !strings.HasPrefix(r.Name, "buckets.") },
			[]string{
				"list customresourcedefinitions.apiextensions.k8s.io buckets.source.toolkit.fluxcd.io",
				"watch customresourcedefinitions.apiextensions.k8s.io buckets.source.toolkit.fluxcd.io",
			},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := kubetest.New("Kustomization", "Bucket")
			c.Kustomization("flux-system", "apps").Ready("main@sha1:" + strings.Repeat("a", 40))
			got, err := kube.Inspect(t.Context(), kube.Config{Cluster: "prod", Client: reviewed{c.Client(), tt.may, nil}, Probe: c.Probe}, []kube.Object{apps, gone, release})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.missing, words(got.Missing)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.excess, words(got.Excess)); diff != "" {
				t.Errorf("excess (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]kube.Object{gone}, got.Absent); diff != "" {
				t.Errorf("absent (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]kube.Object{release}, got.Unread); diff != "" {
				t.Errorf("unread (-want +got):\n%s", diff)
			}
			if k := got.Kinds[0]; k.Kind != "Kustomization" || k.Version != "v1" || got.Kinds[1].Why == "" || got.Fault != "" || got.RightsFault != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestInspectWhatDoesNotAnswer(t *testing.T) {
	c := kubetest.New()
	cfg := kube.Config{Cluster: "prod", Client: reviewed{c.Client(), least, errors.New("no reviews here")}, Probe: c.Probe}
	got, err := kube.Inspect(t.Context(), cfg, nil)
	if err != nil || !strings.Contains(got.RightsFault, "no reviews here") {
		t.Errorf("rights %q, %v", got.RightsFault, err)
	}
	c.Break(func(context.Context, kubetest.Request) error { return errors.New("connection refused") })
	if got, err = kube.Inspect(t.Context(), cfg, nil); err != nil || got.Refused || !strings.Contains(got.Fault, "connection refused") {
		t.Errorf("down: %+v, %v", got, err)
	}
	if _, err = kube.Inspect(t.Context(), kube.Config{Cluster: "prod", Kubeconfig: "/does/not/exist"}, nil); err == nil {
		t.Error("a kubeconfig that is not there: no error")
	}
}

// TestInspectOverHTTP sees the version, the clock and refused credentials of
// what speaks HTTP.
func TestInspectOverHTTP(t *testing.T) {
	date := time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", date.Format(http.TimeFormat))
		if r.URL.Path == "/sub/version" {
			_, _ = fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized, Message: "Unauthorized",
		})
	}))
	defer s.Close()
	got, err := kube.Inspect(t.Context(), kube.Config{Cluster: "prod", REST: &rest.Config{Host: s.URL + "/sub"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1.36.3" || !got.Date.Equal(date) || !got.Refused || !strings.Contains(got.Fault, "refuses the credentials") {
		t.Errorf("got %+v", got)
	}
}
