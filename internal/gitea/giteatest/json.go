package giteatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
)

// user is an account as it is shown; the SDK's type lacks a field that Gitea
// sends.
type user struct {
	*sdk.User
	Username string `json:"username"`
}

func (s *Server) userJSON(a *account) user {
	a = a.shown()
	if a == nil {
		return user{}
	}
	return user{
		User: &sdk.User{
			ID: a.id, UserName: a.login, Email: a.login + "@example.org", Visibility: "public",
			HTMLURL: s.root + "/" + a.login, Created: time.Unix(0, 0).UTC(),
		},
		Username: a.login,
	}
}

// sdkUser is an account within one of the SDK's types; nobody is null.
func (s *Server) sdkUser(a *account) *sdk.User {
	if a == nil {
		return nil
	}
	return s.userJSON(a).User
}

func (s *Server) repoJSON(r *repo, p Permission) *sdk.Repository {
	if r == nil {
		return nil
	}
	open := 0
	for _, p := range r.pulls {
		if !p.closed {
			open++
		}
	}
	return &sdk.Repository{
		ID: r.id, Owner: s.sdkUser(r.owner), Name: r.name, FullName: r.fullName(), Private: r.private,
		HTMLURL: s.root + "/" + r.fullName(), URL: s.root + "/api/v1/repos/" + r.fullName(),
		CloneURL: s.root + "/" + r.fullName() + ".git", DefaultBranch: "main", OpenPulls: open,
		HasCode: true, HasPullRequests: true, HasActions: true, ObjectFormatName: "sha1",
		Permissions: &sdk.Permission{Admin: p >= Admin, Push: p >= Write, Pull: p >= Read},
	}
}

func (s *Server) pullURL(p *pullRequest) string {
	return fmt.Sprintf("%s/%s/pulls/%d", s.root, p.repo.fullName(), p.number)
}

// tip is the head that a single pull request is shown with: the branch itself,
// which may be ahead of the reference.
func (p *pullRequest) tip() (ref, sha string) {
	if p.headRepo != nil && !p.merged {
		if sha, ok := p.headRepo.branches[p.head]; ok {
			return p.head, sha
		}
	}
	if p.headRepo != nil && p.headRepo.branches[p.head] != "" {
		return p.head, p.headSHA
	}
	return fmt.Sprintf("refs/pull/%d/head", p.number), p.headSHA
}

func (s *Server) pullJSON(p *pullRequest) *sdk.PullRequest {
	state := sdk.StateOpen
	if p.closed {
		state = sdk.StateClosed
	}
	ref, sha := p.tip()
	created, updated := p.created, p.updated
	out := &sdk.PullRequest{
		ID: p.number, URL: s.pullURL(p), Index: p.number, Poster: s.sdkUser(p.author),
		Title: p.title, Body: p.body, Labels: []*sdk.Label{}, State: state, Draft: draft(p.title),
		Comments: p.comments(), HTMLURL: s.pullURL(p), DiffURL: s.pullURL(p) + ".diff", PatchURL: s.pullURL(p) + ".patch",
		Mergeable: s.mergeable(p) && !draft(p.title), HasMerged: p.merged, MergedBy: s.sdkUser(p.mergedBy),
		Base:      &sdk.PRBranchInfo{Name: p.base, Ref: p.base, Sha: p.repo.branches[p.base], RepoID: p.repo.id, Repository: s.repoJSON(p.repo, Read)},
		Head:      &sdk.PRBranchInfo{Name: p.head, Ref: ref, Sha: sha, RepoID: -1, Repository: s.repoJSON(p.headRepo, Read)},
		MergeBase: p.mergeBase, Created: &created, Updated: &updated,
	}
	if p.merged {
		merged := p.mergedAt
		out.Merged, out.MergedCommitID = &merged, &p.merge
	}
	if p.headRepo != nil {
		out.Head.RepoID = p.headRepo.id
	}
	for i, name := range p.labels {
		out.Labels = append(out.Labels, &sdk.Label{ID: int64(i + 1), Name: name, Color: "ededed"})
	}
	return out
}

func draft(title string) bool {
	title = strings.ToUpper(title)
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

func (s *Server) commentJSON(p *pullRequest, e *entry) *sdk.Comment {
	return &sdk.Comment{
		ID: e.id, HTMLURL: fmt.Sprintf("%s#issuecomment-%d", s.pullURL(p), e.id), PRURL: s.pullURL(p),
		Poster: s.sdkUser(e.author), Body: e.body, Created: e.created, Updated: e.updated,
		Attachments: []*sdk.Attachment{},
	}
}

func (s *Server) reviewJSON(p *pullRequest, r *review) *sdk.PullReview {
	return &sdk.PullReview{
		ID: r.id, Reviewer: s.sdkUser(r.author), State: sdk.ReviewStateType(r.state), Body: r.body,
		CommitID: r.commit, Stale: r.stale, Official: r.official, Dismissed: r.dismissed, CodeCommentsCount: r.remarks,
		Submitted: r.created, HTMLURL: s.pullURL(p), HTMLPullURL: s.pullURL(p),
	}
}

func (s *Server) statusJSON(st *status) *sdk.Status {
	creator := st.creator
	if creator != nil && creator.gone {
		creator = nil // As of Gitea's own Actions.
	}
	return &sdk.Status{
		ID: st.id, State: sdk.StatusState(st.state), TargetURL: st.target, Description: st.description,
		Context: st.context, Creator: s.sdkUser(creator), Created: st.created, Updated: st.created,
	}
}

// timelineJSON is a row of the timeline; the SDK lacks most of its fields.
type timelineJSON struct {
	ID       int64     `json:"id"`
	Type     string    `json:"type"`
	PRURL    string    `json:"pull_request_url"`
	User     *sdk.User `json:"user"`
	Body     string    `json:"body"`
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
	OldRef   string    `json:"old_ref"`
	NewRef   string    `json:"new_ref"`
	ReviewID int64     `json:"review_id"`
}

func (s *Server) entryJSON(p *pullRequest, e *entry) timelineJSON {
	out := timelineJSON{
		ID: e.id, Type: e.kind, PRURL: s.pullURL(p), User: s.sdkUser(e.author), Body: e.body,
		Created: e.created, Updated: e.updated, OldRef: e.old, NewRef: e.new,
	}
	if e.review != nil {
		out.ReviewID = e.review.id
	}
	if e.kind == "pull_push" {
		// Two plain fields can always be encoded.
		body, _ := json.Marshal(map[string]any{"is_force_push": e.force, "commit_ids": e.commits})
		out.Body = string(body)
	}
	return out
}
