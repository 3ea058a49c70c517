package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"signalbox/internal/pull"
)

// Bounds of live updates.
const (
	// maxStreams is of all, maxOpenStreams of all who have not signed in, and
	// maxViewerStreams of one person, however often they signed in.
	maxStreams       = 1000
	maxOpenStreams   = 700
	maxViewerStreams = 20
	// beatTime is between two signs of life, and gatherTime the least between two
	// changes that are told.
	beatTime   = 20 * time.Second
	gatherTime = time.Second
	// slowTime is how long a client may take to receive one of them.
	slowTime = 10 * time.Second
)

// streams counts those who follow.
type streams struct {
	mu       sync.Mutex
	all      int
	byViewer map[int64]int
}

func newStreams() *streams { return &streams{byViewer: map[int64]int{}} }

// enter takes a place, or says with which code there is none. Those who have not
// signed in, whose id is zero, share their bound, and cannot take the places of those
// who have.
func (s *streams) enter(viewer int64) (leave func(), code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= maxStreams, viewer == 0 && s.byViewer[viewer] >= maxOpenStreams:
		return nil, http.StatusServiceUnavailable
	case viewer != 0 && s.byViewer[viewer] >= maxViewerStreams:
		return nil, http.StatusTooManyRequests
	}
	s.all++
	s.byViewer[viewer]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.byViewer[viewer]--; s.byViewer[viewer] == 0 {
			delete(s.byViewer, viewer)
		}
	}, 0
}

// interest is what a page follows. The zero value is everything.
type interest struct {
	ref     pull.Ref
	cluster string
}

// interestOf reads what is asked for; errNotFound is for what the viewer does not
// see, and for anything else.
func (s *Server) interestOf(v *visit) (interest, error) {
	var i interest
	query := v.URL.Query()
	switch {
	case query.Has("all"):
		return i, nil
	case query.Has("cluster"):
		i.cluster = query.Get("cluster")
		if !v.sight.whole || !slices.Contains(s.Clusters, i.cluster) {
			return i, errNotFound
		}
		return i, nil
	}
	repo, number, found := strings.Cut(query.Get("ref"), ".")
	id, err := strconv.ParseInt(repo, 10, 64)
	n, err2 := strconv.ParseInt(number, 10, 64)
	i.ref = pull.Ref{RepoID: id, Number: n}
	if !found || err != nil || err2 != nil || id <= 0 || n <= 0 || !v.sight.repo(id) {
		return i, errNotFound
	}
	return i, nil
}

// wants reports whether a change is of what is followed and seen.
func (i interest) wants(c Change, see sight) bool {
	switch none := (pull.Ref{}); {
	case i.ref != none:
		return c.Ref == i.ref && see.repo(c.Ref.RepoID)
	case i.cluster != "":
		return c.Cluster == i.cluster && see.whole
	case c.Ref != none:
		return see.repo(c.Ref.RepoID)
	default:
		return see.whole
	}
}

// gathered are the changes since they were last told. So many at most are told
// apart; after that, everything may have changed.
type gathered struct {
	mu      sync.Mutex
	changes map[Change]bool
	more    chan struct{}
}

const maxGathered = 1000

func (g *gathered) add(c Change) {
	g.mu.Lock()
	if len(g.changes) < maxGathered {
		g.changes[c] = true
	}
	g.mu.Unlock()
	select {
	case g.more <- struct{}{}:
	default:
	}
}

func (g *gathered) take() map[Change]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.changes
	g.changes = map[Change]bool{}
	return taken
}

// liveHandler tells by server-sent events that something changed that the viewer
// sees. What it is they ask for then, as for any page.
func (s *Server) liveHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		opening, cancel := context.WithTimeout(r.Context(), pageTime)
		v, err := s.visitOf(w, r.WithContext(opening))
		cancel()
		if err == nil && v.viewer.anonymous() && !s.Public {
			err = &problem{Code: http.StatusUnauthorized, Title: "You are not signed in", Text: "Sign in, and try again."}
		}
		var i interest
		if err == nil {
			i, err = s.interestOf(v)
		}
		v.Request = r
		if err != nil {
			s.fail(w, v, err)
			return
		}
		leave, code := s.live.enter(v.viewer.Person.ID)
		if code != 0 {
			w.Header().Set("Retry-After", "30")
			s.fail(w, v, &problem{Code: code, Title: "Too many pages follow", Text: "Close some, or load this one anew from time to time."})
			return
		}
		defer leave()
		s.follow(w, v, i)
	})
}

// follow tells changes until the client leaves, is too slow, the session ends or
// signalbox does.
func (s *Server) follow(w http.ResponseWriter, v *visit, i interest) {
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	if !v.viewer.anonymous() {
		defer time.AfterFunc(v.viewer.until.Sub(v.now), cancel).Stop()
	}
	changes := gathered{changes: map[Change]bool{}, more: make(chan struct{}, 1)}
	defer s.Changes.Follow(changes.add)()

	w.Header().Set("Content-Type", "text/event-stream")
	// A proxy must not keep what has to arrive at once.
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	tell := func(text string) bool {
		// A writer that has no deadline, as in a test, is not slow either.
		_ = control.SetWriteDeadline(time.Now().Add(slowTime))
		_, err := fmt.Fprint(w, text)
		return err == nil && control.Flush() == nil
	}
	if !tell("retry: 3000\n: hello\n\n") {
		return
	}
	beat := time.NewTicker(beatTime)
	defer beat.Stop()
	gather := time.NewTimer(0)
	defer gather.Stop()
	var open <-chan struct{} // Changes are waited for once the time to gather is over.
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ended:
			return
		case <-beat.C:
			if !tell(": beat\n\n") {
				return
			}
		case <-gather.C:
			open = changes.more
		case <-open:
			open = nil
			gather.Reset(gatherTime)
			seen, err := s.changed(ctx, v, i, changes.take())
			if err != nil || seen && !tell("event: changed\ndata: \n\n") {
				return
			}
		}
	}
}

// changed reports whether any of some changes is followed and may be seen now. An
// error ends the stream: the account may be gone.
func (s *Server) changed(ctx context.Context, v *visit, i interest, changes map[Change]bool) (bool, error) {
	see := v.sight
	if !v.viewer.anonymous() {
		if _, _, ok := s.Sessions.Get(v.viewer.key); !ok {
			return false, errNotFound // They signed out.
		}
		ctx, cancel := context.WithTimeout(ctx, pageTime)
		defer cancel()
		now := v.viewer
		var err error
		if now.Person, err = s.People.ByID(ctx, now.Person.ID); err != nil {
			return false, fmt.Errorf("look who follows: %w", err)
		}
		now.Operator = s.operator(now.Person)
		see = s.sightOf(ctx, now)
	}
	if len(changes) >= maxGathered && i == (interest{}) {
		return true, nil
	}
	for c := range changes {
		if i.wants(c, see) {
			return true, nil
		}
	}
	return len(changes) >= maxGathered, nil
}
