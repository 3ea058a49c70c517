package web_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/internal/pull"
	"signalbox/internal/web/webtest"
)

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func TestWhoSeesWhat(t *testing.T) {
	gitea := errors.New("gitea is down")
	tests := []struct {
		name   string
		as     pull.Person
		public bool
		err    error
		// sees are the repositories of the board; nil leads to the sign-in.
		sees []pull.Repo
	}{
		{"nobody", pull.Person{}, false, nil, nil},
		{"who may read nothing", webtest.Carol, false, nil, []pull.Repo{}},
		{"who may read one", webtest.Bob, false, nil, []pull.Repo{webtest.Home}},
		{"who may read two", webtest.Alice, false, nil, []pull.Repo{webtest.Home, webtest.Apps}},
		{"an operator", webtest.Root, false, nil, []pull.Repo{webtest.Home, webtest.Apps, webtest.Secret}},
		{"anybody where it is public", pull.Person{}, true, nil, []pull.Repo{webtest.Home, webtest.Apps, webtest.Secret}},
		{"with an account where it is public", webtest.Carol, true, nil, []pull.Repo{webtest.Home, webtest.Apps, webtest.Secret}},
		{"while rights cannot be read", webtest.Alice, false, gitea, []pull.Repo{}},
		{"where signalbox may not know", webtest.Alice, false, fmt.Errorf("read: %w", pull.ErrForbidden), []pull.Repo{}},
		{"an operator while rights cannot be read", webtest.Root, false, gitea, []pull.Repo{webtest.Home, webtest.Apps, webtest.Secret}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := webtest.New()
			w.RightsError = tt.err
			for _, repo := range []pull.Repo{webtest.Home, webtest.Apps, webtest.Secret} {
				w.SetPull(webtest.Standing(repo, repo.ID, "change of "+repo.Name))
				w.Enter(webtest.Entry(webtest.Standing(repo, 100, ""), "comment/"+repo.Name, "approve", webtest.Alice, webtest.Now, ""))
			}
			c := w.Config()
			c.Public = tt.public
			b := w.BrowserOf(t, c, tt.as)
			board := b.Get("/")
			if tt.sees == nil {
				if board.Code != http.StatusSeeOther || strings.Contains(board.Body.String(), "change of") {
					t.Errorf("board: %d %s", board.Code, board.Body)
				}
				return
			}
			nothing := b.Get("/pulls/nobody/nothing/1")
			for _, repo := range []pull.Repo{webtest.Home, webtest.Apps, webtest.Secret} {
				sees := false
				for _, r := range tt.sees {
					sees = sees || r == repo
				}
				if got := strings.Contains(board.Body.String(), "change of "+repo.Name); got != sees {
					t.Errorf("the board shows %s: %v, want %v", repo, got, sees)
				}
				for _, path := range []string{fmt.Sprintf("/pulls/%s/%d", repo, repo.ID), fmt.Sprintf("/pulls/%s/100", repo)} {
					got := b.Get(path)
					switch {
					case sees && got.Code != http.StatusOK:
						t.Errorf("%s: %d", path, got.Code)
					case !sees && (got.Code != http.StatusNotFound || strings.ReplaceAll(got.Body.String(), path, "") != strings.ReplaceAll(nothing.Body.String(), "/pulls/nobody/nothing/1", "")):
						t.Errorf("%s: %d, and not as what does not exist:\n%s\nwant\n%s", path, got.Code, got.Body, nothing.Body)
					}
				}
				live := fmt.Sprintf("/live?ref=%d.1", repo.ID)
				if !sees {
					if got := b.Get(live); got.Code != http.StatusNotFound {
						t.Errorf("%s: %d", live, got.Code)
					}
				}
			}
		})
	}
}

// TestRightsAreAskedSeldom: each repository is asked for once a minute, however
// much there is in it, and a right that was taken is gone then.
func TestRightsAreAskedSeldom(t *testing.T) {
	w := webtest.New()
	now := webtest.Now
	w.Clock = func() time.Time { return now }
	w.Fill(5000)
	b := w.Browser(t, webtest.Alice)
	for range 20 {
		b.Get("/")
		b.Get("/pulls/ops/home-gitops/1000")
	}
	if got := w.Asked(); got != 3 {
		t.Errorf("asked %d times, want 3", got)
	}
	w.SetPermission("alice", webtest.Home, pull.PermissionNone)
	now = now.Add(time.Minute)
	if got := b.Get("/pulls/ops/home-gitops/1000"); got.Code != http.StatusNotFound {
		t.Errorf("a minute after the right was taken: %d", got.Code)
	}
	if got := w.Asked(); got != 6 {
		t.Errorf("asked %d times, want 6", got)
	}
}
