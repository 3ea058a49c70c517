package giteatest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"signalbox/internal/pull"
)

// mergeBody is what a merge is asked for with.
type mergeBody struct {
	Method  string `json:"do"`
	Head    string `json:"head_commit_id"`
	Title   string `json:"MergeTitleField"`
	Message string `json:"MergeMessageField"`
	Force   bool   `json:"force_merge"`
	Later   bool   `json:"merge_when_checks_succeed"`
}

var mergeMethods = []string{"merge", "rebase", "rebase-merge", "squash", "fast-forward-only"}

// conflictError is a conflict that shows only in the merge: its answer is the
// output of git.
type conflictError struct{ path string }

func (e *conflictError) Error() string { return "merge conflict in " + e.path }

func mergePull(r *request, p *pullRequest) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	if p.repo.archived {
		return &apiError{http.StatusLocked, p.repo.fullName() + " is archived"}
	}
	var in mergeBody
	if err := r.body(&in); err != nil {
		return err
	}
	_, err := r.server.merge(p, r.doer, in)
	if conflict, ok := errors.AsType[*conflictError](err); ok {
		writeJSON(r.w, http.StatusConflict, map[string]any{
			"Style": in.Method, "StdOut": "Auto-merging " + conflict.path + "\nCONFLICT (content): Merge conflict in " + conflict.path + "\n",
			"StdErr": "", "Err": map[string]any{},
		})
		return nil
	}
	return err
}

// refuse says why an account may not merge now, in the order of Gitea.
func (s *Server) refuse(p *pullRequest, by *account, in mergeBody) error {
	no := func(words string) error { return &apiError{http.StatusMethodNotAllowed, words} }
	b := p.repo.ruleOf(p.base)
	switch {
	case !slices.Contains(mergeMethods, in.Method):
		return &apiError{http.StatusUnprocessableEntity, "[Do]: In"}
	case p.merged:
		return no("The PR is already merged")
	case p.closed:
		return errNotFound
	case !s.model.mayMerge(p.repo, p.base, by):
		return no("User not allowed to merge PR")
	case draft(p.title):
		return no("Work in progress PRs cannot be merged")
	case !s.mergeable(p):
		return no("Please try again later")
	}
	force := in.Force && s.model.permission(p.repo, by) >= Admin && (b == nil || !b.BlocksAdmins)
	if words := s.unready(p); words != "" && !force {
		return no(words)
	}
	ref, head := p.tip()
	switch {
	case in.Later:
		return errors.New("the stand-in does not merge later")
	case strings.HasPrefix(ref, "refs/pull/"):
		return errors.New("head branch does not exist")
	case in.Head != "" && in.Head != head:
		return &apiError{http.StatusConflict, "head out of date"}
	case s.model.permission(p.repo, by) < Write:
		return &apiError{http.StatusConflict, "PushRejected with remote message: User permission denied for writing."}
	}
	return nil
}

// merge merges the tip of the head, or says why not.
func (s *Server) merge(p *pullRequest, by *account, in mergeBody) (string, error) {
	if err := s.refuse(p, by, in); err != nil {
		return "", err
	}
	_, head := p.tip()
	before := p.repo.branches[p.base]
	after, err := s.mergeCommit(p, before, head, by, in)
	if err != nil {
		return "", err
	}
	p.closed, p.merged, p.mergedBy, p.mergedAt, p.merge = true, true, by, s.now(), after
	p.headSHA, p.repo.objects[head] = head, true
	p.repo.branches[p.base], p.repo.objects[after] = after, true
	s.model.add(p, s.now(), entry{kind: "merge_pull", author: by})
	s.sendPull(p, "pull_request", "closed", by, nil)
	s.pushed(moved{repo: p.repo, branch: p.base, before: before, after: after, by: by})
	return after, nil
}

// mergeCommit makes what the base gets by a merge. To squash and to rebase are
// one here: a single commit on the base.
func (s *Server) mergeCommit(p *pullRequest, before, head string, by *account, in mergeBody) (string, error) {
	if in.Method == "fast-forward-only" {
		if !s.model.history(head)[before] {
			return "", errors.New("not possible to fast-forward")
		}
		return head, nil
	}
	if path := s.model.conflict(before, head); path != "" {
		return "", &conflictError{path}
	}
	title := strings.TrimSpace(in.Title)
	if title == "" {
		title = fmt.Sprintf("Merge pull request '%s' (#%d) from %s into %s", p.title, p.number, p.head, p.base)
	}
	if message := strings.TrimSpace(in.Message); message != "" {
		title += "\n\n" + message
	}
	parents := []string{before, head}
	if in.Method == "squash" || in.Method == "rebase" {
		parents = parents[:1]
	}
	return s.model.commit(commit{
		parents: parents, tree: s.model.merged(before, head), author: by, when: s.now(), message: title,
	}).sha, nil
}

// mergeable is what Gitea knows of conflicts: nothing while it looks for them.
func (s *Server) mergeable(p *pullRequest) bool {
	if p.merged || p.checking {
		return !p.checking
	}
	_, head := p.tip()
	return s.model.conflict(p.repo.branches[p.base], head) == ""
}

// SetChecking makes Gitea look for conflicts in a pull request for as long as a
// test likes, in which time nobody can merge it.
func (s *Server) SetChecking(_ context.Context, of pull.Repo, number int64, checking bool) error {
	return s.inRepo(of, func(r *repo) error {
		p := r.pull(number)
		if p == nil {
			return fmt.Errorf("there is no pull request %s#%d", of, number)
		}
		p.checking = checking
		return nil
	})
}

// Merge merges a pull request as a person does by the button, with a merge
// commit, and returns its id. The protection of the base binds it.
func (s *Server) Merge(_ context.Context, of pull.Repo, number int64, as string) (sha string, err error) {
	return s.button(of, number, as, mergeBody{Method: "merge"})
}

// ForceMerge merges a pull request as an administrator of the repository can,
// against what its protection lacks.
func (s *Server) ForceMerge(_ context.Context, of pull.Repo, number int64, as string) (sha string, err error) {
	return s.button(of, number, as, mergeBody{Method: "merge", Force: true})
}

func (s *Server) button(of pull.Repo, number int64, as string, in mergeBody) (sha string, err error) {
	err = s.inPull(of, number, as, func(p *pullRequest, by *account) error {
		sha, err = s.merge(p, by, in)
		return err
	})
	return sha, err
}

// Message returns the message of a commit.
func (s *Server) Message(_ context.Context, of pull.Repo, sha string) (message string, err error) {
	err = s.inRepo(of, func(r *repo) error {
		if !r.objects[sha] {
			return fmt.Errorf("there is no commit %s", sha)
		}
		message = s.model.commits[sha].message
		return nil
	})
	return message, err
}

// Archive archives a repository, or ends that. Of what that forbids, the
// stand-in knows merging.
func (s *Server) Archive(_ context.Context, of pull.Repo, archived bool) error {
	return s.inRepo(of, func(r *repo) error {
		r.archived = archived
		return nil
	})
}
