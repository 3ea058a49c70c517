package handlers

import (
	"context"
	"strings"
	"sync"
	"time"

	"signalbox/internal/pull"
)

// PeopleReader reads accounts and their rights.
type PeopleReader interface {
	// UserByID is [pull.ErrNotFound] for an account that is gone.
	UserByID(ctx context.Context, id int64) (pull.Person, error)
	// UserByName is [pull.ErrNotFound] where there is no such account.
	UserByName(ctx context.Context, login string) (pull.Person, error)
	// Permission is what an account may do with a repository.
	Permission(ctx context.Context, repo pull.Repo, login string) (pull.Permission, error)
}

// peopleAge is how long the name of an account is remembered.
const peopleAge = time.Minute

// People tells what accounts are called now: a decision is bound to the id of
// an account, a policy to its name, and accounts are renamed.
type People struct {
	reader PeopleReader
	now    func() time.Time

	mu    sync.Mutex
	known map[int64]knownPerson
	names map[string]knownPerson
}

type knownPerson struct {
	person pull.Person
	at     time.Time
}

// NewPeople makes a memory of accounts.
func NewPeople(reader PeopleReader, now func() time.Time) *People {
	return &People{reader: reader, now: now, known: map[int64]knownPerson{}, names: map[string]knownPerson{}}
}

// ByID returns an account as it is called now, at most a minute ago.
func (p *People) ByID(ctx context.Context, id int64) (pull.Person, error) {
	p.mu.Lock()
	k, ok := p.known[id]
	p.mu.Unlock()
	if ok && p.now().Sub(k.at) < peopleAge {
		return k.person, nil
	}
	person, err := p.reader.UserByID(ctx, id)
	if err == nil {
		p.mu.Lock()
		p.known[id] = knownPerson{person, p.now()}
		p.mu.Unlock()
	}
	return person, err
}

// ByName returns the account that has a login now, or had at most a minute ago.
func (p *People) ByName(ctx context.Context, login string) (pull.Person, error) {
	login = strings.ToLower(login)
	p.mu.Lock()
	k, ok := p.names[login]
	p.mu.Unlock()
	if ok && p.now().Sub(k.at) < peopleAge {
		return k.person, nil
	}
	person, err := p.reader.UserByName(ctx, login)
	if err == nil {
		p.mu.Lock()
		p.names[login] = knownPerson{person, p.now()}
		p.mu.Unlock()
	}
	return person, err
}
