package gitea_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/events"
	"signalbox/internal/gitea"
)

var update = flag.Bool("update", false, "write the golden files anew")

var now = time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)

// sample is a delivery of a real Gitea 1.26, signed with "whsecret".
type sample struct {
	name   string
	header http.Header
	body   []byte
}

// samples reads all deliveries in testdata.
func samples(t testing.TB) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/deliveries/*.http")
	if err != nil || len(files) == 0 {
		t.Fatalf("deliveries: %d files, error %v", len(files), err)
	}
	var out []sample
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, sample{strings.TrimSuffix(filepath.Base(file), ".http"), req.Header, body})
	}
	return out
}

// find returns the first delivery whose name contains a text.
func find(t testing.TB, part string) sample {
	t.Helper()
	for _, s := range samples(t) {
		if strings.Contains(s.name, part) {
			return s
		}
	}
	t.Fatalf("no delivery %q", part)
	return sample{}
}

func TestDecodeRealDeliveries(t *testing.T) {
	var out strings.Builder
	for _, s := range samples(t) {
		list, err := gitea.Decode(s.header, s.body, now)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if len(list) == 0 {
			fmt.Fprintf(&out, "%s\n\tignored\n", s.name)
		}
		for _, e := range list {
			if e.ID != "gitea/"+s.header.Get("X-Gitea-Delivery") || e.Source != "gitea" || !e.Time.Equal(now) {
				t.Errorf("%s: envelope %+v", s.name, e)
			}
			fmt.Fprintf(&out, "%s\n\t%s %s\n", s.name, e.Subject, e.Data)
		}
	}
	const golden = "testdata/events.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestDecodeHeaders(t *testing.T) {
	s := find(t, "-opened")
	id := s.header.Get("X-Gitea-Delivery")
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	tests := []struct {
		name   string
		header http.Header
		wantID string // Empty: ignored.
	}{
		{"Forgejo", headers("X-Forgejo-Event", "pull_request", "X-Forgejo-Event-Type", "pull_request", "X-Forgejo-Delivery", id), "gitea/" + id},
		{"Gogs", headers("X-Gogs-Event", "pull_request", "X-Gogs-Event-Type", "pull_request", "X-Gogs-Delivery", id), "gitea/" + id},
		{"without a type", headers("X-Gitea-Event", "pull_request", "X-Gitea-Delivery", id), "gitea/" + id},
		{"without an id", headers("X-Gitea-Event", "pull_request"), "gitea/body-"},
		{"with an id that could be anything", headers("X-Gitea-Event", "pull_request", "X-Gitea-Delivery", "a b\nc>d;"+id), "gitea/body-"},
		{"with an endless id", headers("X-Gitea-Event", "pull_request", "X-Gitea-Delivery", strings.Repeat("a", 65)), "gitea/body-"},
		{"of a type that belongs to another event", headers("X-Gitea-Event", "push", "X-Gitea-Event-Type", "status"), ""},
		{"of another event", headers("X-Gitea-Event", "wiki", "X-Gitea-Event-Type", "wiki"), ""},
		{"about assignees", headers("X-Gitea-Event", "pull_request", "X-Gitea-Event-Type", "pull_request_assign"), ""},
		{"none", headers(), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, err := gitea.Decode(tt.header, s.body, now)
			switch {
			case err != nil:
				t.Fatal(err)
			case tt.wantID == "" && len(list) != 0:
				t.Errorf("not ignored: %+v", list)
			case tt.wantID != "" && (len(list) != 1 || !strings.HasPrefix(list[0].ID, tt.wantID)):
				t.Errorf("got %+v, want an event with id %s", list, tt.wantID)
			}
		})
	}
	again, err := gitea.Decode(headers("X-Gitea-Event", "pull_request"), s.body, now.Add(time.Hour))
	first, err2 := gitea.Decode(headers("X-Gitea-Event", "pull_request"), s.body, now)
	if err != nil || err2 != nil || again[0].ID != first[0].ID {
		t.Errorf("one body without an id has ids %v and %v (errors %v, %v)", again, first, err, err2)
	}
}

// set changes a value in a delivery; a nil value deletes it.
func (s sample) set(t testing.TB, value any, path ...string) sample {
	t.Helper()
	var root map[string]any
	decoder := json.NewDecoder(bytes.NewReader(s.body))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		t.Fatal(err)
	}
	at := root
	for _, key := range path[:len(path)-1] {
		at = at[key].(map[string]any)
	}
	at[path[len(path)-1]] = value
	body, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	s.body = body
	return s
}

func TestDecodeMutilated(t *testing.T) {
	pullEvent, comment := find(t, "-opened"), find(t, "issue_comment")
	push, status := find(t, "01-push"), find(t, "21-status")
	run, job := find(t, "33-workflow_run"), find(t, "34-workflow_job")
	tests := []struct {
		name   string
		sample sample
		want   string // "", "ignored" or "error".
	}{
		{"pull_request null", pullEvent.set(t, nil, "pull_request"), "error"},
		{"head null", pullEvent.set(t, nil, "pull_request", "head"), ""},
		{"head.repo null", pullEvent.set(t, nil, "pull_request", "head", "repo"), ""},
		{"head.sha no commit", pullEvent.set(t, "../../x", "pull_request", "head", "sha"), ""},
		{"number missing at the top", pullEvent.set(t, nil, "number"), ""},
		{"number negative", pullEvent.set(t, -1, "number"), "error"},
		{"number too large", pullEvent.set(t, json.Number("99999999999999999999"), "number"), "error"},
		{"repository null", pullEvent.set(t, nil, "repository"), "error"},
		{"repository without owner", pullEvent.set(t, nil, "repository", "owner"), "error"},
		{"repository id 0", pullEvent.set(t, 0, "repository", "id"), "error"},
		{"sender null", pullEvent.set(t, nil, "sender"), ""},
		{"action missing", pullEvent.set(t, nil, "action"), "error"},
		{"action no word", pullEvent.set(t, "x y", "action"), "error"},
		{"action new", pullEvent.set(t, "converted_to_draft", "action"), ""},
		{"comment null", comment.set(t, nil, "comment"), "error"},
		{"comment.user null", comment.set(t, nil, "comment", "user"), ""},
		{"comment pull_request null", comment.set(t, nil, "pull_request"), ""},
		{"comment issue null", comment.set(t, nil, "issue"), "error"},
		{"comment on an issue", comment.set(t, false, "is_pull"), "ignored"},
		{"comment action new", comment.set(t, "pinned", "action"), "error"},
		{"push of a tag", push.set(t, "refs/tags/v1", "ref"), "ignored"},
		{"push without ref", push.set(t, nil, "ref"), "error"},
		{"push of nothing", push.set(t, "refs/heads/", "ref"), "error"},
		{"push from no commit", push.set(t, "HEAD~1", "before"), "error"},
		{"push of a slash branch", push.set(t, "refs/heads/a/b", "ref"), ""},
		{"status without sha", status.set(t, nil, "sha"), "error"},
		{"status of a short sha", status.set(t, "abc123", "sha"), "error"},
		{"run null", run.set(t, nil, "workflow_run"), "error"},
		{"run without an id", run.set(t, nil, "workflow_run", "id"), "error"},
		{"run of no repository", run.set(t, nil, "repository"), "error"},
		{"run without a commit", run.set(t, nil, "workflow_run", "head_sha"), ""},
		{"run of no commit", run.set(t, "main", "workflow_run", "head_sha"), ""},
		{"run without a path", run.set(t, nil, "workflow_run", "path"), ""},
		{"run without a workflow", run.set(t, nil, "workflow"), ""},
		{"run without a status", run.set(t, nil, "workflow_run", "status"), ""},
		{"run with a status that is no word", run.set(t, "so so", "workflow_run", "status"), "error"},
		{"run without any status", run.set(t, nil, "workflow_run", "status").set(t, nil, "action"), "error"},
		{"run without a sender", run.set(t, nil, "sender"), ""},
		{"job null", job.set(t, nil, "workflow_job"), "error"},
		{"job without a run", job.set(t, nil, "workflow_job", "run_id"), "error"},
		{"job without a name", job.set(t, nil, "workflow_job", "name"), ""},
		{"job without a commit", job.set(t, nil, "workflow_job", "head_sha"), ""},
		{"wrong type of a field", pullEvent.set(t, "1", "repository", "id"), "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, err := gitea.Decode(tt.sample.header, tt.sample.body, now)
			got := ""
			switch {
			case err != nil:
				got = "error"
			case len(list) == 0:
				got = "ignored"
			}
			if got != tt.want {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
	for _, body := range []string{"", "null", "[]", "{}", "{", `"x"`} {
		if list, err := gitea.Decode(pullEvent.header, []byte(body), now); err == nil {
			t.Errorf("body %q gave %v", body, list)
		}
	}
}

func FuzzDecode(f *testing.F) {
	// Short ones: the real deliveries are so long that making them shorter is
	// all that the fuzzer would do.
	const repo = `"repository":{"id":2,"name":"home","owner":{"login":"ops"}},"sender":{"id":-2,"login":"bob"}`
	const id = "68eda3db-9286-47f0-9331-706dd2ad68a2"
	const sha = "09bcfe55288e1dca916c0a330082084838861cd2"
	for _, seed := range []struct{ event, kind, body string }{
		{"pull_request", "pull_request", `{"action":"closed","number":1,"pull_request":{"merged":true,"head":{"sha":"` + sha + `"}},` + repo + `}`},
		{"pull_request", "pull_request", `{"action":"edited","number":1,"pull_request":{},"changes":{"ref":{"from":"main"}},` + repo + `}`},
		{"pull_request_approved", "pull_request_review_approved", `{"action":"reviewed","pull_request":{"number":1},` + repo + `}`},
		{"issue_comment", "pull_request_comment", `{"action":"created","is_pull":true,"issue":{"number":1},"comment":{"id":5,"user":null},` + repo + `}`},
		{"push", "push", `{"ref":"refs/heads/a/b","before":"` + sha + `","after":"` + sha + `",` + repo + `}`},
		{"status", "status", `{"sha":"` + sha + `","context":"ci","state":"success",` + repo + `}`},
		{"workflow_run", "workflow_run", `{"action":"requested","workflow_run":{"id":3,"path":"a@b.yaml@refs/heads/main","head_sha":"` + sha + `","status":"queued"},` + repo + `}`},
		{"workflow_job", "workflow_job", `{"action":"completed","workflow_job":{"id":5,"run_id":3,"name":"lint","head_sha":"","status":"completed","conclusion":"skipped"},` + repo + `}`},
		{"wiki", "wiki", `{}`},
	} {
		f.Add(seed.event, seed.kind, id, []byte(seed.body))
		if list, err := gitea.Decode(http.Header{"X-Gitea-Event": {seed.event}, "X-Gitea-Event-Type": {seed.kind}}, []byte(seed.body), now); err != nil {
			f.Fatalf("seed of %s: %v, error %v", seed.kind, list, err)
		}
	}
	f.Fuzz(func(t *testing.T, event, kind, id string, body []byte) {
		h := http.Header{"X-Gitea-Event": {event}, "X-Gitea-Event-Type": {kind}, "X-Gitea-Delivery": {id}}
		list, err := gitea.Decode(h, body, now)
		if err != nil && list != nil {
			t.Errorf("both %v and error %v", list, err)
		}
		for _, e := range list {
			p, err := events.Decode(e)
			if err != nil || p.BusSubject() != e.Subject {
				t.Errorf("event %+v: payload %v, error %v", e, p, err)
			}
			if strings.ContainsAny(e.ID, " \n*>") || len(e.ID) > 80 || strings.ContainsAny(e.Subject, " \n*>") {
				t.Errorf("event with id %q and subject %q", e.ID, e.Subject)
			}
		}
	})
}
