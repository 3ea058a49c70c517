package giteatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"signalbox/internal/pull"
)

// Push is new commits on a branch.
type Push struct {
	As     string
	Branch string
	// From is the branch or commit that a new branch starts at; empty means
	// "main". For an existing branch it must be empty, except with Force, which
	// starts the branch anew there.
	From  string
	Force bool
	// Merge takes another branch in: the commit has its tip as second parent, and
	// its files where only it changed them.
	Merge string
	// Files are written, Remove deleted, Rename moved (from old to new path),
	// Modes set, such as "100755". A push with none of them moves the branch to
	// From, or makes an empty commit.
	Files   map[string]string
	Remove  []string
	Rename  map[string]string
	Modes   map[string]string
	Message string
}

// tree returns a tree with files written and paths removed.
func tree(old map[string]blob, files map[string]string, remove []string) map[string]blob {
	out := maps.Clone(old)
	if out == nil {
		out = map[string]blob{}
	}
	for _, path := range remove {
		delete(out, path)
	}
	for path, content := range files {
		mode := "100644"
		if was, ok := out[path]; ok {
			mode = was.mode
		}
		out[path] = blob{content: content, mode: mode}
	}
	return out
}

// Push pushes a commit to a branch and returns its id. Pull requests from that
// branch follow.
func (s *Server) Push(_ context.Context, of pull.Repo, push Push) (sha string, err error) {
	err = s.inRepo(of, func(r *repo) error {
		by, err := s.model.account(push.As)
		if err != nil {
			return err
		}
		if !s.model.mayPush(r, push.Branch, by, push.Force) {
			return fmt.Errorf("not allowed to push to protected branch %s", push.Branch)
		}
		before := r.branches[push.Branch]
		parent := before
		if before == "" || push.Force {
			from := push.From
			if from == "" {
				from = "main"
			}
			var ok bool
			if parent, ok = r.resolve(from); !ok {
				return fmt.Errorf("there is no %q to start branch %q from", from, push.Branch)
			}
		} else if push.From != "" {
			return fmt.Errorf("branch %q exists; it starts anew only with Force", push.Branch)
		}
		c, err := s.newCommit(r, push, parent, by)
		if err != nil {
			return err
		}
		r.branches[push.Branch], r.objects[c.sha] = c.sha, true
		s.pushed(moved{repo: r, branch: push.Branch, before: before, after: c.sha, by: by, force: push.Force && before != ""})
		sha = c.sha
		return nil
	})
	return sha, err
}

func (s *Server) newCommit(r *repo, push Push, parent string, by *account) (*commit, error) {
	parents, files := []string{parent}, s.model.treeAt(parent)
	if push.Merge != "" {
		other, ok := r.branches[push.Merge]
		if !ok {
			return nil, fmt.Errorf("there is no branch %q to merge", push.Merge)
		}
		parents = append(parents, other)
		files = s.model.merged(parent, other)
	}
	files = tree(files, push.Files, push.Remove)
	for from, to := range push.Rename {
		f, ok := files[from]
		if !ok {
			return nil, fmt.Errorf("there is no file %q to rename", from)
		}
		delete(files, from)
		files[to] = f
	}
	for path, mode := range push.Modes {
		f, ok := files[path]
		if !ok {
			return nil, fmt.Errorf("there is no file %q to set the mode of", path)
		}
		f.mode = mode
		files[path] = f
	}
	message := push.Message
	if message == "" {
		message = "Change files"
	}
	return s.model.commit(commit{parents: parents, tree: files, message: message, author: by, when: s.now()}), nil
}

// moved is a branch that points at another commit.
type moved struct {
	repo          *repo
	branch        string
	before, after string // Before is empty for a new branch.
	by            *account
	force         bool
}

// pushed does what follows a push: the event, and pull requests that follow.
func (s *Server) pushed(m moved) {
	before := m.before
	if before == "" {
		before = "0000000000000000000000000000000000000000"
		s.send(m.repo, "create", map[string]any{"sha": m.after, "ref": m.branch, "ref_type": "branch", "sender": s.userJSON(m.by)})
	}
	head := s.payloadCommit(m.repo, s.model.commits[m.after])
	s.send(m.repo, "push", map[string]any{
		"ref": "refs/heads/" + m.branch, "before": before, "after": m.after, "commits": []any{head}, "total_commits": 1,
		"head_commit": head, "pusher": s.userJSON(m.by), "sender": s.userJSON(m.by),
	})
	if s.lag == NoLag {
		s.followAll(m)
		return
	}
	if s.lag == LagMergeBase {
		for _, p := range s.pullsFrom(m.repo, m.branch) {
			p.headSHA, p.repo.objects[m.after] = m.after, true
		}
	}
	s.late = append(s.late, func() { s.followAll(m) })
}

// pullsFrom returns the open pull requests from a branch.
func (s *Server) pullsFrom(r *repo, branch string) []*pullRequest {
	var list []*pullRequest
	for _, base := range s.model.repos {
		for _, p := range base.pulls {
			if !p.closed && p.headRepo == r && p.head == branch {
				list = append(list, p)
			}
		}
	}
	return list
}

// followAll updates the pull requests from and to a branch.
func (s *Server) followAll(m moved) {
	for _, p := range s.pullsFrom(m.repo, m.branch) {
		s.follow(p, m)
	}
	for _, p := range m.repo.pulls {
		if !p.closed && p.base == m.branch {
			p.mergeBase = s.model.mergeBase(m.after, p.headSHA)
		}
	}
}

// follow moves a pull request to a new head.
func (s *Server) follow(p *pullRequest, m moved) {
	base := s.model.mergeBase(p.repo.branches[p.base], m.after)
	changed := !slices.Equal(s.changes(p), changes(s.model.treeAt(base), s.model.treeAt(m.after)))
	p.headSHA, p.mergeBase = m.after, base
	p.repo.objects[m.after] = true
	s.notePush(p, m)
	for _, review := range p.reviews {
		review.stale = review.commit != m.after && (changed || review.stale)
	}
	s.sendPull(p, "pull_request_sync", "synchronized", m.by, nil)
}

// notePush writes a push into the timeline. A forced one takes the commits
// that are gone out of the pushes before it, and pushes without any left out of
// the timeline.
func (s *Server) notePush(p *pullRequest, m moved) {
	base := p.repo.branches[p.base]
	if !m.force {
		if fresh := s.model.between(m.after, m.before, base); len(fresh) > 0 {
			s.model.add(p, s.now(), entry{kind: "pull_push", author: m.by, commits: fresh})
		}
		return
	}
	fresh := s.model.between(m.after, base)
	p.entries = slices.DeleteFunc(p.entries, func(e *entry) bool {
		if e.kind != "pull_push" || e.force {
			return false
		}
		e.commits = slices.DeleteFunc(e.commits, func(sha string) bool { return !slices.Contains(fresh, sha) })
		return len(e.commits) == 0
	})
	for _, e := range p.entries {
		fresh = slices.DeleteFunc(fresh, func(sha string) bool { return !e.force && slices.Contains(e.commits, sha) })
	}
	if len(fresh) > 0 {
		s.model.add(p, s.now(), entry{kind: "pull_push", author: m.by, commits: fresh})
	}
	s.model.add(p, s.now(), entry{kind: "pull_push", author: m.by, commits: []string{m.before, m.after}, force: true})
}

func (s *Server) payloadCommit(r *repo, c *commit) map[string]any {
	person := map[string]any{"name": c.author.shown().login, "email": c.author.login + "@example.org", "username": c.author.login}
	return map[string]any{
		"id": c.sha, "message": c.message + "\n", "url": s.root + "/" + r.fullName() + "/commit/" + c.sha,
		"author": person, "committer": person, "verification": nil, "timestamp": c.when,
	}
}

// DeleteBranch deletes a branch. Its commits stay known.
func (s *Server) DeleteBranch(_ context.Context, of pull.Repo, branch string) error {
	return s.inRepo(of, func(r *repo) error {
		if r.branches[branch] == "" {
			return fmt.Errorf("there is no branch %q", branch)
		}
		delete(r.branches, branch)
		return nil
	})
}

// Tip returns the commit that a branch points at.
func (s *Server) Tip(_ context.Context, of pull.Repo, branch string) (sha string, err error) {
	err = s.inRepo(of, func(r *repo) error {
		if sha = r.branches[branch]; sha == "" {
			return fmt.Errorf("there is no branch %q", branch)
		}
		return nil
	})
	return sha, err
}

// SetStatus posts a status on a commit as somebody; nobody ("") stands for
// Actions, whose statuses have no creator.
func (s *Server) SetStatus(_ context.Context, of pull.Repo, sha, as string, st pull.Status) error {
	return s.inRepo(of, func(r *repo) error {
		var by *account
		if as != "" {
			var err error
			if by, err = s.model.account(as); err != nil {
				return err
			}
		}
		_, err := s.setStatus(r, sha, by, status{state: st.State, context: st.Context, description: st.Description})
		return err
	})
}

func (s *Server) setStatus(r *repo, sha string, by *account, st status) (*status, error) {
	if !r.objects[sha] {
		return nil, fmt.Errorf("GetCommit[%s]: object does not exist [id: %s, rel_path: ]", sha, sha)
	}
	if st.context == "" {
		st.context = "default"
	}
	s.model.last.status++
	st.id, st.creator, st.created = s.model.last.status, by, s.now()
	r.statuses[sha] = append(r.statuses[sha], &st)
	sender := by
	if sender == nil {
		sender = actions
	}
	s.send(r, "status", map[string]any{
		"commit": s.payloadCommit(r, s.model.commits[sha]), "context": st.context, "created_at": st.created,
		"description": st.description, "id": st.id, "sha": sha, "state": st.state, "target_url": st.target,
		"updated_at": st.created, "sender": s.userJSON(sender),
	})
	return &st, nil
}

// errClosed refuses what only an open pull request can have done to it.
var errClosed = errors.New("the pull request is closed")
