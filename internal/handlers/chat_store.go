package handlers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"signalbox/internal/pull"
)

// RequestBucket is where requests are kept.
type RequestBucket interface {
	Put(ctx context.Context, key string, q Request, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	Sync(ctx context.Context) error
}

// Requests finds the requests about a pull request. It follows its bucket
// through [Requests.Change]. It implements [RequestStore].
type Requests struct {
	Bucket RequestBucket
	// Conflict reports that a key was there already.
	Conflict func(error) bool

	mu    sync.RWMutex
	byRef map[pull.Ref]map[string]Request
	// byCause are the requests by their cause, which has one as a rule.
	byCause map[string]Request
}

func requestKey(q Request) string { return q.Ref.String() + "." + hashed(q.Cause) }

// Change follows one change of a request; nil means that there was or is none.
func (s *Requests) Change(key string, before, after *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRef == nil {
		s.byRef, s.byCause = map[pull.Ref]map[string]Request{}, map[string]Request{}
	}
	if before != nil {
		delete(s.byRef[before.Ref], key)
		delete(s.byCause, before.Cause)
		if len(s.byRef[before.Ref]) == 0 {
			delete(s.byRef, before.Ref)
		}
	}
	if after != nil {
		if s.byRef[after.Ref] == nil {
			s.byRef[after.Ref] = map[string]Request{}
		}
		s.byRef[after.Ref][key] = *after
		s.byCause[after.Cause] = *after
	}
}

// Of returns the requests about a pull request, the oldest first.
func (s *Requests) Of(ref pull.Ref) []Request {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.byRef[ref]), func(a, b Request) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cause, b.Cause))
	})
}

// By returns the request that has a cause.
func (s *Requests) By(cause string) (Request, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	q, ok := s.byCause[cause]
	return q, ok
}

// Add keeps a request, once for its cause.
func (s *Requests) Add(ctx context.Context, q Request) error {
	_, err := s.Bucket.Put(ctx, requestKey(q), q, 0)
	if s.Conflict(err) {
		return nil
	}
	return err
}

// Done forgets a request.
func (s *Requests) Done(ctx context.Context, q Request) error {
	return s.Bucket.Delete(ctx, requestKey(q))
}

// Sync waits until all requests that were added before are known.
func (s *Requests) Sync(ctx context.Context) error { return s.Bucket.Sync(ctx) }
