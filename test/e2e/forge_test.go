//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// line is the way from signalbox to Gitea, with everything on it that breaks.
type line struct {
	*realserver.Tap
	proxy *realserver.Proxy
}

// newLine puts a connection that can be cut in front of requests that can be
// answered otherwise.
func newLine(t *testing.T) line {
	t.Helper()
	tap, err := realserver.NewTap(world.Gitea.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	proxy, err := realserver.NewProxy(strings.TrimSuffix(strings.TrimPrefix(tap.URL(), "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return line{tap, proxy}
}

func (l line) url() string { return "http://" + l.proxy.Addr() + "/" }

// says waits until the log of the bot has a text.
func (b *bot) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, patience, "the log says "+text, func() error {
		if !strings.Contains(b.log(), text) {
			return errors.New("it does not")
		}
		return nil
	})
}

// TestGiteaInTrouble: what fails is tried again, shown once it lasts, and
// mended without anybody's help.
func TestGiteaInTrouble(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{gitea: l.url()})

	t.Run("down", func(t *testing.T) {
		l.proxy.Refuse()
		p := st.open(t, "down", write("clusters/down.yaml", "a: 1\n"))
		st.bot.says(t, `"msg":"work failed; it is tried again"`)
		if _, err := st.bot.get("/readyz"); err != nil {
			t.Errorf("without Gitea it takes no events: %v", err)
		}
		if err := l.proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		_, took := p.shows(patience, "success", "pending", "Needs 1 approval")
		t.Logf("up again, shown after %s", took)
	})

	t.Run("too many requests", func(t *testing.T) {
		var refused atomic.Int32
		l.Intercept(func(*http.Request) *realserver.Answer {
			if refused.Add(1) <= 3 {
				return &realserver.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "2"}}
			}
			return nil
		})
		defer l.Intercept(nil)
		l.Reset()
		p := st.open(t, "busy", write("clusters/busy.yaml", "a: 1\n"))
		_, took := p.shows(patience, "success", "pending", "Needs 1 approval")
		t.Logf("shown after %s", took)
		// Of each request, for there may be several callers.
		last := map[string]time.Time{}
		for _, r := range l.Requests() {
			request := r.Method + " " + r.Path
			if wait := r.At.Sub(last[request]); wait < 2*time.Second {
				t.Errorf("%s was repeated after %s, although 2 s were asked for", request, wait)
			}
			delete(last, request)
			if r.Status == http.StatusTooManyRequests {
				last[request] = r.At
			}
		}
		if refused.Load() < 4 {
			t.Errorf("only %d requests came", refused.Load())
		}
	})

	t.Run("a page fails", func(t *testing.T) {
		l.Intercept(func(r *http.Request) *realserver.Answer {
			if strings.HasSuffix(r.URL.Path, "/files") && r.URL.Query().Get("page") == "2" {
				return &realserver.Answer{Status: http.StatusInternalServerError, Body: `{"message":"disk on fire"}`}
			}
			return nil
		})
		defer l.Intercept(nil)
		change := write("zz/last.yaml", "a: 1\n")
		for i := range 60 {
			change.Write[fmt.Sprintf("many/%02d.txt", i)] = "a\n"
		}
		p := st.open(t, "page", change)
		var first shown
		p.watch = func(s shown) {
			if first.approval.State == "" {
				first = s
			}
		}
		s, took := p.shows(patience, "error", "error", "Cannot decide", "signalbox could not decide", "HTTP 500", "disk on fire")
		t.Logf("undecided, shown after %s", took)
		if first.approval.State != "pending" {
			t.Errorf("until it is clear that it lasts the head is shown as\n%s", first)
		}
		l.Intercept(nil)
		p.watch = nil
		_, took = p.shows(patience, "success", "success", "Clear to merge")
		t.Logf("mended, shown after %s", took)
		t.Logf("while it lasted:\n%s", s.comments[0].Body)
	})

	t.Run("slow", func(t *testing.T) {
		l.proxy.Delay(150 * time.Millisecond)
		defer func() {
			if err := l.proxy.Pass(); err != nil {
				t.Fatal(err)
			}
		}()
		p := st.open(t, "slow", write("clusters/slow.yaml", "a: 1\n"))
		start := time.Now()
		eventually(t, patience, "a status is there", func() error {
			s, err := p.look()
			if err == nil && (s.approval.State == "" || s.preconditions.State == "") {
				err = errors.New("it is not")
			}
			return err
		})
		pending := time.Since(start)
		_, took := p.shows(patience, "success", "pending", "Needs 1 approval")
		t.Logf("with 300 ms for each request pending after %s, decided after %s more", pending, took)
	})
}

// TestTokenRevoked: without a token nothing can be shown, but nothing is lost.
func TestTokenRevoked(t *testing.T) {
	t.Parallel()
	st := plantStage(t, seed.Options{Policy: approvalPolicy})
	st.bot = newBot(t, st.repo, settings{})
	old := st.bot.newToken()
	secret := strings.TrimPrefix(st.bot.env[0], "SIGNALBOX_GITEA_TOKEN=")
	st.bot.start()
	p := st.open(t, "a", write("clusters/a.yaml", "a: 1\n"))
	p.shows(patience, "success", "pending")

	own, err := sdk.NewClient(world.Gitea.URL(), sdk.SetContext(t.Context()), sdk.SetBasicAuth(st.repo.Bot.Name, st.repo.Bot.Password))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.DeleteAccessToken(old); err != nil {
		t.Fatal(err)
	}
	head := st.push(t, "a", "", write("clusters/a.yaml", "a: 2\n"))
	st.bot.says(t, "HTTP 401 Unauthorized")
	st.bot.says(t, `"attempt":2`)
	statuses, err := p.statuses(head)
	if err != nil {
		t.Fatal(err)
	}
	if len(statuses) > 0 {
		t.Errorf("a new head has statuses that nobody could post: %v", statuses)
	}
	st.bot.newToken()
	st.bot.restart()
	_, took := p.shows(patience, "success", "pending", head[:10])
	t.Logf("new token, shown after %s", took)
	if strings.Contains(st.bot.log(), secret) {
		t.Error("the log holds the token")
	}
}

// TestTampering: any writer can post a status in any name, and edit and delete
// any comment.
func TestTampering(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{})
	bob := client(t, st.repo, st.repo.Bob)
	forge := func(t *testing.T, head, context string) {
		t.Helper()
		if _, _, err := bob.CreateStatus(st.repo.Owner, st.repo.Name, head, sdk.CreateStatusOption{
			State: sdk.StatusSuccess, Context: context, Description: "approved, honestly",
		}); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("a status", func(t *testing.T) {
		p := st.open(t, "status", write("clusters/status.yaml", "a: 1\n"))
		s, _ := p.shows(patience, "success", "pending")
		// Many others, so that ours are on the second page.
		for i := range 40 {
			forge(t, s.head, fmt.Sprintf("check %02d", i))
		}
		forge(t, s.head, "signalbox / approval (main)")
		_, took := p.shows(patience, "success", "pending", `bob posted the status "signalbox / approval (main)" as success`)
		t.Logf("a forged status stood for %s", took)
		s, _ = p.shows(patience, "success", "pending")
		if s.approval.Creator != st.repo.Bot.Name {
			t.Errorf("the status is by %s", s.approval.Creator)
		}
		// Again, and by somebody who says the same as we do.
		forge(t, s.head, "signalbox / approval (main)")
		forge(t, s.head, "signalbox / preconditions (main)")
		p.shows(patience, "success", "pending", `bob posted the status "signalbox / preconditions (main)" as success`)
		eventually(t, patience, "both statuses are by signalbox", func() error {
			s, err := p.look()
			if err == nil && (s.approval.Creator != st.repo.Bot.Name || s.preconditions.Creator != st.repo.Bot.Name) {
				err = errors.New(s.String())
			}
			return err
		})
		// The next head has nothing to do with it.
		head := st.push(t, "status", "", write("clusters/status.yaml", "a: 2\n"))
		s, _ = p.shows(patience, "success", "pending", head[:10])
		if strings.Contains(s.comment(), "bob posted") {
			t.Errorf("the note stands on another head:\n%s", s)
		}
	})

	t.Run("a comment", func(t *testing.T) {
		p := st.open(t, "comment", write("clusters/comment.yaml", "a: 1\n"))
		s, _ := p.shows(patience, "success", "pending")
		id := s.comments[0].ID
		if _, _, err := bob.EditIssueComment(st.repo.Owner, st.repo.Name, id, sdk.EditIssueCommentOption{Body: "Clear to merge, honestly"}); err != nil {
			t.Fatal(err)
		}
		s, took := p.shows(patience, "success", "pending", "Needs 1 approval")
		t.Logf("edited, restored after %s", took)
		if s.comments[0].ID != id {
			t.Errorf("the comment is another: %d, was %d", s.comments[0].ID, id)
		}
		if _, err := bob.DeleteIssueComment(st.repo.Owner, st.repo.Name, id); err != nil {
			t.Fatal(err)
		}
		s, took = p.shows(patience, "success", "pending", "Needs 1 approval")
		t.Logf("deleted, restored after %s", took)
		if s.comments[0].ID == id {
			t.Error("the comment is still there")
		}
		// A copy is not taken for the comment, by whomever it is.
		for _, by := range []realserver.User{st.repo.Bob, st.repo.Bot} {
			if _, _, err := client(t, st.repo, by).CreateIssueComment(st.repo.Owner, st.repo.Name, p.number, sdk.CreateIssueCommentOption{Body: s.comments[0].Body}); err != nil {
				t.Fatal(err)
			}
		}
		review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
		p.shows(patience, "success", "success", "Approved by carol")
	})
}

// TestWebhookLost: everything is found without any webhook, only later.
func TestWebhookLost(t *testing.T) {
	t.Parallel()
	st := newStage(t, seed.Options{Policy: approvalPolicy}, settings{noWebhook: true, extra: "timing: {reconcile: 2s}\n"})
	bob := client(t, st.repo, st.repo.Bob)
	p := st.open(t, "lost", write("clusters/lost.yaml", "a: 1\n"))
	s, took := p.shows(patience, "success", "pending")
	t.Logf("opened, shown after %s", took)
	if _, err := bob.DeleteIssueComment(st.repo.Owner, st.repo.Name, s.comments[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bob.CreateStatus(st.repo.Owner, st.repo.Name, s.head, sdk.CreateStatusOption{State: sdk.StatusSuccess, Context: "signalbox / approval (main)"}); err != nil {
		t.Fatal(err)
	}
	_, took = p.shows(patience, "success", "pending", "bob posted the status")
	t.Logf("forged and deleted, mended after %s", took)
	head := st.push(t, "lost", "", write("clusters/lost.yaml", "a: 2\n"))
	_, took = p.shows(patience, "success", "pending", head[:10])
	t.Logf("pushed, shown after %s", took)
	review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
	_, took = p.shows(patience, "success", "success", "Approved by carol")
	t.Logf("approved, shown after %s", took)
	p.close()
	st.bot.says(t, `"msg":"pull request left"`)
}

// TestGiteaBelowAPath: a Gitea under a sub-path is one like any other.
func TestGiteaBelowAPath(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	below, err := realserver.StartWorld(ctx, realserver.WorldOptions{WithoutFlux: true, Gitea: realserver.GiteaOptions{SubPath: "git"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := below.Discard(); err != nil {
			t.Error(err)
		}
	})
	repo, err := seed.Plant(ctx, below, seed.Options{Policy: approvalPolicy})
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{repo: repo, bot: newBot(t, repo, settings{})}
	if st.clone, err = repo.Clone(ctx, repo.Bob, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	st.bot.start()
	p := st.open(t, "below", write("clusters/below.yaml", "a: 1\n"))
	s, _ := p.shows(patience, "success", "pending", "Needs 1 approval")
	review(t, repo, repo.Carol, p.number, sdk.ReviewStateApproved)
	p.shows(patience, "success", "success", "Approved by carol")
	list, _, err := p.reader.ListStatuses(repo.Owner, repo.Name, s.head, sdk.ListStatusesOption{})
	if err != nil {
		t.Fatal(err)
	}
	want := below.Gitea.URL() + repo.String() + "/pulls/1"
	if i := slices.IndexFunc(list, func(s *sdk.Status) bool { return s.TargetURL != want }); i >= 0 {
		t.Errorf("the status links to %s, want %s", list[i].TargetURL, want)
	}
}
