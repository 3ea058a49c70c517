package gitea

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// person converts an account. Gitea gives negative ids to accounts that are
// none: the ghost of a deleted one (-1) and its Actions (-2).
func person(u *sdk.User) pull.Person {
	if u == nil {
		return pull.Person{}
	}
	return pull.Person{ID: max(u.ID, 0), Login: u.UserName}
}

func repository(r *sdk.Repository) pull.Repo {
	owner := ""
	if r.Owner != nil {
		owner = r.Owner.UserName
	}
	return pull.Repo{ID: r.ID, Owner: owner, Name: r.Name}
}

// sameRepo refuses an answer that is about another repository than the one
// that was asked for: after a rename somebody else may have taken the name.
func sameRepo(want pull.Repo, id int64) error {
	if want.ID != 0 && id != want.ID {
		return fmt.Errorf("%w: %s is now repository %d, not %d", ErrMoved, want, id, want.ID)
	}
	return nil
}

// convertPull converts a pull request. Gitea answers 200 with null or with
// empty parts when it fails within, which is an error here.
func convertPull(p *sdk.PullRequest, want pull.Repo) (pull.Pull, error) {
	if p == nil || p.Index == 0 || p.Base == nil || p.Head == nil || p.Base.Repository == nil {
		return pull.Pull{}, fmt.Errorf("answer of Gitea lacks parts of the pull request; its log says why")
	}
	if err := sameRepo(want, p.Base.Repository.ID); err != nil {
		return pull.Pull{}, err
	}
	out := pull.Pull{
		Repo:      repository(p.Base.Repository),
		Number:    p.Index,
		Title:     p.Title,
		Body:      p.Body,
		URL:       p.HTMLURL,
		Author:    person(p.Poster),
		State:     pullState(p),
		Draft:     p.Draft,
		Head:      pull.Branch{Name: headName(p.Head), SHA: p.Head.Sha},
		Base:      pull.Branch{Repo: p.Base.Repository.FullName, Name: p.Base.Ref, SHA: p.Base.Sha},
		MergeBase: p.MergeBase,
		Comments:  p.Comments,
		CreatedAt: moment(p.Created),
		UpdatedAt: moment(p.Updated),
	}
	if p.HasMerged {
		out.MergedBy = person(p.MergedBy)
		if p.MergedCommitID != nil {
			out.MergeCommit = *p.MergedCommitID
		}
	}
	if p.Head.Repository != nil {
		out.Head.Repo = p.Head.Repository.FullName
	}
	for _, l := range p.Labels {
		if l != nil {
			out.Labels = append(out.Labels, l.Name)
		}
	}
	return out, nil
}

func pullState(p *sdk.PullRequest) pull.State {
	switch {
	case p.HasMerged:
		return pull.Merged
	case p.State == sdk.StateClosed:
		return pull.Closed
	}
	return pull.Open
}

// headName returns the branch that the pull request comes from. Where the
// branch is gone, Gitea puts its own "refs/pull/12/head" in the place of the
// name and keeps the name in the label.
func headName(b *sdk.PRBranchInfo) string {
	if strings.HasPrefix(b.Ref, "refs/pull/") && b.Name != "" {
		return b.Name
	}
	return b.Ref
}

func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// instant converts a time of Actions, which is the beginning of 1970 where
// there is none yet.
func instant(t time.Time) time.Time {
	if t.Unix() <= 0 {
		return time.Time{}
	}
	return t.UTC()
}

// absolute completes an address that Gitea gives without its host, as it does
// in the statuses of its Actions.
func (c *Client) absolute(address string) string {
	if !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") {
		return address
	}
	root, err := url.Parse(c.root)
	if err != nil {
		return address
	}
	return root.Scheme + "://" + root.Host + address
}

func convertComment(c *sdk.Comment) pull.Comment {
	return pull.Comment{
		ID:        c.ID,
		Author:    person(c.Poster),
		Body:      c.Body,
		URL:       c.HTMLURL,
		CreatedAt: c.Created.UTC(),
		UpdatedAt: c.Updated.UTC(),
	}
}

// convertAll converts a list, and gives an empty one as nil.
func convertAll[From, To any](list []From, convert func(From) To) []To {
	var out []To
	for _, item := range list {
		out = append(out, convert(item))
	}
	return out
}
