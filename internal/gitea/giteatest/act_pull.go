package giteatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/pull"
)

// NewPull is a pull request to open.
type NewPull struct {
	As    string
	Title string
	Body  string
	Head  string // A branch.
	Base  string // A branch; empty means "main".
	// Fork is the repository of the head; the zero value means the same one.
	Fork pull.Repo
}

// OpenPull opens a pull request and returns its number.
func (s *Server) OpenPull(_ context.Context, of pull.Repo, in NewPull) (number int64, err error) {
	err = s.inRepo(of, func(r *repo) error {
		by, err := s.model.account(in.As)
		if err != nil {
			return err
		}
		from := r
		if in.Fork.ID != 0 {
			if from = s.model.repoByID(in.Fork.ID); from == nil {
				return fmt.Errorf("there is no repository %s", in.Fork)
			}
		}
		if in.Base == "" {
			in.Base = "main"
		}
		if from.branches[in.Head] == "" || r.branches[in.Base] == "" {
			return fmt.Errorf("there is no branch %q or %q", in.Head, in.Base)
		}
		head := from.branches[in.Head]
		p := &pullRequest{
			repo: r, number: r.next(), title: in.Title, body: in.Body, author: by, headRepo: from,
			head: in.Head, headSHA: head, base: in.Base, mergeBase: s.model.mergeBase(r.branches[in.Base], head),
			created: s.now(), updated: s.now(),
		}
		r.objects[head] = true
		r.pulls = append(r.pulls, p)
		s.notePush(p, moved{before: r.branches[in.Base], after: head, by: by})
		s.sendPull(p, "pull_request", "opened", by, nil)
		number = p.number
		return nil
	})
	return number, err
}

// Fork copies a repository to another owner.
func (s *Server) Fork(_ context.Context, of pull.Repo, owner string) (out pull.Repo, err error) {
	err = s.inRepo(of, func(r *repo) error {
		a, err := s.model.account(owner)
		if err != nil {
			return err
		}
		s.model.last.repo++
		fork := &repo{
			id: s.model.last.repo, owner: a, name: r.name, branches: map[string]string{}, objects: map[string]bool{},
			statuses: map[string][]*status{}, grants: map[int64]Permission{},
		}
		maps.Copy(fork.branches, r.branches)
		maps.Copy(fork.objects, r.objects)
		s.model.repos = append(s.model.repos, fork)
		out = fork.value()
		return nil
	})
	return out, err
}

// DeleteRepo deletes a repository. Pull requests from it stay, without it.
func (s *Server) DeleteRepo(_ context.Context, of pull.Repo) error {
	return s.inRepo(of, func(gone *repo) error {
		s.model.repos = slices.DeleteFunc(s.model.repos, func(r *repo) bool { return r == gone })
		for _, r := range s.model.repos {
			for _, p := range r.pulls {
				if p.headRepo == gone {
					p.headRepo = nil
				}
			}
		}
		return nil
	})
}

// The words of a review, as the API has them.
const (
	Approve        = "APPROVED"
	RequestChanges = "REQUEST_CHANGES"
	Remark         = "COMMENT"
)

// Review submits a review of the current head and returns its id.
func (s *Server) Review(_ context.Context, of pull.Repo, number int64, as, state, body string) (id int64, err error) {
	kinds := map[string]string{Approve: "approved", RequestChanges: "rejected", Remark: "comment"}
	err = s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		switch {
		case kinds[state] == "":
			return fmt.Errorf("%q is no state of a review", state)
		case p.closed && state != Remark:
			return errClosed
		case by == p.author && state == Approve:
			return errors.New("approve your own pull is not allowed")
		case by == p.author && state == RequestChanges:
			return errors.New("reject your own pull is not allowed")
		case body == "" && state != Approve:
			return errors.New("review content is empty")
		}
		r := s.review(p, by, state, body)
		id = r.id
		s.model.add(p, s.now(), entry{kind: "review", author: by, body: body, review: r})
		kind := "pull_request_review_" + kinds[state]
		s.sendPull(p, kind, "reviewed", by, map[string]any{
			"review": map[string]any{"type": kind, "content": body}, "requested_reviewer": s.userJSON(by),
		})
		return nil
	})
	return id, err
}

func (s *Server) review(p *pullRequest, by *account, state, body string) *review {
	s.model.last.review++
	r := &review{id: s.model.last.review, author: by, state: state, body: body, commit: p.headSHA, created: s.now()}
	if state == Approve || state == RequestChanges {
		for _, old := range p.reviews {
			if old.author == by && (old.state == Approve || old.state == RequestChanges) {
				old.official, old.dismissed = false, true
			}
		}
		// So it is where no branch protection says otherwise.
		r.official = s.model.permission(p.repo, by) >= Write
	}
	p.reviews = append(p.reviews, r)
	return r
}

// BeginReview begins a review with remarks on lines of code and leaves it
// unsubmitted: others do not see it, but its remarks take up room in the
// timeline, and an entry after them names it.
func (s *Server) BeginReview(_ context.Context, of pull.Repo, number int64, as string, remarks int) error {
	return s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		r := s.review(p, by, "PENDING", "")
		r.remarks = remarks
		for range remarks {
			s.model.add(p, s.now(), entry{kind: "code", author: by, review: r})
		}
		s.model.add(p, s.now(), entry{kind: "review", author: by, review: r})
		return nil
	})
}

// Dismiss dismisses a review, and earlier ones of the same person with it. No
// webhook says so.
func (s *Server) Dismiss(_ context.Context, of pull.Repo, number, id int64, as string) error {
	return s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		i := slices.IndexFunc(p.reviews, func(r *review) bool { return r.id == id })
		switch {
		case i < 0:
			return fmt.Errorf("there is no review %d", id)
		case p.closed:
			return errClosed
		case s.model.permission(p.repo, by) < Admin:
			return errors.New("only an administrator of the repository dismisses reviews")
		}
		for _, r := range p.reviews {
			if r.author == p.reviews[i].author && (r.state == Approve || r.state == RequestChanges) {
				r.dismissed = true
			}
		}
		s.model.add(p, s.now(), entry{kind: "dismiss_review", author: by, body: "dismissed", review: p.reviews[i]})
		return nil
	})
}

// Comment writes a comment and returns its id.
func (s *Server) Comment(_ context.Context, of pull.Repo, number int64, as, body string) (id int64, err error) {
	err = s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		id = s.comment(p, by, body).id
		return nil
	})
	return id, err
}

func (s *Server) comment(p *pullRequest, by *account, body string) *entry {
	e := s.model.add(p, s.now(), entry{kind: "comment", author: by, body: body})
	s.sendComment(p, e, "created", by, nil)
	return e
}

// EditComment changes the text of a comment, whoever wrote it.
func (s *Server) EditComment(_ context.Context, of pull.Repo, id int64, as, body string) error {
	return s.onComment(of, id, as, func(p *pullRequest, e *entry, by *account) {
		s.editComment(p, e, by, body)
	})
}

func (s *Server) editComment(p *pullRequest, e *entry, by *account, body string) {
	if e.body == body {
		return
	}
	old := e.body
	e.body, e.updated = body, s.now()
	s.sendComment(p, e, "edited", by, map[string]any{"changes": map[string]any{"body": map[string]any{"from": old}}})
}

// DeleteComment deletes a comment, whoever wrote it.
func (s *Server) DeleteComment(_ context.Context, of pull.Repo, id int64, as string) error {
	return s.onComment(of, id, as, func(p *pullRequest, e *entry, by *account) {
		s.deleteComment(p, e, by)
	})
}

func (s *Server) deleteComment(p *pullRequest, e *entry, by *account) {
	p.entries = slices.DeleteFunc(p.entries, func(x *entry) bool { return x == e })
	s.sendComment(p, e, "deleted", by, nil)
}

func (s *Server) onComment(of pull.Repo, id int64, as string, f func(*pullRequest, *entry, *account)) error {
	return s.inRepo(of, func(r *repo) error {
		by, err := s.model.account(as)
		if err != nil {
			return err
		}
		p, e := r.comment(id)
		if e == nil || e.kind != "comment" {
			return fmt.Errorf("there is no comment %d", id)
		}
		f(p, e, by)
		return nil
	})
}

// Edit is the new title and body of a pull request.
type Edit struct {
	Title string
	Body  string
}

// EditPull sets title and body. As in the API of Gitea a body that stays the
// same is an edit too.
func (s *Server) EditPull(_ context.Context, of pull.Repo, number int64, as string, edit Edit) error {
	return s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		if edit.Title != p.title {
			old := p.title
			p.title = edit.Title
			s.model.add(p, s.now(), entry{kind: "change_title", author: by})
			s.sendPull(p, "pull_request", "edited", by, map[string]any{"changes": map[string]any{"title": map[string]any{"from": old}}})
		}
		old := p.body
		p.body = edit.Body
		s.sendPull(p, "pull_request", "edited", by, map[string]any{"changes": map[string]any{"body": map[string]any{"from": old}}})
		return nil
	})
}

// SetLabels replaces the labels.
func (s *Server) SetLabels(_ context.Context, of pull.Repo, number int64, as string, labels ...string) error {
	return s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		p.labels = labels
		s.model.add(p, s.now(), entry{kind: "label", author: by})
		s.sendPull(p, "pull_request_label", "label_updated", by, nil)
		return nil
	})
}

// Retarget moves a pull request to another base branch. As in Gitea the pushes
// before it leave the timeline, and one appears after it.
func (s *Server) Retarget(_ context.Context, of pull.Repo, number int64, as, base string) error {
	return s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		switch {
		case p.closed:
			return errClosed
		case p.repo.branches[base] == "":
			return fmt.Errorf("there is no branch %q", base)
		case p.base == base:
			return nil
		}
		old := p.base
		p.base, p.mergeBase = base, s.model.mergeBase(p.repo.branches[base], p.headSHA)
		s.model.add(p, s.now(), entry{kind: "change_target_branch", author: by, old: old, new: base})
		p.entries = slices.DeleteFunc(p.entries, func(e *entry) bool { return e.kind == "pull_push" })
		s.notePush(p, moved{before: p.repo.branches[base], after: p.headSHA, by: by})
		s.sendPull(p, "pull_request", "edited", by, map[string]any{"changes": map[string]any{"ref": map[string]any{"from": old}}})
		return nil
	})
}

// SetOpen closes a pull request or opens it again.
func (s *Server) SetOpen(_ context.Context, of pull.Repo, number int64, as string, open bool) error {
	return s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		if p.merged || p.closed != open {
			return fmt.Errorf("the pull request is so already, or merged")
		}
		p.closed = !open
		kind, action := "close", "closed"
		if open {
			kind, action = "reopen", "reopened"
		}
		s.model.add(p, s.now(), entry{kind: kind, author: by})
		s.sendPull(p, "pull_request", action, by, nil)
		return nil
	})
}
