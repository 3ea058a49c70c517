package gitea_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// mergeErrors are the errors of a merge that exclude one another.
var mergeErrors = map[string]error{
	"ErrHeadMoved": pull.ErrHeadMoved, "ErrStillChecking": pull.ErrStillChecking, "ErrMergeConflict": pull.ErrMergeConflict,
	"ErrNotAllowed": pull.ErrNotAllowed, "ErrAlreadyMerged": pull.ErrAlreadyMerged, "ErrOutcomeUnknown": pull.ErrOutcomeUnknown,
}

// kind tells which of the errors an error is.
func kind(err error) string {
	var names []string
	for name, known := range mergeErrors {
		if errors.Is(err, known) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

func TestMergeAnswers(t *testing.T) {
	message := func(text string) string {
		data, err := json.Marshal(map[string]string{"message": text, "url": "https://example.org/api/swagger"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, tt := range []struct {
		name  string
		with  http.HandlerFunc
		kind  string
		is    error
		words string
	}{
		{"done", answer(200, ""), "", nil, ""},
		{"scheduled", answer(201, ""), "ErrOutcomeUnknown", nil, "201"},
		{"moved head", answer(409, message("head out of date")), "ErrHeadMoved", nil, "head out of date"},
		{"moved base", answer(409, message("merge push out of date")), "ErrStillChecking", nil, "merge push out of date"},
		{
			"another was merged at that moment",
			answer(409, message("PushRejected with remote message: cannot lock ref 'refs/heads/main': is at d21dbf but expected 62b713")), "ErrStillChecking", nil, "cannot lock ref",
		},
		{"refused push", answer(409, message("PushRejected with remote message: head out of date")), "ErrNotAllowed", nil, "remote message"},
		{
			"conflict", answer(409, `{"Style":"merge","StdOut":"CONFLICT (content): Merge conflict in a.yaml\n","StdErr":"","Err":{}}`),
			"ErrMergeConflict", nil, "Merge conflict in a.yaml",
		},
		{"conflict that is not JSON", answer(409, "no"), "ErrMergeConflict", nil, "409"},
		{"merged", answer(405, message("The PR is already merged")), "ErrAlreadyMerged", nil, ""},
		{"not allowed", answer(405, message("User not allowed to merge PR")), "ErrNotAllowed", nil, "User not allowed to merge PR"},
		{"not ready", answer(405, message("Does not have enough approvals")), "ErrNotAllowed", nil, "Does not have enough approvals"},
		{"forbidden", answer(403, message("token does not have the scope")), "ErrNotAllowed", gitea.ErrForbidden, "scope"},
		{"archived", answer(423, message("ops/home is archived")), "ErrNotAllowed", nil, "archived"},
		{"unknown method", answer(422, message("[Do]: In")), "ErrNotAllowed", nil, "[Do]: In"},
		{"no token", answer(401, message("token is required")), "", gitea.ErrUnauthorized, ""},
		{"too many", answer(429, "", "Retry-After", "1"), "", nil, "429"},
		{"failure within", answer(500, message("")), "ErrOutcomeUnknown", nil, "500"},
		{"bad gateway", answer(502, "<html>no</html>", "Content-Type", "text/html"), "ErrOutcomeUnknown", nil, "502"},
		{"gateway timeout", answer(504, ""), "ErrOutcomeUnknown", nil, "504"},
		{"cut before an answer", cut(""), "ErrOutcomeUnknown", nil, ""},
		{"cut within an answer", cut("{"), "ErrOutcomeUnknown", nil, ""},
		{"an answer of another server", answer(418, "tea"), "ErrOutcomeUnknown", nil, "418"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := script{answers: []http.HandlerFunc{tt.with}}
			c, _ := newClient(t, s.serve, nil)
			err := c.Merge(t.Context(), repo, 7, pull.MergeOptions{Head: sha})
			if (err == nil) != (tt.kind == "" && tt.is == nil && tt.words == "") || kind(err) != tt.kind {
				t.Errorf("error %v is %q, want %q", err, kind(err), tt.kind)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %v", err, tt.is)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), "merge ops/home.gitops#7")) {
				t.Errorf("error %q lacks what was merged or %q", err, tt.words)
			}
			if got := s.calls.Load(); got != 1 {
				t.Errorf("it was sent %d times", got)
			}
		})
	}
}

func TestMergeIsAskedFor(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	var body map[string]any
	w.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method == http.MethodPost {
			body = nil
			data, err := io.ReadAll(r.Body)
			if err != nil || json.Unmarshal(data, &body) != nil {
				t.Errorf("body %q, error %v", data, err)
			}
			return &giteatest.Response{Code: 200}
		}
		return nil
	})
	w.must(w.client.Merge(t.Context(), w.repo, w.number, pull.MergeOptions{Method: "squash", Head: w.head, Title: "One", Message: "Two"}))
	want := map[string]any{"Do": "squash", "head_commit_id": w.head, "MergeTitleField": "One", "MergeMessageField": "Two"}
	if d := cmp.Diff(want, body); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
	w.must(w.client.Merge(t.Context(), w.repo, w.number, pull.MergeOptions{Head: w.head}))
	if d := cmp.Diff(map[string]any{"Do": "merge", "head_commit_id": w.head}, body); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
}

// TestMergeWithoutAnAnswer merges, and cuts the connection then.
func TestMergeWithoutAnAnswer(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	w.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method != http.MethodPost {
			return nil
		}
		if _, err := w.Merge(t.Context(), w.repo, w.number, "bot"); err != nil {
			t.Error(err)
		}
		return &giteatest.Response{Code: 200, Break: true}
	})
	err := w.client.Merge(t.Context(), w.repo, w.number, pull.MergeOptions{Head: w.head})
	if kind(err) != "ErrOutcomeUnknown" {
		t.Errorf("error %v, want ErrOutcomeUnknown", err)
	}
	p, err := w.client.Pull(t.Context(), w.repo, w.number)
	w.must(err)
	if p.State != pull.Merged || p.MergedBy.Login != "bot" || p.MergeCommit == "" {
		t.Errorf("looking shows %+v", p)
	}
}

func TestMergeThatTakesTooLong(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	c, _ := newClient(t, func(http.ResponseWriter, *http.Request) { <-release }, func(c *gitea.Config) {
		c.Timeout = 20 * time.Millisecond
	})
	err := c.Merge(t.Context(), repo, 7, pull.MergeOptions{Head: sha})
	if kind(err) != "ErrOutcomeUnknown" || !strings.Contains(err.Error(), "80ms") {
		t.Errorf("error %v, want ErrOutcomeUnknown after four times the timeout", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("shutting down"))
	if err := c.Merge(ctx, repo, 7, pull.MergeOptions{Head: sha}); kind(err) != "" || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("error %v of a merge that was not sent", err)
	}
}

func TestMergeOfAServerThatIsAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := gitea.New(gitea.Config{URL: "http://" + address, Token: secret.New(token)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Merge(t.Context(), repo, 7, pull.MergeOptions{Head: sha}); err == nil || kind(err) != "" {
		t.Errorf("error %v: nothing was sent", err)
	}
}

func TestMergeInARenamedRepository(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	_, err := w.RenameRepo(t.Context(), w.repo, "elsewhere")
	w.must(err)
	err = w.client.Merge(t.Context(), w.repo, w.number, pull.MergeOptions{Head: w.head})
	if !errors.Is(err, gitea.ErrMoved) || kind(err) != "" {
		t.Errorf("error %v, want ErrMoved alone", err)
	}
}

// waiting makes a world in which Gitea looks for conflicts, and a client that
// waits for it.
func waiting(t *testing.T, wait time.Duration) *world {
	t.Helper()
	w := newWorld(t, giteatest.Options{})
	w.must(w.SetChecking(t.Context(), w.repo, w.number, true))
	_, botToken, err := w.CreateUser(t.Context(), "merger")
	w.must(err)
	w.must(w.Grant(t.Context(), w.repo, "merger", giteatest.Write))
	w.client, err = gitea.New(gitea.Config{
		URL: w.URL(), Token: secret.New(botToken), Pause: time.Millisecond, MergeWait: wait,
	}, nil, nil)
	w.must(err)
	return w
}

// atSecondLook runs f before the second look at the pull request.
func (w *world) atSecondLook(f func()) {
	looks := 0
	w.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method == http.MethodGet {
			if looks++; looks == 2 {
				f()
			}
		}
		return nil
	})
}

func TestMergeWhileGiteaLooksForConflicts(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(*world)
		want      string
	}{
		"the search ends": {func(w *world) { w.must(w.SetChecking(w.t.Context(), w.repo, w.number, false)) }, "ErrStillChecking"},
		"a push comes":    {func(w *world) { w.push("change", "more.yaml") }, "ErrHeadMoved"},
		"somebody merges": {func(w *world) {
			w.must(w.SetChecking(w.t.Context(), w.repo, w.number, false))
			_, err := w.Merge(w.t.Context(), w.repo, w.number, "bob")
			w.must(err)
		}, "ErrAlreadyMerged"},
		"it is closed": {func(w *world) { w.must(w.SetOpen(w.t.Context(), w.repo, w.number, "alice", false)) }, "ErrNotAllowed"},
		"Gitea goes":   {func(w *world) { w.Down(true) }, "ErrStillChecking"},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiting(t, 8*time.Second)
			w.atSecondLook(func() { tt.meanwhile(w) })
			err := w.client.Merge(t.Context(), w.repo, w.number, pull.MergeOptions{Head: w.head})
			if kind(err) != tt.want {
				t.Errorf("error %v is %q, want %q", err, kind(err), tt.want)
			}
		})
	}
	t.Run("it does not end", func(t *testing.T) {
		w := waiting(t, 40*time.Millisecond)
		err := w.client.Merge(t.Context(), w.repo, w.number, pull.MergeOptions{Head: w.head})
		if kind(err) != "ErrMergeConflict" || !strings.Contains(err.Error(), "40ms") {
			t.Errorf("error %v, want ErrMergeConflict", err)
		}
	})
	t.Run("who asks leaves", func(t *testing.T) {
		w := waiting(t, 8*time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		w.atSecondLook(func() { cancel(errors.New("shutting down")) })
		err := w.client.Merge(ctx, w.repo, w.number, pull.MergeOptions{Head: w.head})
		if kind(err) != "ErrStillChecking" || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("error %v, want ErrStillChecking", err)
		}
	})
}
