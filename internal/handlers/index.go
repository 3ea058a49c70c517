package handlers

import (
	"cmp"
	"maps"
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
	byRepo map[int64]refSet
	wishes map[fact.Key]fact.Wish
	// onWish is called, without the lock, after the wishes changed.
	onWish func()
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
	return &Index{
		byFact: map[fact.Key]refSet{}, byBase: map[branch]refSet{}, byHead: map[commit]refSet{},
		byRepo: map[int64]refSet{}, wishes: map[fact.Key]fact.Wish{}, onWish: func() {},
	}
}

// OnWish sets what is called after the wishes of all verdicts changed. It must
// be set before the index is used, and must not block.
func (x *Index) OnWish(f func()) { x.onWish = f }

// Change follows one change of a record; nil means that there was or is none.
func (x *Index) Change(_ string, before, after *Record) {
	if x.change(before, after) {
		x.onWish()
	}
}

// change reports whether the wishes are others now.
func (x *Index) change(before, after *Record) (wishes bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if before != nil {
		at := before.place()
		for _, k := range before.Verdict.Reads {
			removeFrom(x.byFact, k, at.Ref)
		}
		removeFrom(x.byBase, branch{at.Ref.RepoID, at.Base}, at.Ref)
		removeFrom(x.byHead, commit{at.Ref.RepoID, at.Head}, at.Ref)
		removeFrom(x.byRepo, at.Ref.RepoID, at.Ref)
	}
	if after != nil {
		at := after.place()
		for _, k := range after.Verdict.Reads {
			addTo(x.byFact, k, at.Ref)
		}
		addTo(x.byBase, branch{at.Ref.RepoID, at.Base}, at.Ref)
		addTo(x.byHead, commit{at.Ref.RepoID, at.Head}, at.Ref)
		addTo(x.byRepo, at.Ref.RepoID, at.Ref)
		for _, w := range after.Verdict.Wishes {
			if _, known := x.wishes[w.Key]; !known {
				x.wishes[w.Key], wishes = w, true
			}
		}
	}
	if before != nil {
		for _, w := range before.Verdict.Wishes {
			// Whoever wishes for a fact reads it.
			if _, known := x.wishes[w.Key]; known && len(x.byFact[w.Key]) == 0 {
				delete(x.wishes, w.Key)
				wishes = true
			}
		}
	}
	return wishes
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

// Readers returns the pull requests whose last verdict looked a fact up, alone
// or with all of its kind.
func (x *Index) Readers(k fact.Key) []pull.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	refs := maps.Clone(x.byFact[k])
	if all := x.byFact[fact.Key{Source: k.Source, Scope: k.Scope, Kind: k.Kind}]; len(all) > 0 {
		if refs == nil {
			refs = refSet{}
		}
		maps.Copy(refs, all)
	}
	return sorted(refs)
}

// Wishes returns the wishes of all verdicts.
func (x *Index) Wishes() []fact.Wish {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Values(x.wishes))
}

// Wished reports whether a verdict wishes for a fact.
func (x *Index) Wished(k fact.Key) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.wishes[k]
	return ok
}

// OfRepo returns the open pull requests of a repository.
func (x *Index) OfRepo(repo int64) []pull.Ref {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sorted(x.byRepo[repo])
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
