package giteatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"signalbox/internal/pull"
)

// now is the time as Gitea stores it, in whole seconds.
func (s *Server) now() time.Time { return s.options.Clock().UTC().Truncate(time.Second) }

// locked runs f under the lock.
func (s *Server) locked(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// CreateUser makes an account and returns it with a token.
func (s *Server) CreateUser(_ context.Context, login string) (p pull.Person, token string, err error) {
	err = s.locked(func() error {
		a, err := s.model.addAccount(login, false)
		if err != nil {
			return err
		}
		p, token = a.person(), a.token
		return nil
	})
	return p, token, err
}

// DeleteUser deletes an account; what it wrote stays, by "Ghost".
func (s *Server) DeleteUser(_ context.Context, login string) error {
	return s.locked(func() error {
		a, err := s.model.account(login)
		if err != nil {
			return err
		}
		a.gone, a.token = true, ""
		for _, t := range s.model.teams {
			t.members = slices.DeleteFunc(t.members, func(m *account) bool { return m == a })
		}
		return nil
	})
}

// RevokeToken makes the token of an account invalid.
func (s *Server) RevokeToken(login string) error {
	return s.locked(func() error {
		a, err := s.model.account(login)
		if err != nil {
			return err
		}
		a.token = ""
		return nil
	})
}

// CreateOrg makes an organisation.
func (s *Server) CreateOrg(_ context.Context, name string) error {
	return s.locked(func() error {
		_, err := s.model.addAccount(name, true)
		return err
	})
}

// SetTeam makes a team of an organisation, or replaces its members.
func (s *Server) SetTeam(_ context.Context, org, name string, members ...string) error {
	return s.locked(func() error {
		owner, err := s.model.account(org)
		if err != nil || !owner.org {
			return fmt.Errorf("there is no organisation %q", org)
		}
		var people []*account
		for _, login := range members {
			a, err := s.model.account(login)
			if err != nil {
				return err
			}
			people = append(people, a)
		}
		for _, t := range s.model.teams {
			if t.org == owner && strings.EqualFold(t.name, name) {
				t.members = people
				return nil
			}
		}
		s.model.last.team++
		s.model.teams = append(s.model.teams, &team{id: s.model.last.team, org: owner, name: name, members: people})
		return nil
	})
}

// CreateRepo makes a repository with a first commit on "main".
func (s *Server) CreateRepo(_ context.Context, owner, name string, files map[string]string) (out pull.Repo, err error) {
	err = s.locked(func() error {
		a, err := s.model.account(owner)
		if err != nil {
			return err
		}
		if found, moved := s.model.repo(owner, name); found != nil && !moved {
			return fmt.Errorf("there is a repository %s/%s already", owner, name)
		}
		s.model.last.repo++
		r := &repo{
			id: s.model.last.repo, owner: a, name: name, branches: map[string]string{}, objects: map[string]bool{},
			statuses: map[string][]*status{}, grants: map[int64]Permission{},
		}
		s.model.repos = append(s.model.repos, r)
		c := s.model.commit(commit{tree: tree(nil, files, nil), message: "Start", author: a, when: s.now()})
		r.branches["main"], r.objects[c.sha] = c.sha, true
		out = r.value()
		return nil
	})
	return out, err
}

func (r *repo) value() pull.Repo { return pull.Repo{ID: r.id, Owner: r.owner.login, Name: r.name} }

// RenameRepo gives a repository another name; the old one answers with a
// redirect for as long as nobody takes it.
func (s *Server) RenameRepo(_ context.Context, of pull.Repo, name string) (out pull.Repo, err error) {
	err = s.inRepo(of, func(r *repo) error {
		r.old = append(r.old, r.fullName())
		r.name = name
		out = r.value()
		return nil
	})
	return out, err
}

// Grant lets an account do something in a repository.
func (s *Server) Grant(_ context.Context, of pull.Repo, login string, p Permission) error {
	return s.inRepo(of, func(r *repo) error {
		a, err := s.model.account(login)
		if err != nil {
			return err
		}
		r.grants[a.id] = p
		return nil
	})
}

// SetPrivate hides a repository from everybody without a grant, or ends that.
func (s *Server) SetPrivate(_ context.Context, of pull.Repo, private bool) error {
	return s.inRepo(of, func(r *repo) error {
		r.private = private
		return nil
	})
}

// inRepo runs f on a repository, found by its id, under the lock.
func (s *Server) inRepo(of pull.Repo, f func(*repo) error) error {
	return s.locked(func() error {
		r := s.model.repoByID(of.ID)
		if r == nil {
			return fmt.Errorf("there is no repository %s with id %d", of, of.ID)
		}
		return f(r)
	})
}

// inPull runs f on a pull request for an account, under the lock.
func (s *Server) inPull(of pull.Repo, number int64, as string, f func(*pullRequest, *account) error) error {
	return s.inRepo(of, func(r *repo) error {
		p := r.pull(number)
		if p == nil {
			return fmt.Errorf("there is no pull request %s#%d", of, number)
		}
		a, err := s.model.account(as)
		if err != nil {
			return err
		}
		return f(p, a)
	})
}

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
		s.pushed(r, push.Branch, before, c.sha, by, push.Force)
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

// pushed does what follows a push: the event, and pull requests that follow.
func (s *Server) pushed(r *repo, branch, before, after string, by *account, force bool) {
	const none = "0000000000000000000000000000000000000000"
	if before == "" {
		before = none
		s.send(r, "create", map[string]any{"sha": after, "ref": branch, "ref_type": "branch", "sender": s.userJSON(by)})
	}
	c := s.model.commits[after]
	head := s.payloadCommit(r, c)
	s.send(r, "push", map[string]any{
		"ref": "refs/heads/" + branch, "before": before, "after": after, "commits": []any{head}, "total_commits": 1,
		"head_commit": head, "pusher": s.userJSON(by), "sender": s.userJSON(by),
	})
	if s.lag == NoLag {
		s.followAll(r, branch, after, by, force)
		return
	}
	if s.lag == LagMergeBase {
		for _, p := range s.pullsFrom(r, branch) {
			p.headSHA, p.repo.objects[after] = after, true
		}
	}
	s.late = append(s.late, func() { s.followAll(r, branch, after, by, force) })
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
func (s *Server) followAll(r *repo, branch, after string, by *account, force bool) {
	for _, p := range s.pullsFrom(r, branch) {
		s.follow(p, after, by, force)
	}
	for _, p := range r.pulls {
		if !p.closed && p.base == branch {
			p.mergeBase = s.model.mergeBase(after, p.headSHA)
		}
	}
}

// follow moves a pull request to a new head.
func (s *Server) follow(p *pullRequest, sha string, by *account, force bool) {
	changed := !slices.Equal(s.changes(p), changes(s.model.treeAt(s.model.mergeBase(p.repo.branches[p.base], sha)), s.model.treeAt(sha)))
	p.headSHA = sha
	p.repo.objects[sha] = true
	p.mergeBase = s.model.mergeBase(p.repo.branches[p.base], sha)
	s.model.add(p, s.now(), entry{kind: "pull_push", author: by, body: fmt.Sprintf(`{"is_force_push":%t,"commit_ids":[%q]}`, force, sha)})
	for _, review := range p.reviews {
		review.stale = review.commit != sha && (changed || review.stale)
	}
	s.sendPull(p, "pull_request_sync", "synchronized", by, nil)
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
