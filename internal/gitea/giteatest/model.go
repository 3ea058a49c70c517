package giteatest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/pull"
)

// model is everything that the stand-in knows. Ids are counted per kind, as in
// the tables of Gitea.
type model struct {
	accounts []*account
	teams    []*team
	repos    []*repo
	commits  map[string]*commit
	runners  []*runner
	last     struct{ account, team, repo, entry, review, status, hook, commit, run, job, runner int64 }
}

func newModel() model { return model{commits: map[string]*commit{}} }

// account is a person or an organisation.
type account struct {
	id    int64
	login string
	old   []string // Names it had.
	token string
	org   bool
	admin bool
	gone  bool
}

type team struct {
	id      int64
	org     *account
	name    string
	members []*account
	access  Permission // To the repositories of the organisation.
}

// Permission is what an account may do in a repository.
type Permission int

// The permissions of Gitea, each with those before it.
const (
	None Permission = iota
	Read
	Write
	Admin
)

type repo struct {
	id       int64
	owner    *account
	name     string
	old      []string // Names it had, "owner/name".
	private  bool
	branches map[string]string // Commit by branch.
	objects  map[string]bool   // Commits that were ever pushed.
	pulls    []*pullRequest
	statuses map[string][]*status
	hooks    []*hook
	grants   map[int64]Permission
	rules    []*rule // In the order in which they were made.
	archived bool
	issues   []*issue

	runs      []*run // In the order in which they were started.
	secrets   []variable
	variables []variable
}

type pullRequest struct {
	repo      *repo
	number    int64
	title     string
	body      string
	author    *account
	closed    bool
	merged    bool
	headRepo  *repo // Nil once the fork was deleted.
	head      string
	headSHA   string // What refs/pull/N/head points at.
	base      string
	mergeBase string
	labels    []string
	reviews   []*review
	entries   []*entry
	created   time.Time
	updated   time.Time
	mergedBy  *account
	mergedAt  time.Time
	merge     string // The commit that the base got.
	checking  bool   // Whether it is looked for conflicts.
}

// entry is a row of the timeline. Only those of type "comment" are comments.
type entry struct {
	id       int64
	kind     string
	author   *account
	body     string
	review   *review
	old, new string
	commits  []string // Of a push.
	force    bool
	created  time.Time
	updated  time.Time

	reactions []Reaction
}

type review struct {
	id        int64
	author    *account
	state     string // In the words of the API.
	body      string
	commit    string
	dismissed bool
	official  bool
	stale     bool
	remarks   int // Comments on lines of code.
	created   time.Time
}

type status struct {
	id          int64
	state       string
	context     string
	description string
	target      string
	creator     *account // Nil for Actions.
	created     time.Time
}

type hook struct {
	id      int64
	url     string
	content string
	secret  string
	filter  string
	events  map[string]bool
	active  bool
	created time.Time
}

// ghost stands for an account that was deleted.
var ghost = &account{id: -1, login: "Ghost"}

// actions stands for Gitea's own Actions.
var actions = &account{id: -2, login: "gitea-actions"}

// shown returns the account as it is shown.
func (a *account) shown() *account {
	if a != nil && a.gone {
		return ghost
	}
	return a
}

func (a *account) person() pull.Person { return pull.Person{ID: a.id, Login: a.login} }

func (m *model) account(login string) (*account, error) {
	for _, a := range m.accounts {
		if !a.gone && strings.EqualFold(a.login, login) {
			return a, nil
		}
	}
	return nil, fmt.Errorf("there is no account %q", login)
}

func (m *model) addAccount(login string, org bool) (*account, error) {
	if _, err := m.account(login); err == nil {
		return nil, fmt.Errorf("there is an account %q already", login)
	}
	m.last.account++
	a := &account{id: m.last.account, login: login, org: org}
	if !org {
		sum := sha256.Sum256([]byte("token of " + login))
		a.token = hex.EncodeToString(sum[:20])
	}
	m.accounts = append(m.accounts, a)
	return a, nil
}

// repo finds a repository by name; moved is set where the name is an old one.
func (m *model) repo(owner, name string) (found *repo, moved bool) {
	for _, r := range m.repos {
		if strings.EqualFold(r.owner.login, owner) && strings.EqualFold(r.name, name) {
			return r, false
		}
	}
	for _, r := range m.repos {
		for _, old := range r.old {
			if strings.EqualFold(old, owner+"/"+name) {
				return r, true
			}
		}
	}
	return nil, false
}

func (m *model) repoByID(id int64) *repo {
	for _, r := range m.repos {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

func (r *repo) pull(number int64) *pullRequest {
	for _, p := range r.pulls {
		if p.number == number {
			return p
		}
	}
	return nil
}

// permission returns what an account may do; a nil account is anybody.
func (m *model) permission(r *repo, a *account) Permission {
	best := None
	if !r.private {
		best = Read
	}
	if a == nil || a.gone {
		return best
	}
	if a.admin || a == r.owner {
		return Admin
	}
	return max(best, r.grants[a.id], m.teamAccess(r, a))
}

func (p *pullRequest) comments() int {
	n := 0
	for _, e := range p.entries {
		if e.kind == "comment" {
			n++
		}
	}
	return n
}

// add appends a row to the timeline.
func (m *model) add(p *pullRequest, now time.Time, e entry) *entry {
	m.last.entry++
	e.id, e.created, e.updated = m.last.entry, now, now
	p.entries = append(p.entries, &e)
	p.updated = now
	return &e
}

// ownerOf and memberOf tell what an account is in an organisation. Its owners
// are the team "Owners".
func (m *model) ownerOf(a, org *account) bool {
	return slices.ContainsFunc(m.teams, func(t *team) bool {
		return t.org == org && strings.EqualFold(t.name, "Owners") && slices.Contains(t.members, a)
	})
}

func (m *model) memberOf(a, org *account) bool {
	return slices.ContainsFunc(m.teams, func(t *team) bool { return t.org == org && slices.Contains(t.members, a) })
}

// comment finds a row of a repository by its id.
func (r *repo) comment(id int64) (*pullRequest, *entry) {
	for _, p := range r.pulls {
		for _, e := range p.entries {
			if e.id == id {
				return p, e
			}
		}
	}
	return nil, nil
}
