package giteatest

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// RenameUser gives an account another name. The old one leads to it for as long
// as nobody takes it.
func (s *Server) RenameUser(_ context.Context, login, name string) error {
	return s.locked(func() error {
		a, err := s.model.account(login)
		if err != nil {
			return err
		}
		if _, err := s.model.account(name); err == nil {
			return fmt.Errorf("there is an account %q already", name)
		}
		for _, r := range s.model.repos {
			for _, b := range r.rules {
				for _, list := range b.people() {
					if i := slices.Index(*list, a.login); i >= 0 {
						(*list)[i] = name
					}
				}
			}
		}
		a.old, a.login = append(a.old, a.login), name
		return nil
	})
}

// SetAdmin makes an account one of the administrators of Gitea, or ends that.
func (s *Server) SetAdmin(_ context.Context, login string, admin bool) error {
	return s.locked(func() error {
		a, err := s.model.account(login)
		if err != nil {
			return err
		}
		a.admin = admin
		return nil
	})
}

// GrantTeam says what a team may do with the code of its organisation's
// repositories.
func (s *Server) GrantTeam(_ context.Context, org, name string, p Permission) error {
	return s.locked(func() error {
		for _, t := range s.model.teams {
			if strings.EqualFold(t.org.login, org) && strings.EqualFold(t.name, name) {
				t.access = p
				return nil
			}
		}
		return fmt.Errorf("there is no team %s/%s", org, name)
	})
}

// teamAccess is what an account may do in a repository by its teams.
func (m *model) teamAccess(r *repo, a *account) Permission {
	best := None
	for _, t := range m.teams {
		if t.org == r.owner && slices.Contains(t.members, a) {
			best = max(best, t.access)
		}
	}
	return best
}

// ownAccess is what an account may do by a right of its own.
func (m *model) ownAccess(r *repo, a *account) Permission {
	if a == r.owner {
		return Admin
	}
	return r.grants[a.id]
}

// permissionWord is what the API tells, which leaves out what teams give, as
// long as they do not administer.
func (m *model) permissionWord(r *repo, a *account) string {
	best := r.grants[a.id]
	switch {
	case a.admin, a == r.owner, m.teamAccess(r, a) == Admin:
		return "owner"
	case !r.private:
		best = max(best, Read)
	}
	return [...]string{None: "none", Read: "read", Write: "write", Admin: "admin"}[best]
}
