//go:build e2e

package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver/seed"
)

// hook is a delivery of a webhook by the hands of a test.
type hook struct {
	event, kind, id, body string
	// header overwrites what a delivery of Gitea has; an empty value leaves it
	// out.
	header map[string]string
	method string
}

// sign is the signature that Gitea gives a body.
func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// deliver sends a delivery and returns the status of the answer.
func (b *bot) deliver(t *testing.T, h hook) int {
	t.Helper()
	if h.method == "" {
		h.method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), h.method, "http://"+b.addr+"/hooks/gitea", bytes.NewReader([]byte(h.body)))
	if err != nil {
		t.Error(err)
		return 0
	}
	header := map[string]string{
		"Content-Type": "application/json", "X-Gitea-Delivery": h.id, "X-Gitea-Event": h.event,
		"X-Gitea-Event-Type": h.kind, "X-Gitea-Signature": sign(webhookSecret, h.body),
	}
	maps.Copy(header, h.header)
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// pullHook is a delivery about the pull request.
func (p *page) pullHook(t *testing.T, kind, action, id, head string) hook {
	t.Helper()
	repo, _, err := p.reader.GetRepo(p.repo.Owner, p.repo.Name)
	if err != nil {
		t.Fatal(err)
	}
	return hook{event: "pull_request", kind: kind, id: id, body: fmt.Sprintf(
		`{"action":%q,"number":%d,"pull_request":{"number":%d,"head":{"sha":%q,"repo":null}},
		  "repository":{"id":%d,"name":%q,"owner":{"id":1,"login":%q}},"sender":{"id":2,"login":"bob"}}`,
		action, p.number, p.number, head, repo.ID, p.repo.Name, p.repo.Owner)}
}

// TestDeliveries: only what Gitea signed gets in, and what is odd about it does
// no harm.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{noWebhook: true})
	head := st.push(t, "a", "origin/main", write("clusters/a.yaml", "a: 1\n"))
	p := st.request(t, "a", "main")
	good := p.pullHook(t, "pull_request", "opened", "0f45fd40-92ea-41c7-9f60-0978961b7088", head)

	published := func() int {
		return st.bot.metric(t, "signalbox_bus_published_total", `stream="EVENTS"`, `result="ok"`)
	}
	with := func(change func(*hook)) hook {
		h := good
		change(&h)
		return h
	}
	header := func(name, value string) hook {
		return with(func(h *hook) { h.header = map[string]string{name: value} })
	}
	body := func(body string) hook { return with(func(h *hook) { h.body = body }) }
	before := published()
	for name, test := range map[string]struct {
		hook
		want int
	}{
		"no signature":         {header("X-Gitea-Signature", ""), http.StatusUnauthorized},
		"no hex":               {header("X-Gitea-Signature", "sha256=zz"), http.StatusUnauthorized},
		"another secret":       {header("X-Gitea-Signature", sign("another secret", good.body)), http.StatusUnauthorized},
		"secret that is empty": {header("X-Gitea-Signature", sign("", good.body)), http.StatusUnauthorized},
		"half a signature":     {header("X-Gitea-Signature", sign(webhookSecret, good.body)[:32]), http.StatusUnauthorized},
		"signature of GitHub": {with(func(h *hook) {
			h.header = map[string]string{"X-Gitea-Signature": "", "X-Hub-Signature-256": "sha256=" + sign(webhookSecret, h.body)}
		}), http.StatusUnauthorized},
		"form":                 {header("Content-Type", "application/x-www-form-urlencoded"), http.StatusUnsupportedMediaType},
		"no content type":      {header("Content-Type", ""), http.StatusUnsupportedMediaType},
		"get":                  {with(func(h *hook) { h.method = http.MethodGet }), http.StatusMethodNotAllowed},
		"over the limit":       {body(`{"a":"` + strings.Repeat("a", 8<<20) + `"}`), http.StatusRequestEntityTooLarge},
		"empty":                {body(""), http.StatusBadRequest},
		"no JSON":              {body("{"), http.StatusBadRequest},
		"null":                 {body("null"), http.StatusBadRequest},
		"list":                 {body("[]"), http.StatusBadRequest},
		"no repository":        {body(`{"action":"opened","number":1,"pull_request":{"number":1}}`), http.StatusBadRequest},
		"pull request is null": {body(`{"action":"reviewed","number":1,"pull_request":null,"repository":{"id":1,"name":"a","owner":{"login":"b"}}}`), http.StatusBadRequest},
		"unknown event":        {with(func(h *hook) { h.event, h.kind = "package", "package" }), http.StatusNoContent},
		"another repository":   {body(strings.ReplaceAll(strings.Replace(good.body, `"id":`, `"id":9`, 1), st.repo.Name, "not-configured")), http.StatusNoContent},
		"no event is named":    {header("X-Gitea-Event", ""), http.StatusNoContent},
		"review without a word": {with(func(h *hook) {
			h.event, h.kind, h.body = "issue_comment", "pull_request_comment", strings.ReplaceAll(h.body, `"number"`, `"n"`)
		}), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if got := st.bot.deliver(t, test.hook); got != test.want {
				t.Errorf("answered with %d, want %d", got, test.want)
			}
		})
	}
	if n := published() - before; n != 0 {
		t.Errorf("%d events were published", n)
	}

	t.Run("head.repo is null", func(t *testing.T) {
		if got := st.bot.deliver(t, good); got != http.StatusNoContent {
			t.Fatalf("answered with %d", got)
		}
		p.t = t
		p.shows(patience, "success", "pending", "Needs 1 approval")
	})

	t.Run("twice, late and in another order", func(t *testing.T) {
		p.t = t
		next := st.push(t, "a", "", write("clusters/a.yaml", "a: 2\n"))
		for _, h := range []hook{
			p.pullHook(t, "pull_request_sync", "synchronized", "second-head", next),
			good, // the same again
			with(func(h *hook) { h.id = "first-head-with-another-id" }),
		} {
			if got := st.bot.deliver(t, h); got != http.StatusNoContent {
				t.Fatalf("answered with %d", got)
			}
		}
		p.shows(patience, "success", "pending", next[:10])
		if n := published() - before; n != 3 {
			t.Errorf("%d events were published, want 3: a repeated id is one event", n)
		}
	})
	if n := st.bot.metric(t, "signalbox_bus_panics_total"); n != 0 {
		t.Errorf("%d panics", n)
	}
	if n := st.bot.metric(t, "signalbox_bus_dead_letters_total"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestBurst: much that happens to one pull request at once is little work, and
// no other waits for it.
func TestBurst(t *testing.T) {
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{})
	busy := st.open(t, "busy", write("clusters/busy.yaml", "a: 1\n"))
	s, _ := busy.shows(patience, "success", "pending")
	st.push(t, "calm", "origin/main", write("clusters/calm.yaml", "a: 1\n"))
	evaluations := func() int { return st.bot.metric(t, "signalbox_evaluations_total") }
	label := busy.pullHook(t, "pull_request_label", "label_updated", "", s.head)
	before := evaluations()

	const events = 200
	start := time.Now()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < events; i += 8 {
				h := label
				h.id = fmt.Sprintf("burst-of-events-%d", i)
				if got := st.bot.deliver(t, h); got != http.StatusNoContent {
					t.Errorf("answered with %d", got)
				}
			}
		})
	}
	head := st.push(t, "busy", "", write("clusters/busy.yaml", "a: 2\n"))
	calm := st.request(t, "calm", "main")
	opened := time.Now()
	calm.shows(patience, "success", "pending")
	took := time.Since(opened)
	all.Wait()
	sent := time.Since(start)
	busy.shows(patience, "success", "pending", head[:10])
	n := evaluations() - before
	t.Logf("%d events in %s: %d evaluations, of which 1 of the other pull request, shown after %s", events, sent, n, took)
	// One each time that the longest wait of 2 s is over, and for what came
	// after: the push, the opening, our own comments and statuses.
	if limit := 8 + int(sent.Seconds()); n > limit {
		t.Errorf("%d evaluations, want at most %d", n, limit)
	}
}

// TestDownMeanwhile: what happened while nobody listened is found at the start.
func TestDownMeanwhile(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{})
	bob := client(t, st.repo, st.repo.Bob)
	pushed := st.open(t, "pushed", write("clusters/pushed.yaml", "a: 1\n"))
	approved := st.open(t, "approved", write("clusters/approved.yaml", "a: 1\n"))
	closed := st.open(t, "closed", write("clusters/closed.yaml", "a: 1\n"))
	tampered := st.open(t, "tampered", write("clusters/tampered.yaml", "a: 1\n"))
	moved := st.open(t, "retargeted", write("clusters/retargeted.yaml", "a: 1\n"))
	st.push(t, "staging", "origin/main", write("docs/staging.md", "Staging.\n"))
	for _, p := range []*page{pushed, approved, closed, tampered, moved} {
		p.shows(patience, "success", "pending")
	}
	review(t, st.repo, st.repo.Carol, moved.number, sdk.ReviewStateApproved)
	moved.shows(patience, "success", "success")
	s, err := tampered.look()
	if err != nil {
		t.Fatal(err)
	}

	if err := st.bot.stop(); err != nil {
		t.Fatal(err)
	}
	head := st.push(t, "pushed", "", write("clusters/pushed.yaml", "a: 2\n"))
	review(t, st.repo, st.repo.Carol, approved.number, sdk.ReviewStateApproved)
	closed.close()
	if _, _, err := bob.CreateStatus(st.repo.Owner, st.repo.Name, s.head, sdk.CreateStatusOption{State: sdk.StatusSuccess, Context: "signalbox / approval (main)"}); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.DeleteIssueComment(st.repo.Owner, st.repo.Name, s.comments[0].ID); err != nil {
		t.Fatal(err)
	}
	moved.edit(sdk.EditPullRequestOption{Base: "staging"})
	opened := st.open(t, "opened", write("clusters/opened.yaml", "a: 1\n"))
	mark := len(st.bot.log())

	st.bot.start()
	start := time.Now()
	pushed.shows(patience, "success", "pending", head[:10])
	approved.shows(patience, "success", "success", "Approved by carol")
	tampered.shows(patience, "success", "pending", "bob posted the status")
	moved.shows(patience, "success", "pending", "the base was changed to staging since")
	opened.shows(patience, "success", "pending", "Needs 1 approval")
	t.Logf("5 pull requests caught up after %s", time.Since(start))
	st.bot.says(t, `"msg":"pull request left"`)
	if left := strings.Count(st.bot.log()[mark:], `"msg":"pull request left"`); left != 1 {
		t.Errorf("%d pull requests left, want that which was closed", left)
	}

	// Opened again it is one like any other, with the comment that it had.
	open := sdk.StateOpen
	closed.edit(sdk.EditPullRequestOption{State: &open})
	head = st.push(t, "closed", "", write("clusters/closed.yaml", "a: 2\n"))
	closed.shows(patience, "success", "pending", head[:10])
}
