package gitea_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// world is a stand-in with a repository of bot's, in which alice has an open
// pull request.
type world struct {
	*giteatest.Server

	t      *testing.T
	repo   pull.Repo
	number int64
	head   string
	client *gitea.Client
	token  string
}

func newWorld(t *testing.T, options giteatest.Options) *world {
	t.Helper()
	s, err := giteatest.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	w := &world{Server: s, t: t}
	ctx := t.Context()
	for _, login := range []string{"alice", "bob"} {
		_, _, err := s.CreateUser(ctx, login)
		w.must(err)
	}
	_, w.token, err = s.CreateUser(ctx, "bot")
	w.must(err)
	w.repo, err = s.CreateRepo(ctx, "bot", "home.gitops", map[string]string{"README.md": "Home\n"})
	w.must(err)
	w.must(s.Grant(ctx, w.repo, "alice", giteatest.Write))
	w.must(s.Grant(ctx, w.repo, "bob", giteatest.Write))
	w.head = w.push("change", "x.yaml")
	w.number, err = s.OpenPull(ctx, w.repo, giteatest.NewPull{As: "alice", Title: "Change", Head: "change"})
	w.must(err)
	w.client, err = gitea.New(gitea.Config{URL: s.URL(), Token: secret.New(w.token), Pause: time.Millisecond}, nil, nil)
	w.must(err)
	s.ResetCalls()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// push writes files to a branch as alice.
func (w *world) push(branch string, files ...string) string {
	w.t.Helper()
	content := map[string]string{}
	for _, f := range files {
		content[f] = "at " + time.Now().String() + "\n"
	}
	sha, err := w.Push(w.t.Context(), w.repo, giteatest.Push{As: "alice", Branch: branch, Files: content})
	w.must(err)
	return sha
}

// during runs f once, when a call for the given page of a list comes.
func (w *world) during(path, page string, f func()) {
	var once sync.Once
	w.Fail(func(r *http.Request) *giteatest.Response {
		if strings.HasSuffix(r.URL.Path, path) && r.URL.Query().Get("page") == page {
			once.Do(f)
		}
		return nil
	})
}

func names(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("f/%03d.yaml", i))
	}
	return out
}

func TestListsAreCompleteWhateverThePage(t *testing.T) {
	for _, size := range []int{1, 7, 50, 100} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newWorld(t, giteatest.Options{MaxItems: size})
			ctx := t.Context()
			w.push("change", names(60)...)
			files, err := w.client.Files(ctx, w.repo, w.number)
			if err != nil || len(files) != 61 {
				t.Errorf("%d files, error %v; want 61", len(files), err)
			}
			for range 20 {
				_, err := w.Review(ctx, w.repo, w.number, "bob", giteatest.Remark, "hm")
				w.must(err)
			}
			reviews, err := w.client.Reviews(ctx, w.repo, w.number)
			if err != nil || len(reviews) != 20 {
				t.Errorf("%d reviews, error %v; want 20", len(reviews), err)
			}
			moments, err := w.client.Timeline(ctx, w.repo, w.number)
			found := slices.DeleteFunc(moments, func(m pull.Moment) bool { return m.Kind != pull.MomentReview })
			if err != nil || len(found) != 20 {
				t.Errorf("%d reviews in the timeline, error %v; want 20", len(found), err)
			}
		})
	}
}

func TestFilesOfOneHead(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 10})
	ctx := t.Context()
	w.push("change", names(29)...)
	want := func(n int) {
		t.Helper()
		files, err := w.client.Files(ctx, w.repo, w.number)
		if err != nil || len(files) != n {
			t.Errorf("%d files, error %v; want %d", len(files), err, n)
		}
	}
	want(30)
	w.during("/files", "2", func() { w.push("change", "another.yaml") })
	want(31)
	// As many files as before, but of another head.
	w.during("/files", "2", func() { w.push("change", "x.yaml") })
	if _, err := w.client.Files(ctx, w.repo, w.number); !errors.Is(err, gitea.ErrIncomplete) {
		t.Errorf("files of two heads: error %v, want ErrIncomplete", err)
	}
	w.Fail(func(r *http.Request) *giteatest.Response {
		if r.URL.Query().Get("page") == "3" {
			return &giteatest.Response{Code: http.StatusInternalServerError}
		}
		return nil
	})
	if files, err := w.client.Files(ctx, w.repo, w.number); err == nil || files != nil {
		t.Errorf("a page that fails: %d files, error %v", len(files), err)
	}
}

func TestFilesWhileGiteaLags(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	w.SetLag(giteatest.LagHead)
	next := w.push("change", "y.yaml")
	p, err := w.client.Pull(ctx, w.repo, w.number)
	w.must(err)
	if p.Head.SHA != next {
		t.Fatalf("head %s, want the tip %s", p.Head.SHA, next)
	}
	if at, err := w.client.Head(ctx, w.repo, w.number); err != nil || at != w.head {
		t.Errorf("Head %s, error %v; want the old one %s", at, err, w.head)
	}
	if _, err := w.client.FilesAt(ctx, w.repo, w.number, p.Head.SHA); !errors.Is(err, gitea.ErrIncomplete) {
		t.Errorf("files of the old head: error %v, want ErrIncomplete", err)
	}
	w.SetLag(giteatest.NoLag)
	files, err := w.client.FilesAt(ctx, w.repo, w.number, p.Head.SHA)
	if err != nil || len(files) != 2 {
		t.Errorf("files %v, error %v; want 2", files, err)
	}
}

func TestDiffAt(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	read := func() (pull.Pull, pull.Diff, error) {
		t.Helper()
		p, err := w.client.Pull(ctx, w.repo, w.number)
		w.must(err)
		d, err := w.client.DiffAt(ctx, p)
		return p, d, err
	}
	before, want, err := read()
	w.must(err)
	w.ResetCalls()
	if _, err := w.client.DiffAt(ctx, before); err != nil || w.TotalCalls() != 3 {
		t.Errorf("again: error %v, %d calls; want 3: %v", err, w.TotalCalls(), w.Calls())
	}

	// The base moves, and the branch is rebased onto it with its old content:
	// it undoes what happened on the base.
	_, err = w.Push(ctx, w.repo, giteatest.Push{As: "bot", Branch: "main", Files: map[string]string{"README.md": "Changed\n"}})
	w.must(err)
	old, err := w.client.RawFile(ctx, w.repo, w.head, "x.yaml")
	w.must(err)
	rebase := giteatest.Push{
		As: "alice", Branch: "change", From: "main", Force: true,
		Files: map[string]string{"README.md": "Home\n", "x.yaml": string(old)},
	}
	for _, lag := range []giteatest.Lag{giteatest.LagHead, giteatest.LagMergeBase} {
		w.SetLag(lag)
		_, err = w.Push(ctx, w.repo, rebase)
		w.must(err)
		plain, err := w.client.Diff(ctx, w.repo, w.number)
		if err != nil || !plain.Same(want) {
			t.Errorf("lag %d: the stand-in does not mislead: %v, error %v", lag, plain, err)
		}
		if p, d, err := read(); !errors.Is(err, gitea.ErrIncomplete) {
			t.Errorf("lag %d: %+v at %s, error %v; want ErrIncomplete", lag, d, p.Head.SHA, err)
		}
	}
	w.SetLag(giteatest.NoLag)
	_, got, err := read()
	if err != nil || got.Same(want) || len(got.Files) != 2 {
		t.Errorf("after the lag: %+v, error %v; want two files", got, err)
	}
	if _, err := w.client.DiffAt(ctx, before); !errors.Is(err, gitea.ErrIncomplete) {
		t.Errorf("of the head before: error %v, want ErrIncomplete", err)
	}

	// The branch takes the base in, by a merge.
	_, err = w.Push(ctx, w.repo, giteatest.Push{As: "bot", Branch: "main", Files: map[string]string{"more": "1\n"}})
	w.must(err)
	_, err = w.Push(ctx, w.repo, giteatest.Push{As: "alice", Branch: "change", Merge: "main"})
	w.must(err)
	p, got, err := read()
	main, _ := w.Tip(ctx, w.repo, "main")
	if err != nil || p.MergeBase != main || len(got.Files) != 2 {
		t.Errorf("after a merge: merge base %s of %s, %+v, error %v", p.MergeBase, main, got, err)
	}

	w.during(".diff", "", func() { w.push("change", "late.yaml") })
	if _, _, err := read(); !errors.Is(err, gitea.ErrIncomplete) {
		t.Errorf("a push meanwhile: error %v, want ErrIncomplete", err)
	}
}

func TestListThatKeepsChanging(t *testing.T) {
	w := newWorld(t, giteatest.Options{MaxItems: 2})
	ctx := t.Context()
	n := 0
	open := func() {
		n++
		branch := fmt.Sprint("more-", n)
		w.push(branch, branch)
		_, err := w.OpenPull(ctx, w.repo, giteatest.NewPull{As: "alice", Title: branch, Head: branch})
		w.must(err)
	}
	for range 4 {
		open()
	}
	w.during("/pulls", "2", func() { w.must(w.SetOpen(ctx, w.repo, w.number, "alice", false)) })
	list, err := w.client.OpenPulls(ctx, w.repo)
	if err != nil || len(list) != 4 {
		t.Errorf("%d pull requests, error %v; want 4", len(list), err)
	}
	w.Fail(func(r *http.Request) *giteatest.Response {
		if strings.HasSuffix(r.URL.Path, "/pulls") {
			open()
		}
		return nil
	})
	if list, err := w.client.OpenPulls(ctx, w.repo); !errors.Is(err, gitea.ErrIncomplete) {
		t.Errorf("%d pull requests of a list without rest, error %v; want ErrIncomplete", len(list), err)
	}
}

func TestTimelineHidesNoRetarget(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	w.push("release", "rel")
	_, err := w.Review(ctx, w.repo, w.number, "bob", giteatest.Approve, "")
	w.must(err)
	w.must(w.BeginReview(ctx, w.repo, w.number, "alice", 1500))
	w.must(w.Retarget(ctx, w.repo, w.number, "alice", "release"))
	moments, err := w.client.Timeline(ctx, w.repo, w.number)
	w.must(err)
	if !slices.ContainsFunc(moments, func(m pull.Moment) bool {
		return m.Kind == pull.MomentRetarget && m.From == "main" && m.To == "release"
	}) {
		t.Errorf("1500 hidden remarks hide the retarget: %+v", moments)
	}
}

func TestContainsAsksOnce(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	first, err := w.Tip(t.Context(), w.repo, "main")
	w.must(err)
	ask := func() {
		contained, err := w.client.Contains(t.Context(), w.repo, w.head, first)
		if err != nil || !contained {
			t.Errorf("contained %v, error %v", contained, err)
		}
	}
	w.Slow(20 * time.Millisecond)
	var all sync.WaitGroup
	for range 20 {
		all.Go(ask)
	}
	all.Wait()
	ask()
	if got := w.TotalCalls(); got != 1 {
		t.Errorf("%d calls for one question, want 1: %v", got, w.Calls())
	}
	w.ResetCalls()
	if same, err := w.client.Contains(t.Context(), w.repo, first, first); err != nil || !same || w.TotalCalls() != 0 {
		t.Errorf("a commit and itself: %v, error %v, %d calls", same, err, w.TotalCalls())
	}
	if _, err := w.client.Contains(t.Context(), w.repo, "main", first); err == nil || w.TotalCalls() != 0 {
		t.Errorf("a branch instead of a commit: error %v, %d calls", err, w.TotalCalls())
	}
}

func TestContainsSurvivesACallerWhoLeaves(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	first, err := w.Tip(t.Context(), w.repo, "main")
	w.must(err)
	leaving, leave := context.WithCancel(t.Context())
	arrived := make(chan struct{})
	var once sync.Once
	w.Fail(func(r *http.Request) *giteatest.Response {
		wait := false
		once.Do(func() { wait = true })
		if wait {
			close(arrived)
			<-r.Context().Done()
		}
		return nil
	})
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := w.client.Contains(leaving, w.repo, w.head, first); !errors.Is(err, context.Canceled) {
			t.Errorf("who left got error %v", err)
		}
	})
	<-arrived
	all.Go(func() {
		if contained, err := w.client.Contains(t.Context(), w.repo, w.head, first); err != nil || !contained {
			t.Errorf("who stayed got %v, error %v", contained, err)
		}
	})
	leave()
	all.Wait()
}

func TestContainsForgetsUnknownCommits(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	fork, err := w.Fork(t.Context(), w.repo, "bob")
	w.must(err)
	sha, err := w.Push(t.Context(), fork, giteatest.Push{As: "bob", Branch: "main", Files: map[string]string{"y": "1"}})
	w.must(err)
	if _, err := w.client.Contains(t.Context(), w.repo, sha, w.head); !errors.Is(err, gitea.ErrUnknownCommit) {
		t.Errorf("error %v, want ErrUnknownCommit", err)
	}
	_, err = w.OpenPull(t.Context(), w.repo, giteatest.NewPull{As: "bob", Title: "y", Head: "main", Fork: fork})
	w.must(err)
	if contained, err := w.client.Contains(t.Context(), w.repo, sha, w.head); err != nil || contained {
		t.Errorf("contained %v, error %v after the commit came", contained, err)
	}
}

func TestARepositoryThatTookTheName(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	_, err := w.RenameRepo(ctx, w.repo, "elsewhere")
	w.must(err)
	other, err := w.CreateRepo(ctx, "bot", w.repo.Name, nil)
	w.must(err)
	_, err = w.Push(ctx, other, giteatest.Push{As: "bot", Branch: "evil", Files: map[string]string{"x": "1"}})
	w.must(err)
	_, err = w.OpenPull(ctx, other, giteatest.NewPull{As: "bot", Title: "Evil", Head: "evil"})
	w.must(err)
	if p, err := w.client.Pull(ctx, w.repo, 1); !errors.Is(err, gitea.ErrMoved) {
		t.Errorf("pull request %+v of another repository, error %v; want ErrMoved", p, err)
	}
	if list, err := w.client.OpenPulls(ctx, w.repo); !errors.Is(err, gitea.ErrMoved) {
		t.Errorf("pull requests %+v of another repository, error %v; want ErrMoved", list, err)
	}
}

func TestCallBudgets(t *testing.T) {
	w := newWorld(t, giteatest.Options{SubPath: "/git"})
	ctx := t.Context()
	_, err := w.Review(ctx, w.repo, w.number, "bob", giteatest.Approve, "")
	w.must(err)
	w.push("change", names(48)...)
	made, err := w.client.CreateComment(ctx, w.repo, w.number, "hello")
	w.must(err)
	budgets := map[string]struct {
		calls int
		call  func() error
	}{
		"Pull":          {1, func() error { _, err := w.client.Pull(ctx, w.repo, w.number); return err }},
		"OpenPulls":     {1, func() error { _, err := w.client.OpenPulls(ctx, w.repo); return err }},
		"Files":         {1, func() error { _, err := w.client.Files(ctx, w.repo, w.number); return err }},
		"Reviews":       {1, func() error { _, err := w.client.Reviews(ctx, w.repo, w.number); return err }},
		"Timeline":      {4, func() error { _, err := w.client.Timeline(ctx, w.repo, w.number); return err }},
		"Diff":          {1, func() error { _, err := w.client.Diff(ctx, w.repo, w.number); return err }},
		"Comments":      {1, func() error { _, err := w.client.Comments(ctx, w.repo, w.number); return err }},
		"CommentsSince": {1, func() error { _, err := w.client.CommentsSince(ctx, w.repo, time.Time{}); return err }},
		"EditComment":   {1, func() error { _, err := w.client.EditComment(ctx, w.repo, made.ID, "bye"); return err }},
		"Statuses":      {1, func() error { _, err := w.client.Statuses(ctx, w.repo, w.head); return err }},
		"PostStatus":    {1, func() error { return w.client.PostStatus(ctx, w.repo, w.head, status, "") }},
		"RawFile":       {1, func() error { _, err := w.client.RawFile(ctx, w.repo, "main", "README.md"); return err }},
		"RawFile at a commit": {2, func() error {
			_, err := w.client.RawFile(ctx, w.repo, w.head, "README.md")
			return err
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		w.ResetCalls()
		if err := budgets[name].call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := w.TotalCalls(); got != budgets[name].calls {
			t.Errorf("%s took %d calls, want %d: %v", name, got, budgets[name].calls, w.Calls())
		}
	}
}

func TestDownRevokedAndBack(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	read := func() error {
		_, err := w.client.Pull(ctx, w.repo, w.number)
		return err
	}
	w.Down(true)
	if err := read(); err == nil {
		t.Error("a server that is down answered")
	}
	w.Down(false)
	w.must(read())
	w.must(w.RevokeToken("bot"))
	w.ResetCalls()
	if err := read(); !errors.Is(err, gitea.ErrUnauthorized) || w.TotalCalls() != 1 {
		t.Errorf("a revoked token: error %v after %d calls, want ErrUnauthorized after one", err, w.TotalCalls())
	}
}

func TestOtherEntriesAreNoComments(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	_, err := w.Review(ctx, w.repo, w.number, "bob", giteatest.Approve, "/approve")
	w.must(err)
	_, err = w.Comment(ctx, w.repo, w.number, "bob", "hello")
	w.must(err)
	found := 0
	for id := range int64(6) {
		c, err := w.client.Comment(ctx, w.repo, id)
		if err == nil {
			found++
			if d := cmp.Diff("hello", c.Body); d != "" {
				t.Error(d)
			}
		} else if !errors.Is(err, gitea.ErrNotFound) {
			t.Errorf("entry %d: error %v, want ErrNotFound", id, err)
		}
	}
	if found != 1 {
		t.Errorf("%d comments, want 1", found)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	w := newWorld(t, giteatest.Options{})
	ctx := t.Context()
	for name, err := range map[string]error{
		"warning":         w.client.PostStatus(ctx, w.repo, w.head, pull.Status{Context: "x", State: "warning"}, ""),
		"skipped":         w.client.PostStatus(ctx, w.repo, w.head, pull.Status{Context: "x", State: "skipped"}, ""),
		"no context":      w.client.PostStatus(ctx, w.repo, w.head, pull.Status{State: "success"}, ""),
		"a short commit":  w.client.PostStatus(ctx, w.repo, w.head[:7], status, ""),
		"a branch":        second(w.client.Statuses(ctx, w.repo, "main")),
		"a path outside":  second(w.client.RawFile(ctx, w.repo, "main", "../x")),
		"a rooted path":   second(w.client.RawFile(ctx, w.repo, "main", "/x")),
		"no reference":    second(w.client.RawFile(ctx, w.repo, "", "x")),
		"an empty owner":  second(w.client.Pull(ctx, pull.Repo{Name: "x"}, 1)),
		"an empty target": second(w.client.EnsureHook(ctx, w.repo, gitea.HookSpec{})),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if w.TotalCalls() != 0 {
		t.Errorf("calls were made: %v", w.Calls())
	}
}

func second[T any](_ T, err error) error { return err }
