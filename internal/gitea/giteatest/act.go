package giteatest

import (
	"context"
	"fmt"
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

// SetTeam makes a team of an organisation that may write to its repositories,
// or replaces its members. The team "Owners" administers.
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
		access := Write
		if strings.EqualFold(name, "Owners") {
			access = Admin
		}
		s.model.teams = append(s.model.teams, &team{id: s.model.last.team, org: owner, name: name, members: people, access: access})
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
