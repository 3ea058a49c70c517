package giteatest

import (
	"context"
	"fmt"

	"signalbox/internal/pull"
)

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
