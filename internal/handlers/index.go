package handlers

import (
	"cmp"
	"slices"
	"sync"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// Index finds the pull requests that something concerns, in time independent
// of how many there are. It follows the records through [Index.Change].
type Index struct {
	mu     sync.RWMutex
	byFact map[fact.Key]refSet
	byBase map[branch]refSet
	byHead map[commit]refSet
}

type (
	refSet map[pull.Ref]struct{}
	branch struct {
		repo int64
		name string
	}
	commit struct {
		repo int64
		sha  string
	}
)

// NewIndex makes an empty index.
func NewIndex() *Index {
	return &Index{byFact: map[fact.Key]refSet{}, byBase: map[branch]refSet{}, byHead: map[commit]refSet{}}
}

// Change follows one change of a record; nil means that there was or is none.
func (x *Index) Change(_ string, before, after *Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if before != nil {
		at := before.place()
		for _, k := range before.Verdict.Reads {
			removeFrom(x.byFact, k, at.Ref)
		}
		removeFrom(x.byBase, branch{at.Ref.RepoID, at.Base}, at.Ref)
		removeFrom(x.byHead, commit{at.Ref.RepoID, at.Head}, at.Ref)
	}
	if after != nil {
		at := after.place()
		for _, k := range after.Verdict.Reads {
			addTo(x.byFact, k, at.Ref)
		}
		addTo(x.byBase, branch{at.Ref.RepoID, at.Base}, at.Ref)
		addTo(x.byHead, commit{at.Ref.RepoID, at.Head}, at.Ref)
	}
}

func addTo[K comparable](m map[K]refSet, k K, ref pull.Ref) {
	if m[k] == nil {
		m[k] = refSet{}
	}
	m[k][ref] = struct{}{}
}

func removeFrom[K comparable](m map[K]refSet, k K, ref pull.Ref) {
	delete(m[k], ref)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

// Readers returns the pull requests whose last verdict looked a fact up.
func (x *Index) Readers(k fact.Key) []pull.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sorted(x.byFact[k])
}

// OnBase returns the open pull requests into a branch.
func (x *Index) OnBase(repo int64, name string) []pull.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sorted(x.byBase[branch{repo, name}])
}

// AtHead returns the open pull requests whose head is a commit.
func (x *Index) AtHead(repo int64, sha string) []pull.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sorted(x.byHead[commit{repo, sha}])
}

func sorted(s refSet) []pull.Ref {
	refs := make([]pull.Ref, 0, len(s))
	for r := range s {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, func(a, b pull.Ref) int {
		return cmp.Or(cmp.Compare(a.RepoID, b.RepoID), cmp.Compare(a.Number, b.Number))
	})
	return refs
}
