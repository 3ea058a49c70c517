package recording

import (
	"slices"
	"strings"
	"time"

	"signalbox/internal/pull"
)

// Filter says which lines are wanted; what is zero does not limit.
type Filter struct {
	// Repo is "owner/name" in any letter case, and Number that of a pull request.
	Repo   string
	Number int64
	// Cluster is a name of a cluster: of facts, those of that cluster.
	Cluster string
	Kinds   []Kind
	// Since is the first moment that is wanted.
	Since time.Time
}

// Wanted reports whether a line is wanted by somebody who looks. What is about no
// repository, as a fact of a cluster, is not wanted where one is asked for.
func (f Filter) Wanted(l Line, a About) bool {
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, l.Kind)) &&
		!l.At.Before(f.Since) &&
		(f.Cluster == "" || a.Cluster == f.Cluster) &&
		f.ofRepo(a.Repo) && (f.Number == 0 || a.Number == f.Number)
}

// Needed reports whether a line is needed to evaluate again what is asked for: beside
// what is about it, all facts count, and the decisions of the whole repository, where a
// freeze may be.
func (f Filter) Needed(l Line, a About) bool {
	switch l.Kind {
	case Now:
		return true
	case Fact:
		return f.Cluster == "" || a.Cluster == "" || a.Cluster == f.Cluster
	case Decision:
		return f.ofRepo(a.Repo)
	case Event:
		return !l.At.Before(f.Since) && f.ofRepo(a.Repo) && (f.Number == 0 || a.Number == 0 || a.Number == f.Number)
	}
	return f.ofRepo(a.Repo) && (f.Number == 0 || a.Number == f.Number)
}

func (f Filter) ofRepo(r pull.Repo) bool {
	return f.Repo == "" || strings.EqualFold(r.String(), f.Repo)
}
