package gitea

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// mergeMethods are the ways of Gitea to merge that bring commits to the base.
var mergeMethods = []string{"merge", "rebase", "rebase-merge", "squash", "fast-forward-only"}

// mergePatience times the timeout is how long a merge may take. Gitea ends its
// work when the connection is cut, and then nobody knows how far it got.
const mergePatience = 4

// mergeRequest is the body of a request to merge, with names that every version
// of Gitea reads. It asks for no merge later ("merge_when_checks_succeed": the
// schedule would survive new pushes) and for none by force.
type mergeRequest struct {
	Method  string `json:"Do"`
	Head    string `json:"head_commit_id"`
	Title   string `json:"MergeTitleField,omitempty"`
	Message string `json:"MergeMessageField,omitempty"`
}

// Merge merges a pull request if its head is the given commit, or returns one of
// the errors of package pull that say why it did not: [pull.ErrHeadMoved],
// [pull.ErrStillChecking], [pull.ErrMergeConflict], [pull.ErrNotAllowed],
// [pull.ErrAlreadyMerged]. Other errors ([ErrMoved], [ErrUnauthorized], a
// connection that was refused) mean too that nothing was merged.
//
// The request is sent once. Where no answer came, or one that leaves it open,
// as each error within Gitea, the error is [pull.ErrOutcomeUnknown]: then
// [Client.Pull] tells whether it was merged, by whom and to which commit.
//
// Gitea refuses with one and the same answer while it looks for conflicts and
// when it has found some, and shows the difference nowhere in its API. So Merge
// looks at the pull request, which also begins a search that was put off. As
// soon as Gitea calls it mergeable, the search has ended well, and the error is
// [pull.ErrStillChecking]; if it does not within [Config.MergeWait], the error
// is [pull.ErrMergeConflict], for a search takes less than that even after a
// push to a large repository. Nothing is ever merged because of that look.
func (c *Client) Merge(ctx context.Context, repo pull.Repo, number int64, options pull.MergeOptions) error {
	const operation = "merge %s#%d"
	if options.Method == "" {
		options.Method = mergeMethods[0]
	}
	if !slices.Contains(mergeMethods, options.Method) {
		return c.fail(fmt.Errorf("there is no method %q", c.clean(options.Method)), nil, operation, repo, number)
	}
	if err := checkCommit(options.Head); err != nil {
		return c.fail(err, nil, operation, repo, number)
	}
	if ctx.Err() != nil {
		return c.fail(context.Cause(ctx), nil, operation, repo, number)
	}
	resp, err := c.send(ctx, c.once(), call{route: "/repos/:owner/:repo/pulls/:n/merge"},
		fmt.Sprintf("POST %s/pulls/%d/merge", repoPath(repo), number), mergeRequest{
			Method: options.Method, Head: options.Head, Title: options.Title, Message: options.Message,
		})
	if err != nil {
		if !neverSent(err) && !errors.Is(err, ErrMoved) {
			err = fmt.Errorf("%w: %w", pull.ErrOutcomeUnknown, err)
		}
		return c.fail(err, nil, operation, repo, number)
	}
	err = c.mergeAnswer(resp, readAll(resp))
	switch {
	case errors.Is(err, errTryLater):
		err = c.whyNotMergeable(ctx, repo, number, options.Head, err)
	case errors.Is(err, ErrNotFound):
		// So Gitea answers for a closed pull request too.
		err = c.whyNotFound(ctx, repo, number, err)
	}
	return c.fail(err, nil, operation, repo, number)
}

// once returns an HTTP client that sends a request one time only, and waits
// longer for the answer.
func (c *Client) once() *http.Client {
	t := *c.http.Transport.(*transport)
	t.attempts, t.timeout = 1, mergePatience*t.timeout
	return &http.Client{CheckRedirect: c.http.CheckRedirect, Transport: &t}
}

// errTryLater is the answer that stands for two things.
var errTryLater = errors.New("a conflict, or still looking for one")

// What Gitea answers, in its words.
const (
	sayTryLater  = "Please try again later"
	sayMerged    = "The PR is already merged"
	sayHeadMoved = "head out of date"
	sayBaseMoved = "merge push out of date"
	sayRejected  = "PushRejected"
	// sayBaseTaken is of git: the base branch moved while Gitea pushed the merge to it,
	// because another was merged at that moment.
	sayBaseTaken = "cannot lock ref"
)

// mergeAnswer makes of an answer to a request to merge the error that it means.
func (c *Client) mergeAnswer(resp *http.Response, body []byte) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	answer := c.answer(resp, body)
	var said struct {
		Message string `json:"message"`
		Output  string `json:"StdOut"`
	}
	// A conflict has no message, but the output of git.
	if json.Unmarshal(body, &said) == nil && said.Message == "" && said.Output != "" {
		answer = fmt.Errorf("%w: %s", answer, c.clean(said.Output))
	}
	kind := pull.ErrOutcomeUnknown
	switch resp.StatusCode {
	case http.StatusMethodNotAllowed:
		switch said.Message {
		case sayTryLater:
			kind = errTryLater
		case sayMerged:
			kind = pull.ErrAlreadyMerged
		default:
			kind = pull.ErrNotAllowed
		}
	case http.StatusConflict:
		switch {
		case said.Message == sayBaseMoved,
			strings.HasPrefix(said.Message, sayRejected) && strings.Contains(said.Message, sayBaseTaken):
			kind = pull.ErrStillChecking
		case said.Message == sayHeadMoved:
			kind = pull.ErrHeadMoved
		case strings.HasPrefix(said.Message, sayRejected):
			kind = pull.ErrNotAllowed
		default:
			kind = pull.ErrMergeConflict
		}
	case http.StatusForbidden, http.StatusLocked, http.StatusUnprocessableEntity, http.StatusBadRequest:
		kind = pull.ErrNotAllowed
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests:
		return answer
	}
	return fmt.Errorf("%w: %w", kind, answer)
}

// whyNotMergeable finds out what [errTryLater] stands for.
func (c *Client) whyNotMergeable(ctx context.Context, repo pull.Repo, number int64, head string, answer error) error {
	whole := ctx
	ctx, cancel := context.WithTimeout(whole, c.mergeWait)
	defer cancel()
	for pause := c.mergeWait / 40; ; pause = min(2*pause, c.mergeWait/5) {
		api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/pulls/:n"})
		if err != nil {
			return err
		}
		p, resp, err := api.GetPullRequest(repo.Owner, repo.Name, number)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return fmt.Errorf("%w: %w", pull.ErrStillChecking, c.fail(err, resp, "look at it"))
		case p.HasMerged:
			return pull.ErrAlreadyMerged
		case p.State == sdk.StateClosed:
			return fmt.Errorf("%w: it is closed", pull.ErrNotAllowed)
		case p.Head != nil && p.Head.Sha != head:
			return pull.ErrHeadMoved
		case p.Mergeable:
			return fmt.Errorf("%w: it has only now looked for conflicts", pull.ErrStillChecking)
		}
		select {
		case <-time.After(pause):
			continue
		case <-ctx.Done():
		}
		if whole.Err() != nil {
			return fmt.Errorf("%w: %w", pull.ErrStillChecking, context.Cause(whole))
		}
		return fmt.Errorf("%w, as it seems: %w, and did not change its mind within %s", pull.ErrMergeConflict, answer, c.mergeWait)
	}
}

// whyNotFound tells a closed pull request from one that is not there.
func (c *Client) whyNotFound(ctx context.Context, repo pull.Repo, number int64, answer error) error {
	p, err := c.Pull(ctx, repo, number)
	switch {
	case err != nil:
		return answer
	case p.State == pull.Merged:
		return pull.ErrAlreadyMerged
	case p.State == pull.Closed:
		return fmt.Errorf("%w: it is closed", pull.ErrNotAllowed)
	}
	return answer
}
