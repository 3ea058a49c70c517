package web

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"signalbox/internal/pull"
)

// viewer is who looks at the pages. The zero value is somebody who has not signed
// in.
type viewer struct {
	Person pull.Person
	// Operator says that the configuration lets them see everything.
	Operator bool
	// Form is what a form must bring back; empty for who has no session.
	Form string

	key   string
	until time.Time
}

func (v viewer) anonymous() bool { return v.Person.ID == 0 }

// SignedIn reports whether it is known who looks.
func (v viewer) SignedIn() bool { return !v.anonymous() }

// Login is how they are called in Gitea, or empty.
func (v viewer) Login() string { return v.Person.Login }

// sight is what a viewer may see. The zero value is nothing.
type sight struct {
	// whole says that they see what belongs to no repository: clusters, digests,
	// the health of signalbox.
	whole bool

	everything bool
	repos      map[int64]bool
}

// repo reports whether they see a repository and its pull requests.
func (s sight) repo(id int64) bool { return s.everything || s.repos[id] }

// sightOf says what a viewer may see: everything as an operator or where the pages
// are public, and else what Gitea lets them read. Who may write anywhere also
// sees the installation. What cannot be known is not seen.
func (s *Server) sightOf(ctx context.Context, v viewer) sight {
	switch {
	case s.Public || v.Operator && !v.anonymous():
		return sight{whole: true, everything: true}
	case v.anonymous():
		return sight{}
	}
	var (
		mu   sync.Mutex
		seen = sight{repos: map[int64]bool{}}
		all  errgroup.Group
	)
	all.SetLimit(8)
	for _, repo := range s.Pulls.Repositories() {
		all.Go(func() error {
			p, err := s.rights.permission(ctx, repo, v.Person)
			if err != nil {
				if ctx.Err() == nil && !errors.Is(err, pull.ErrForbidden) && !errors.Is(err, pull.ErrNotFound) {
					s.Log.WarnContext(ctx, "cannot tell who may see a repository", "repo", repo.String(), "error", err)
				}
				return nil // What cannot be known is not seen.
			}
			mu.Lock()
			defer mu.Unlock()
			if p.AtLeast(pull.PermissionRead) {
				seen.repos[repo.ID] = true
			}
			seen.whole = seen.whole || p.AtLeast(pull.PermissionWrite)
			return nil
		})
	}
	_ = all.Wait()
	return seen
}

// operator reports whether the configuration names somebody as one.
func (s *Server) operator(p pull.Person) bool {
	return p.ID != 0 && p.Login != "" && slices.ContainsFunc(s.Operators, func(o string) bool { return strings.EqualFold(o, p.Login) })
}

// How long an answer of Gitea is believed, and how long one that failed.
const (
	rightsTime  = time.Minute
	failureTime = 10 * time.Second
	askTime     = 5 * time.Second
	maxRights   = 10_000
)

// rightsCache remembers what Gitea said of who may do what, for a minute at most.
type rightsCache struct {
	rights Rights
	now    func() time.Time
	known  *lru.Cache[rightsKey, rightsAnswer]
	asking singleflight.Group
}

type rightsKey struct {
	repo pull.Repo
	who  pull.Person
}

func (k rightsKey) String() string { return k.repo.String() + "\x00" + k.who.Login }

type rightsAnswer struct {
	permission pull.Permission
	err        error
	until      time.Time
}

func newRightsCache(rights Rights, now func() time.Time) *rightsCache {
	// The only error is of a size that is not positive.
	known, _ := lru.New[rightsKey, rightsAnswer](maxRights)
	return &rightsCache{rights: rights, now: now, known: known}
}

// permission returns what somebody may do in a repository. Many that ask at once
// cost one question, which does not end with the first of them.
func (c *rightsCache) permission(ctx context.Context, repo pull.Repo, who pull.Person) (pull.Permission, error) {
	key := rightsKey{repo, who}
	if a, ok := c.known.Get(key); ok && c.now().Before(a.until) {
		return a.permission, a.err
	}
	done := c.asking.DoChan(key.String(), func() (any, error) {
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
		defer cancel()
		var a rightsAnswer
		// The time counts from before the question: what was answered may be older.
		asked := c.now()
		a.permission, a.err = c.rights.Permission(ask, repo, who.Login)
		lasts := rightsTime
		if a.err != nil && !errors.Is(a.err, pull.ErrForbidden) && !errors.Is(a.err, pull.ErrNotFound) {
			lasts = failureTime
		}
		a.until = asked.Add(lasts)
		c.known.Add(key, a)
		return a, nil
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-done:
		a, ok := r.Val.(rightsAnswer)
		if !ok {
			return "", cmp.Or(r.Err, errors.New("the question of a right ended without an answer"))
		}
		return a.permission, a.err
	}
}
