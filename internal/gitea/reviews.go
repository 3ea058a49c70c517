package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// Reviews returns the reviews of a pull request, oldest first. A review that
// another person has begun and not submitted is not among them.
func (c *Client) Reviews(ctx context.Context, repo pull.Repo, number int64) ([]pull.Review, error) {
	const operation = "list reviews of %s#%d"
	// The total counts reviews that are not shown to us, so it ends the list
	// only when it is reached.
	list, err := untilEmpty(ctx, pages[sdk.PullReview]{
		client: c,
		route:  "/repos/:owner/:repo/pulls/:n/reviews",
		path:   fmt.Sprintf("%s/pulls/%d/reviews", repoPath(repo), number),
	}, func(all []sdk.PullReview, empty, total int) bool {
		return empty > 0 || total >= 0 && len(all) >= total
	})
	if err != nil {
		return nil, c.fail(err, nil, operation, repo, number)
	}
	out := make([]pull.Review, 0, len(list))
	for _, r := range list {
		state, ok := reviewStates[r.State]
		if !ok {
			return nil, c.fail(fmt.Errorf("review %d has the unknown state %q", r.ID, c.clean(string(r.State))),
				nil, operation, repo, number)
		}
		out = append(out, pull.Review{
			ID:          r.ID,
			Author:      person(r.Reviewer),
			State:       state,
			Body:        r.Body,
			Commit:      r.CommitID,
			SubmittedAt: r.Submitted.UTC(),
			Dismissed:   r.Dismissed,
			Official:    r.Official,
		})
	}
	return out, nil
}

var reviewStates = map[sdk.ReviewStateType]pull.ReviewState{
	sdk.ReviewStateApproved:       pull.Approved,
	sdk.ReviewStateRequestChanges: pull.ChangesRequested,
	sdk.ReviewStateComment:        pull.Commented,
	sdk.ReviewStatePending:        pull.Pending,
	sdk.ReviewStateRequestReview:  pull.Requested,
}

// A timeline ends with this many empty pages in a row. Gitea cuts the timeline
// into pages first and leaves out what it does not show afterwards (comments on
// code, also of reviews that others have only begun; references from
// repositories that we may not see), and tells no total: an empty page can have
// full ones after it.
//
// Whoever wants to hide a change of the base has to put that many invisible
// entries in front of it. But a change of the base also removes every push from
// the timeline and puts one after itself, so that a timeline without a push is
// either an imported one, or not at its end.
const (
	timelineGap     = 3
	timelineGapBare = 40
)

// timelineEntry is the part of an entry that is read; the SDK lacks most of it.
type timelineEntry struct {
	ID       int64  `json:"id"`
	Type     string `json:"type"`
	Body     string `json:"body"`
	ReviewID int64  `json:"review_id"`
	OldRef   string `json:"old_ref"`
	NewRef   string `json:"new_ref"`
}

// Timeline returns what can give, take or void a decision, in the order of the
// server.
//
// Some things about it are easily mistaken:
//
//   - A push is noted a moment after the head has moved. What stands after it
//     surely came after it; what stands before it may have come after it too.
//   - A push is no proof that the head changed since the entries before it: a
//     change of the base notes one too, and forgets those before.
//   - A forced push forgets the pushes before it whose commits are gone, and
//     notes one with the commits that are new before the one that is forced.
//   - A review can be begun early and submitted late: its place here is when it
//     was submitted, its id and time are when it was begun.
func (c *Client) Timeline(ctx context.Context, repo pull.Repo, number int64) ([]pull.Moment, error) {
	pushed := false
	list, err := untilEmpty(ctx, pages[timelineEntry]{
		client: c,
		route:  "/repos/:owner/:repo/issues/:n/timeline",
		path:   fmt.Sprintf("%s/issues/%d/timeline", repoPath(repo), number),
	}, func(all []timelineEntry, empty, _ int) bool {
		if empty == 0 {
			pushed = pushed || slices.ContainsFunc(all, func(e timelineEntry) bool { return e.Type == "pull_push" })
			return false
		}
		return empty >= timelineGapBare || pushed && empty >= timelineGap
	})
	if err != nil {
		return nil, c.fail(err, nil, "read the timeline of %s#%d", repo, number)
	}
	var out []pull.Moment
	for _, e := range list {
		switch e.Type {
		case "review":
			out = append(out, pull.Moment{Kind: pull.MomentReview, ReviewID: e.ReviewID, CommentID: e.ID})
		case "comment":
			out = append(out, pull.Moment{Kind: pull.MomentComment, CommentID: e.ID})
		case "pull_push":
			out = append(out, e.push())
		case "change_target_branch":
			out = append(out, pull.Moment{Kind: pull.MomentRetarget, From: e.OldRef, To: e.NewRef})
		}
	}
	return out, nil
}

// push reads what a push brought. A body that cannot be read names nothing: the
// push is one nevertheless.
func (e timelineEntry) push() pull.Moment {
	var pushed struct {
		Forced  bool     `json:"is_force_push"`
		Commits []string `json:"commit_ids"`
	}
	// Gitea keeps this as a text of its own within the answer.
	if json.Unmarshal([]byte(e.Body), &pushed) != nil {
		return pull.Moment{Kind: pull.MomentPush}
	}
	return pull.Moment{Kind: pull.MomentPush, Forced: pushed.Forced, Commits: pushed.Commits}
}
