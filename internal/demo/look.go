package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// What Gitea tells, as far as the demo shows it.
type (
	account struct {
		Login string `json:"login"`
	}
	status struct {
		ID          int64   `json:"id"`
		Context     string  `json:"context"`
		State       string  `json:"status"`
		Description string  `json:"description"`
		Creator     account `json:"creator"`
	}
	comment struct {
		ID   int64   `json:"id"`
		User account `json:"user"`
		Body string  `json:"body"`
	}
	changedFile struct {
		Name     string `json:"filename"`
		Previous string `json:"previous_filename"`
		Status   string `json:"status"`
	}
	pullRequest struct {
		Title string `json:"title"`
		Head  struct {
			SHA string `json:"sha"`
		} `json:"head"`
	}
)

// view is what a person sees on the pull request.
type view struct {
	head string
	// statuses are the newest of each context.
	statuses []status
	// comments are those of signalbox.
	comments []comment
}

func (v *view) status(context string) (status, bool) {
	i := slices.IndexFunc(v.statuses, func(s status) bool { return s.Context == context })
	if i < 0 {
		return status{}, false
	}
	return v.statuses[i], true
}

// same reports whether nothing was posted between two views: a status that
// says the same again was posted all the same.
func (v *view) same(o *view) bool {
	return v.head == o.head && slices.Equal(v.statuses, o.statuses) && slices.Equal(v.comments, o.comments)
}

// marks identify what is posted: a mark that changes means that it was posted
// anew, or edited.
func (v *view) marks() map[string]string {
	marks := map[string]string{}
	for _, s := range v.statuses {
		marks[s.mark()] = fmt.Sprint(s.ID)
	}
	for _, c := range v.comments {
		marks[c.mark()] = c.Body
	}
	return marks
}

// posted wants that a later view shows something that was posted since.
func (v *view) posted(later *view) error {
	before := v.marks()
	for mark, value := range later.marks() {
		if before[mark] != value {
			return nil
		}
	}
	return errors.New("nothing was posted")
}

func (s *status) mark() string { return "status " + s.Context }

func (c *comment) mark() string { return fmt.Sprint("comment ", c.ID) }

// eye looks at Gitea through its API, as a person with an account may. It is
// no part of signalbox, so that it cannot be wrong in the same way.
type eye struct {
	world *World
	http  *http.Client
}

func newEye(w *World) *eye {
	// Gitea is in this process: no proxy of the environment is asked.
	return &eye{w, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}}
}

// look reads the pull request.
func (e *eye) look(ctx context.Context) (*view, error) {
	p, err := e.pull(ctx)
	if err != nil {
		return nil, err
	}
	v := &view{head: p.Head.SHA}
	var statuses []status
	// The newest come first, and there are few contexts.
	if err := e.get(ctx, "/statuses/"+v.head+"?limit=50", &statuses); err != nil {
		return nil, err
	}
	slices.SortStableFunc(statuses, func(a, b status) int { return cmp.Compare(b.ID, a.ID) })
	for _, s := range statuses {
		if _, newer := v.status(s.Context); !newer {
			v.statuses = append(v.statuses, s)
		}
	}
	// Preconditions before approval, as in the comment.
	slices.SortFunc(v.statuses, func(a, b status) int { return cmp.Compare(b.Context, a.Context) })
	if err := e.get(ctx, fmt.Sprintf("/issues/%d/comments", e.world.number), &v.comments); err != nil {
		return nil, err
	}
	v.comments = slices.DeleteFunc(v.comments, func(c comment) bool { return c.User.Login != bot })
	return v, nil
}

func (e *eye) pull(ctx context.Context) (p pullRequest, err error) {
	err = e.get(ctx, fmt.Sprintf("/pulls/%d", e.world.number), &p)
	return p, err
}

func (e *eye) files(ctx context.Context) (files []changedFile, err error) {
	err = e.get(ctx, fmt.Sprintf("/pulls/%d/files", e.world.number), &files)
	return files, err
}

// hooks returns how many webhooks the repository has.
func (e *eye) hooks(ctx context.Context) (int, error) {
	var hooks []struct{}
	err := e.get(ctx, "/hooks", &hooks)
	return len(hooks), err
}

// get reads something of the repository.
func (e *eye) get(ctx context.Context, path string, into any) error {
	address := strings.TrimRight(e.world.Gitea.URL(), "/") + "/api/v1/repos/" + e.world.repo.String() + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "token "+e.world.reader.Reveal())
	resp, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("look at Gitea: %w", err)
	}
	// All that was wanted was read by then.
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("look at Gitea: %s answers %s", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("look at Gitea: %s: %w", path, err)
	}
	return nil
}
