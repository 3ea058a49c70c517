package giteatest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
)

func listPulls(r *request, repo *repo) error {
	var list []*sdk.PullRequest
	for _, p := range repo.pulls {
		if p.closed && r.URL.Query().Get("state") != "all" {
			continue
		}
		shown := r.server.pullJSON(p)
		// A list shows the reference, not the branch.
		shown.Head.Sha = p.headSHA
		list = append(list, shown)
	}
	if r.URL.Query().Get("sort") != "oldest" {
		slices.Reverse(list)
	}
	return page(r, list)
}

func getPull(r *request, p *pullRequest) error {
	if strings.HasSuffix(r.PathValue("index"), ".diff") {
		return getDiff(r, p)
	}
	writeJSON(r.w, http.StatusOK, r.server.pullJSON(p))
	return nil
}

// changes are those of the diff: from the merge base that is stored to the
// reference.
func (s *Server) changes(p *pullRequest) []change {
	return changes(s.model.treeAt(p.mergeBase), s.model.treeAt(p.headSHA))
}

// listed are the changes of the list of files: it finds the merge base anew.
func (s *Server) listed(p *pullRequest) []change {
	if p.merged {
		return s.changes(p)
	}
	return changes(s.model.treeAt(s.model.mergeBase(p.repo.branches[p.base], p.headSHA)), s.model.treeAt(p.headSHA))
}

func getDiff(r *request, p *pullRequest) error {
	var b strings.Builder
	for _, c := range r.server.changes(p) {
		c.patch(&b)
	}
	r.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := io.WriteString(r.w, b.String())
	return err
}

func listFiles(r *request, p *pullRequest) error {
	var list []*sdk.ChangedFile
	for _, c := range r.server.listed(p) {
		added, removed := c.lines()
		escaped := escapeSegments(c.path)
		f := &sdk.ChangedFile{
			Filename: c.path, Status: c.status(), Additions: added, Deletions: removed, Changes: added + removed,
			HTMLURL:     fmt.Sprintf("%s/%s/src/commit/%s/%s", r.server.root, p.repo.fullName(), p.headSHA, escaped),
			ContentsURL: fmt.Sprintf("%s/api/v1/repos/%s/contents/%s?ref=%s", r.server.root, p.repo.fullName(), escaped, p.headSHA),
			RawURL:      fmt.Sprintf("%s/%s/raw/commit/%s/%s", r.server.root, p.repo.fullName(), p.headSHA, escaped),
		}
		if c.old != c.path {
			f.PreviousFilename = c.old
		}
		list = append(list, f)
	}
	n, limit := r.paging()
	r.w.Header().Set("X-HasMore", fmt.Sprint(n*limit < len(list)))
	return page(r, list)
}

func escapeSegments(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// listReviews hides the begun reviews of others, but counts them.
func listReviews(r *request, p *pullRequest) error {
	var list []*sdk.PullReview
	for _, review := range cut(r, p.reviews) {
		if review.state != "PENDING" || r.doer != nil && (r.doer.admin || r.doer == review.author) {
			list = append(list, r.server.reviewJSON(p, review))
		}
	}
	return total(r, list, len(p.reviews))
}

// listTimeline leaves out comments on code after it has cut the page, counts
// only what is on the page, and gives an empty one as null.
func listTimeline(r *request, p *pullRequest) error {
	var list []timelineJSON
	for _, e := range cut(r, p.entries) {
		if e.kind != "code" {
			list = append(list, r.server.entryJSON(p, e))
		}
	}
	r.w.Header().Set("X-Total-Count", fmt.Sprint(len(list)))
	writeJSON(r.w, http.StatusOK, list)
	return nil
}

// listComments is not cut into pages.
func listComments(r *request, p *pullRequest) error {
	list := r.server.commentsOf([]*pullRequest{p}, time.Time{})
	return total(r, list, len(list))
}

func listRepoComments(r *request, repo *repo) error {
	var since time.Time
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return &apiError{http.StatusUnprocessableEntity, err.Error()}
		}
	}
	return page(r, r.server.commentsOf(repo.pulls, since))
}

func (s *Server) commentsOf(pulls []*pullRequest, since time.Time) []*sdk.Comment {
	var list []*sdk.Comment
	for _, p := range pulls {
		for _, e := range p.entries {
			if e.kind == "comment" && !e.updated.Before(since) {
				list = append(list, s.commentJSON(p, e))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *sdk.Comment) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return int(a.ID - b.ID)
	})
	return list
}

func createComment(r *request, p *pullRequest) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	var in sdk.CreateIssueCommentOption
	if err := r.body(&in); err != nil {
		return err
	}
	if in.Body == "" {
		return &apiError{http.StatusUnprocessableEntity, "[Body]: Required"}
	}
	e := r.server.comment(p, r.doer, in.Body)
	writeJSON(r.w, http.StatusCreated, r.server.commentJSON(p, e))
	return nil
}

func getComment(r *request, repo *repo) error {
	p, e := repo.comment(r.number("id"))
	if e == nil {
		return errNotFound
	}
	if e.kind != "comment" {
		r.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	writeJSON(r.w, http.StatusOK, r.server.commentJSON(p, e))
	return nil
}

func deleteComment(r *request, repo *repo) error {
	p, e := repo.comment(r.number("id"))
	if e == nil {
		return errNotFound
	}
	if err := r.needDoer(); err != nil {
		return err
	}
	if r.doer != e.author && r.permission(repo) < Write {
		return &apiError{http.StatusForbidden, ""}
	}
	r.server.deleteComment(p, e, r.doer)
	r.w.WriteHeader(http.StatusNoContent)
	return nil
}

func editComment(r *request, repo *repo) error {
	p, e := repo.comment(r.number("id"))
	if e == nil {
		return errNotFound
	}
	if err := r.needDoer(); err != nil {
		return err
	}
	if r.doer != e.author && r.permission(repo) < Write {
		return &apiError{http.StatusForbidden, ""}
	}
	var in sdk.EditIssueCommentOption
	if err := r.body(&in); err != nil {
		return err
	}
	r.server.editComment(p, e, r.doer, in.Body)
	writeJSON(r.w, http.StatusOK, r.server.commentJSON(p, e))
	return nil
}
