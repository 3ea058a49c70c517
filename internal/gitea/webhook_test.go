package gitea_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/events"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/secret"
)

const hookSecret = "whsecret"

// intake is an endpoint under test and what it published.
type intake struct {
	http.Handler
	published []events.Event
	fail      error
	metrics   *prometheus.Registry
	log       bytes.Buffer
}

func newIntake(change func(*gitea.IntakeConfig)) *intake {
	in := &intake{metrics: prometheus.NewRegistry()}
	config := gitea.IntakeConfig{
		Secrets: []secret.Value{secret.New(hookSecret)},
		Publish: func(_ context.Context, e events.Event) error {
			if in.fail == nil {
				in.published = append(in.published, e)
			}
			return in.fail
		},
	}
	if change != nil {
		change(&config)
	}
	in.Handler = gitea.NewIntake(config, slog.New(slog.NewTextHandler(&in.log, nil)), in.metrics)
	return in
}

func (in *intake) post(s sample) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/webhook/gitea?made-with=x", bytes.NewReader(s.body))
	r.Header = s.header
	w := httptest.NewRecorder()
	in.ServeHTTP(w, r)
	return w
}

// with returns the delivery with a header replaced; no values delete it.
func (s sample) with(name string, values ...string) sample {
	s.header = s.header.Clone()
	s.header.Del(name)
	for _, v := range values {
		s.header.Add(name, v)
	}
	return s
}

// signed returns the delivery with headers that fit its body.
func (s sample) signed(key string) sample {
	s.header = giteatest.Headers(s.header.Get("X-Gitea-Event"), s.header.Get("X-Gitea-Event-Type"), key, s.body)
	return s
}

func TestIntakeTakesRealDeliveries(t *testing.T) {
	in := newIntake(nil)
	want := 0
	for _, s := range samples(t) {
		if w := in.post(s); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d", s.name, w.Code)
		}
		list, err := gitea.Decode(s.header, s.body, now)
		if err != nil {
			t.Fatal(err)
		}
		want += len(list)
	}
	if len(in.published) != want || want < 25 {
		t.Errorf("published %d events, want %d", len(in.published), want)
	}
}

func TestIntakeRefuses(t *testing.T) {
	s := find(t, "-opened")
	signature := s.header.Get("X-Gitea-Signature")
	tests := []struct {
		name   string
		sample sample
		want   int
	}{
		{"signature missing", s.with("X-Gitea-Signature").with("X-Gogs-Signature"), http.StatusUnauthorized},
		{"signature empty", s.with("X-Gitea-Signature", "").with("X-Gogs-Signature", ""), http.StatusUnauthorized},
		{"signature wrong", s.with("X-Gitea-Signature", strings.Repeat("0", 64)), http.StatusUnauthorized},
		{"signature cut short", s.with("X-Gitea-Signature", signature[:62]), http.StatusUnauthorized},
		{"signature with a prefix", s.with("X-Gitea-Signature", "sha256="+signature), http.StatusUnauthorized},
		{"signature not hexadecimal", s.with("X-Gitea-Signature", "zz"+signature[2:]), http.StatusUnauthorized},
		{"another secret", s.signed("other"), http.StatusUnauthorized},
		{"no secret", s.signed(""), http.StatusUnauthorized},
		{"body changed", sample{header: s.header, body: append([]byte(" "), s.body...)}, http.StatusUnauthorized},
		{"form", s.with("Content-Type", "application/x-www-form-urlencoded"), http.StatusUnsupportedMediaType},
		{"no content type", s.with("Content-Type"), http.StatusUnsupportedMediaType},
		{"not JSON", sample{header: s.header, body: []byte("{")}.signed(hookSecret), http.StatusBadRequest},
		{"pull_request null", s.set(t, nil, "pull_request").signed(hookSecret), http.StatusBadRequest},
		{"too large", sample{header: s.header, body: bytes.Repeat([]byte(" "), 1<<17)}.signed(hookSecret), http.StatusRequestEntityTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := newIntake(func(c *gitea.IntakeConfig) { c.MaxBody = 1 << 16 })
			if w := in.post(tt.sample); w.Code != tt.want {
				t.Errorf("answer %d, want %d", w.Code, tt.want)
			}
			if len(in.published) != 0 {
				t.Errorf("published %v", in.published)
			}
			if strings.Contains(in.log.String(), hookSecret) {
				t.Errorf("the log tells the secret: %s", &in.log)
			}
		})
	}
}

func TestIntakeMethod(t *testing.T) {
	in := newIntake(nil)
	w := httptest.NewRecorder()
	in.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("answer %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestIntakeAccepts(t *testing.T) {
	s := find(t, "-opened")
	signature := s.header.Get("X-Gitea-Signature")
	forgejo := sample{body: s.body, header: http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "X-Forgejo-Event": {"pull_request"},
		"X-Forgejo-Event-Type": {"pull_request"}, "X-Forgejo-Delivery": {"4711-4711"}, "X-Forgejo-Signature": {signature},
	}}
	old := secret.New("old-secret")
	tests := []struct {
		name    string
		sample  sample
		secrets []secret.Value
		want    int
	}{
		{"Forgejo", forgejo, []secret.Value{secret.New(hookSecret)}, 1},
		{"only the headers of Gogs", s.with("X-Gitea-Signature").with("X-Gitea-Event"), []secret.Value{secret.New(hookSecret)}, 1},
		{"the old secret during a rotation", s.signed("old-secret"), []secret.Value{secret.New(hookSecret), old}, 1},
		{"the new secret during a rotation", s, []secret.Value{{}, old, secret.New(hookSecret)}, 1},
		{"an unknown event", s.with("X-Gitea-Event-Type", "wiki").with("X-Gitea-Event", "wiki"), []secret.Value{secret.New(hookSecret)}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := newIntake(func(c *gitea.IntakeConfig) { c.Secrets = tt.secrets })
			if w := in.post(tt.sample); w.Code != http.StatusNoContent || len(in.published) != tt.want {
				t.Errorf("answer %d, published %d; want 204, %d", w.Code, len(in.published), tt.want)
			}
		})
	}
}

func TestIntakeWithoutSecretsRefuses(t *testing.T) {
	for _, secrets := range [][]secret.Value{nil, {secret.New("")}} {
		in := newIntake(func(c *gitea.IntakeConfig) { c.Secrets = secrets })
		for _, key := range []string{"", hookSecret} {
			if w := in.post(find(t, "-opened").signed(key)); w.Code != http.StatusUnauthorized {
				t.Errorf("secrets %v, signed with %q: answer %d", secrets, key, w.Code)
			}
		}
	}
}

func TestIntakeKnowsItsRepositories(t *testing.T) {
	asked := ""
	in := newIntake(func(c *gitea.IntakeConfig) {
		c.Known = func(id int64, name string) bool {
			asked = fmt.Sprint(id, " ", name)
			return false
		}
	})
	if w := in.post(find(t, "-opened")); w.Code != http.StatusNoContent || len(in.published) != 0 {
		t.Errorf("answer %d, published %v", w.Code, in.published)
	}
	if asked != "2 boss/home-gitops" {
		t.Errorf("asked about %q", asked)
	}
}

func TestIntakeAnswersAfterPublish(t *testing.T) {
	in := newIntake(nil)
	in.fail = errors.New("bus is full")
	w := in.post(find(t, "-opened"))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("answer %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if !strings.Contains(in.log.String(), "bus is full") {
		t.Errorf("log: %s", &in.log)
	}

	publishing, publish := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(newIntake(func(c *gitea.IntakeConfig) {
		c.Publish = func(context.Context, events.Event) error {
			close(publishing)
			<-publish
			return nil
		}
	}))
	defer server.Close()
	answered := make(chan error, 1)
	go func() {
		s := find(t, "-opened")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(s.body))
		if err == nil {
			req.Header = s.header
			var resp *http.Response
			if resp, err = server.Client().Do(req); err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		answered <- err
	}()
	<-publishing
	select {
	case err := <-answered:
		t.Errorf("answered before it was published (error %v)", err)
	default:
	}
	close(publish)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestIntakeCounts(t *testing.T) {
	in := newIntake(nil)
	in.post(find(t, "-opened"))
	in.post(find(t, "workflow_run"))
	in.post(find(t, "-opened").with("X-Gitea-Event", "made-up-"+strings.Repeat("x", 100)))
	in.post(find(t, "-opened").with("X-Gitea-Signature", "00"))
	want := map[string]float64{
		"signalbox_gitea_webhooks_total other ignored":          1,
		"signalbox_gitea_webhooks_total other signature":        1,
		"signalbox_gitea_webhooks_total pull_request published": 1,
		"signalbox_gitea_webhooks_total workflow_run published": 1,
	}
	if d := cmp.Diff(want, counters(t, in.metrics)); d != "" {
		t.Errorf("counters (-want +got):\n%s", d)
	}
}

// counters returns the counters of a registry, by name and values of labels.
func counters(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if m.Counter != nil {
				out[name] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// BenchmarkIntake compares the intake with a handler that only checks the
// signature of the same delivery. Publishing costs nothing in either.
func BenchmarkIntake(b *testing.B) {
	s := find(b, "-opened")
	publish := func(context.Context, events.Event) error { return nil }
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		given, _ := hex.DecodeString(r.Header.Get("X-Gitea-Signature"))
		mac := hmac.New(sha256.New, []byte(hookSecret))
		_, _ = mac.Write(body)
		if err != nil || !hmac.Equal(mac.Sum(nil), given) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	intake := gitea.NewIntake(gitea.IntakeConfig{Secrets: []secret.Value{secret.New(hookSecret)}, Publish: publish}, nil, nil)
	for name, handler := range map[string]http.Handler{"bare": bare, "intake": intake} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s.body)))
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(s.body))
				r.Header = s.header
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code != http.StatusNoContent {
					b.Fatalf("answer %d", w.Code)
				}
			}
		})
	}
}

// FuzzIntake: nothing is published but what is signed with the secret, whatever else
// is sent; and what is signed never ends in a failure of the server.
func FuzzIntake(f *testing.F) {
	body := []byte(`{"ref":"refs/heads/main","before":"","after":"09bcfe55288e1dca916c0a330082084838861cd2",` +
		`"repository":{"id":2,"name":"home","owner":{"login":"ops"}},"sender":{"id":1,"login":"bob"}}`)
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	right := hex.EncodeToString(mac.Sum(nil))
	f.Add("application/json", "push", right, "", body)
	f.Add("application/json; charset=utf-8", "push", "", right, body)
	f.Add("application/json", "push", "", "", body)
	f.Add("application/json", "push", right[:62], "sha256="+right, body)
	f.Add("text/plain", "push", right, "", []byte("{}"))
	f.Fuzz(func(t *testing.T, kind, event, signature, other string, body []byte) {
		in := newIntake(nil)
		send := func(signature, other string) int {
			r := httptest.NewRequest(http.MethodPost, "/hooks/gitea", bytes.NewReader(body))
			r.Header = http.Header{
				"Content-Type": {kind}, "X-Gitea-Event": {event}, "X-Gitea-Event-Type": {event}, "X-Gitea-Delivery": {"68eda3db-9286-47f0-9331-706dd2ad68a2"},
				"X-Gitea-Signature": {signature}, "X-Gogs-Signature": {other},
			}
			w := httptest.NewRecorder()
			in.ServeHTTP(w, r)
			return w.Code
		}
		mac := hmac.New(sha256.New, []byte(hookSecret))
		mac.Write(body)
		right := hex.EncodeToString(mac.Sum(nil))
		code := send(signature, other)
		if given := stdcmp.Or(signature, other); !strings.EqualFold(given, right) && (len(in.published) > 0 || code < 400) {
			t.Errorf("signed %q: answered %d, published %v", given, code, in.published)
		}
		if code := send(right, ""); code >= 500 {
			t.Errorf("%q is answered with %d", body, code)
		}
		if len(in.published) > 2 {
			t.Errorf("%d events of two deliveries", len(in.published))
		}
	})
}
