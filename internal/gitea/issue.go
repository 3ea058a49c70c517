package gitea

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"signalbox/internal/pull"
)

// keptIssue is what is read of an issue.
type keptIssue struct {
	Number int64  `json:"number"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	URL    string `json:"html_url"`
}

// KeepIssue sees to it that a repository has one open issue of an account whose text
// begins with a marker, and that it has this title and text, and returns its address.
// The body begins with the marker. The oldest is taken where there are several; one
// that was closed is left alone. Nothing is written where nothing is different.
//
// After a failure the issue may exist; the next call finds it. The calls: one for each
// 50 open issues of the account, and one to write.
func (c *Client) KeepIssue(ctx context.Context, repo pull.Repo, author, marker, title, body string) (address string, err error) {
	const operation = "keep issue %q in %s"
	if marker == "" || !strings.HasPrefix(body, marker) {
		return "", c.fail(fmt.Errorf("the text does not begin with its marker %q", marker), nil, operation, title, repo)
	}
	list, err := exact(ctx, pages[keptIssue]{
		client: c,
		route:  "/repos/:owner/:repo/issues",
		path:   repoPath(repo) + "/issues",
		query:  url.Values{"type": {"issues"}, "state": {"open"}, "created_by": {author}},
	}, func(i keptIssue) int64 { return i.Number })
	if err != nil {
		return "", c.fail(err, nil, operation, title, repo)
	}
	list = slices.DeleteFunc(list, func(i keptIssue) bool { return !strings.HasPrefix(i.Body, marker) })
	var now keptIssue
	write := map[string]string{"title": title, "body": body}
	if len(list) == 0 {
		err = c.sendJSON(ctx, call{route: "/repos/:owner/:repo/issues"}, "POST "+repoPath(repo)+"/issues", write, &now)
		return now.URL, c.fail(err, nil, operation, title, repo)
	}
	now = slices.MinFunc(list, func(a, b keptIssue) int { return int(a.Number - b.Number) })
	if now.Title == title && now.Body == body {
		return now.URL, nil
	}
	err = c.sendJSON(ctx, call{route: "/repos/:owner/:repo/issues/:n"}, fmt.Sprintf("PATCH %s/issues/%d", repoPath(repo), now.Number), write, nil)
	return now.URL, c.fail(err, nil, operation, title, repo)
}
