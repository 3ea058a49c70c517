package giteatest

import (
	"context"
	"fmt"
	"strings"

	"signalbox/internal/pull"
)

// OpenIssue opens an issue and returns its number, which pull requests count
// on.
func (s *Server) OpenIssue(_ context.Context, of pull.Repo, as, title, body string) (number int64, err error) {
	err = s.inRepo(of, func(r *repo) error {
		by, err := s.model.account(as)
		if err != nil {
			return err
		}
		number = r.next()
		r.issues = append(r.issues, &issue{number: number, author: by, title: title, body: body, created: s.now()})
		return nil
	})
	return number, err
}

// EditIssue writes an issue anew, and opens or closes it.
func (s *Server) EditIssue(_ context.Context, of pull.Repo, number int64, body string, open bool) error {
	return s.inRepo(of, func(r *repo) error {
		for _, i := range r.issues {
			if i.number == number {
				i.body, i.closed = body, !open
				return nil
			}
		}
		return fmt.Errorf("there is no issue %s#%d", of, number)
	})
}

// SetSecret gives a repository a secret, of which nobody sees more than the
// name.
func (s *Server) SetSecret(_ context.Context, of pull.Repo, name, _ string) error {
	return s.inRepo(of, func(r *repo) error {
		r.secrets = set(r.secrets, variable{name: strings.ToUpper(name), created: s.now()})
		return nil
	})
}

// SetVariable gives a repository a variable for its workflows.
func (s *Server) SetVariable(_ context.Context, of pull.Repo, name, value string) error {
	return s.inRepo(of, func(r *repo) error {
		r.variables = set(r.variables, variable{name: strings.ToUpper(name), value: value, created: s.now()})
		return nil
	})
}

func set(list []variable, v variable) []variable {
	for i := range list {
		if list[i].name == v.name {
			list[i].value = v.value
			return list
		}
	}
	return append(list, v)
}
