package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/digest"
	"signalbox/internal/events"
	"signalbox/internal/handlers"
	"signalbox/internal/schedule"
	"signalbox/internal/secret"
)

// TestOutlook lets something break and recover, and hears of it: by an alert, by a
// digest, when somebody asks, on a page and from the API.
func TestOutlook(t *testing.T) {
	l := &lounge{world: newWorld(t, worldOptions{}), parlor: &parlor{}, room: chat.Room{Platform: chat.Slack, ID: "C1"}}
	l.cluster.Kustomization("flux-system", "platform-config").Failing("BuildFailed", noMatches)
	l.must(l.cluster.Apply(gitRepository(t, l.world)))
	told, urgent := chat.Room{Platform: chat.Slack, ID: "C2"}, chat.Room{Platform: chat.Slack, ID: "C3"}
	daily, err := schedule.Parse("@daily", "UTC")
	l.must(err)
	var c *config.Config
	token := strings.Repeat("t", 32)
	l.open2(func(given *config.Config) {
		c = given
		about := config.About{Sections: []digest.Section{digest.Flux, digest.Gate}}
		c.Digests = []config.Digest{{Name: "morning", Times: daily, About: about, Rooms: []chat.Room{told}, Issues: []string{l.repo.String()}, Chart: true}}
		c.Alerts = []config.Alert{{Name: "urgent", About: config.About{Sections: about.Sections[:1]}, Settle: 50 * time.Millisecond, Rooms: []chat.Room{urgent}}}
		c.Web.URL, _ = url.Parse("http://" + l.addr + "/")
		c.Web.Public, c.Web.APIToken = true, secret.New(token)
		c.Bus.Embedded = &config.Embedded{Dir: l.dir}
	})
	number := l.open("a", clusterChange)
	l.shows(number, "pending", "pending")

	in := func(room chat.Room, n int, texts ...string) {
		t.Helper()
		l.eventually(fmt.Sprintf("%s is told %q", room, texts), func() string {
			all := slices.DeleteFunc(l.parlor.in(room), isPicture)
			if len(all) != n {
				return fmt.Sprintf("%d messages, want %d", len(all), n)
			}
			for _, text := range texts {
				if !strings.Contains(all[n-1].body.Text+all[n-1].body.Blocks, text) {
					return "it says " + all[n-1].body.Text
				}
			}
			return ""
		})
	}
	in(urgent, 1, "platform-config", "no matches for kind")
	l.eventually("a sample is taken", func() string {
		if len(l.app.outlook.samples.Held(time.Now())) == 0 {
			return "there is none"
		}
		return ""
	})
	tick := events.Tick{Name: handlers.DigestTick + "morning", At: time.Now().Truncate(time.Second)}
	for range 2 {
		e, err := events.New(tick.ID(), "clock", tick.At, tick)
		l.must(err)
		l.must(l.app.bus.Publish(t.Context(), e))
	}
	in(told, 1, "morning", "platform-config", "no matches for kind")
	l.eventually("a picture is shown in the thread", func() string {
		i := slices.IndexFunc(l.parlor.in(told), isPicture)
		if i < 0 {
			return "there is none"
		}
		if p := l.parlor.in(told)[i]; p.thread == "" || !strings.Contains(p.body.Text, "%") {
			return fmt.Sprintf("it is in %q and says %s", p.thread, p.body.Text)
		}
		return ""
	})

	// The status leads to the page, which says the same, and so does the API.
	statuses, err := l.eyes.Statuses(t.Context(), l.repo, l.head(number))
	l.must(err)
	if len(statuses) == 0 {
		t.Fatal("there are no statuses")
	}
	page := fmt.Sprintf("/pulls/%s/%d", l.repo, number)
	for path, want := range map[string]string{
		"/": "Move the profile", page: "no matches for kind", "/clusters/prod": "platform-config", "/digests": "morning",
		"/digests/now": "no matches for kind", "/audit": "Audit", "/health": "Gitea",
		"/api/v1/pulls": `"waiting"`, "/api/v1/digests/now": "no matches for kind",
	} {
		if body := l.fetch(path, token); !strings.Contains(body, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, body)
		}
	}

	// Whoever asks on the machine, or in a room of the digest.
	report, err := askDigest(t.Context(), c, "morning", false)
	l.must(err)
	if report.Counts.Open[digest.Flux] == 0 || !report.Scheduled.Equal(tick.At) {
		t.Errorf("bot digest has %+v", report)
	}
	l.hears(l.says("mallory", "digest"), "signalbox knows")
	l.hears(l.says("bob", "digest"), "platform-config")
	l.hears(l.says("bob", "digest"), "/digests/now")
	l.hears(l.says("bob", "digest weekly"), "Which digest? There are: morning")

	l.ready()
	in(urgent, 2, "platform-config")
	report, err = askDigest(t.Context(), c, "morning", true)
	l.must(err)
	if len(report.Recovered) == 0 || report.Counts.Open[digest.Flux] != 0 {
		t.Errorf("bot digest --now has %+v", report)
	}

	// The same person signs in on a page, and approves there: it is a command.
	given := &handlers.Pages{
		Requests: l.app.talk.requests, Records: l.app.evaluator.Records, Repositories: l.app.evaluator.Repositories,
		Queue: l.app.bus.Work(), Address: l.app.pullPage, Now: time.Now,
	}
	carol, err := l.eyes.UserByName(t.Context(), "carol")
	l.must(err)
	l.must(given.Give(t.Context(), "web/1", carol, l.ref(number), "approve", l.head(number)))
	l.shows(number, "success", "success", "carol")
	body := l.fetch("/api/v1/audit", token)
	if !strings.Contains(body, `"web"`) || !strings.Contains(body, "carol") {
		t.Errorf("the ledger is %s", body)
	}
}

func isPicture(s said) bool { return strings.HasPrefix(s.cause, "picture/") }

// gitRepository is the source of the Kustomizations, at the tip of main.
func gitRepository(t *testing.T, w *world) *unstructured.Unstructured {
	t.Helper()
	tip, err := w.forge.Tip(t.Context(), w.repo, "main")
	w.must(err)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": map[string]any{"namespace": "flux-system", "name": "flux-system", "generation": int64(1)},
		"status": map[string]any{
			"observedGeneration": int64(1), "artifact": map[string]any{"revision": "main@sha1:" + tip},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": "2026-09-01T00:00:00Z"}},
		},
	}}
}

// fetch reads a page or an answer of the API.
func (w *world) fetch(path, token string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+w.addr+path, nil)
	w.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	w.must(err)
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s answers %s: %s", path, resp.Status, body)
	}
	return string(body)
}

func TestDigestCommandRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "signalbox.yaml")
	text := `gitea: {url: "https://gitea.example.org/", webhook: {manage: false}}
repositories: [{name: ops/home}]
chat: {slack: {}}
digests:
  - {name: a, schedule: "@daily", to: [{slack: C0123456}]}
  - {name: b, schedule: "@daily", to: [{slack: C0123456}]}
bus: {embedded: {dir: data}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"several":       {nil, "several digests are configured; name one of a, b"},
		"another":       {[]string{"c"}, `there is no digest "c"; there are a, b`},
		"another form":  {[]string{"a", "-o", "yaml"}, `--output "yaml" is not known`},
		"nobody there":  {[]string{"a", "--now"}, "no signalbox runs on"},
		"too many args": {[]string{"a", "b"}, "accepts at most 1 arg"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := newRoot()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(append([]string{"digest", "--config", file}, tt.args...))
			if err := cmd.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
