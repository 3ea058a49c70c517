package kube

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"signalbox/internal/kube/kubetest"
)

// kubeconfig writes a kubeconfig with a context named prod.
func kubeconfig(t *testing.T, path, server, token string) {
	t.Helper()
	content := `{apiVersion: v1, kind: Config,
clusters: [{name: c, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}],
users: [{name: u, user: {token: ` + token + `}}],
contexts: [{name: prod, context: {cluster: c, user: u}}]}`
	writeWhole(t, path, content)
}

// writeWhole writes a file so that nobody reads a part of it.
func writeWhole(t *testing.T, path, content string) {
	t.Helper()
	part := path + ".part"
	if err := os.WriteFile(part, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, path); err != nil {
		t.Fatal(err)
	}
}

func TestNewRefuses(t *testing.T) {
	c := kubetest.New()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig(t, file, "https://prod.example.org", "secret")
	broken := filepath.Join(t.TempDir(), "broken")
	writeWhole(t, broken, "{")
	tests := map[string]struct {
		cfg  Config
		want string
	}{
		"no name":                    {Config{Client: c.Client(), Probe: c.Probe}, "cluster has no name"},
		"nothing":                    {Config{Cluster: "prod"}, "cluster prod: give exactly one of"},
		"two ways":                   {Config{Cluster: "prod", InCluster: true, Kubeconfig: file}, "cluster prod: give exactly one of"},
		"a client without a probe":   {Config{Cluster: "prod", Client: c.Client()}, "a client and a probe go together"},
		"a probe without a client":   {Config{Cluster: "prod", Kubeconfig: file, Probe: c.Probe}, "a client and a probe go together"},
		"a context without a file":   {Config{Cluster: "prod", InCluster: true, Context: "prod"}, `context "prod" needs a kubeconfig`},
		"no such context":            {Config{Cluster: "prod", Kubeconfig: file, Context: "dev"}, `context "dev" does not exist`},
		"no such file":               {Config{Cluster: "prod", Kubeconfig: file + "x"}, "no such file"},
		"a file that is no YAML":     {Config{Cluster: "prod", Kubeconfig: broken}, "kubeconfig " + broken},
		"not within a cluster":       {Config{Cluster: "prod", InCluster: true}, "in-cluster"},
		"a configuration that is no": {Config{Cluster: "prod", REST: &rest.Config{Host: "http://[::1"}}, "cluster prod"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.cfg, newFakeSink(), slog.New(slog.DiscardHandler), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
}

func TestNewRegistersOnce(t *testing.T) {
	c, reg := kubetest.New(), prometheus.NewRegistry()
	for name, wantErr := range map[string]bool{"prod": false, "dev": false} {
		if _, err := New(Config{Cluster: name, Client: c.Client(), Probe: c.Probe}, newFakeSink(), slog.New(slog.DiscardHandler), reg); (err != nil) != wantErr {
			t.Errorf("New(%s) = %v", name, err)
		}
	}
	if _, err := New(Config{Cluster: "prod", Client: c.Client(), Probe: c.Probe}, newFakeSink(), slog.New(slog.DiscardHandler), reg); err == nil {
		t.Error("two watchers of one name share a registry")
	}
}

// A server that knows one token only shows which one the watcher uses.
func TestKubeconfigIsReadAgain(t *testing.T) {
	good := make(chan struct{}, 1)
	var log bytes.Buffer
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer renewed" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		select {
		case good <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig(t, file, server.URL, "expired")
	w, err := New(Config{Cluster: "prod", Kubeconfig: file, Context: "prod", Limits: Limits{ProbeEvery: 10 * time.Millisecond}},
		newFakeSink(), slog.New(slog.NewTextHandler(&log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	// A file that is half written is left alone until it is whole.
	writeWhole(t, file, "{apiVersion: v1, kind: Con")
	time.AfterFunc(100*time.Millisecond, func() { kubeconfig(t, file, server.URL, "renewed") })
	select {
	case <-good:
	case <-ctx.Done():
		t.Error("the renewed credentials are not used")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
	if n := strings.Count(log.String(), "cannot be used"); n > 1 {
		t.Errorf("the half written file is told of %d times", n)
	}
	if strings.Contains(log.String(), "renewed") || strings.Contains(log.String(), "expired") {
		t.Error("the log tells a token")
	}
}

func TestMetrics(t *testing.T) {
	c, s, reg := kubetest.New(), newFakeSink(), prometheus.NewRegistry()
	c.Remove("Bucket")
	c.Kustomization("flux-system", "apps").Ready(revA)
	w, err := New(Config{Cluster: "prod", Client: c.Client(), Probe: c.Probe}, s, slog.New(slog.DiscardHandler), reg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case <-w.Settled():
	case <-ctx.Done():
		t.Error("not settled")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"signalbox_kube_facts_written_total prod kustomization": 1,
		"signalbox_kube_watch_state prod kustomization synced":  1,
		"signalbox_kube_watch_state prod kustomization syncing": 0,
		"signalbox_kube_watch_state prod bucket not-installed":  1,
		"signalbox_kube_probe_failures_total prod":              0,
		"signalbox_kube_fact_write_failures_total prod":         0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v (%v), want %v", name, v, ok, want)
		}
	}
}
