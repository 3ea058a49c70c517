package digest

import (
	"slices"
	"strings"
)

// Asked is what was asked when a [Result] was made: what was found before, and is asked
// about no more because the configuration is another one or nobody needs the fact, did
// not recover. Nil stands for everything.
type Asked struct {
	Clusters []string
	// Repos are ids; nil stands for all of them.
	Repos []int64
	// Prefixes begin the IDs of what can be found in the sections Nodes, Storage and
	// Pipelines.
	Prefixes []string
}

// About reports whether it was asked about a finding.
func (a *Asked) About(f *Finding) bool {
	switch {
	case a == nil:
		return true
	case f.Cluster != "" && !slices.Contains(a.Clusters, f.Cluster),
		f.Repo != 0 && a.Repos != nil && !slices.Contains(a.Repos, f.Repo):
		return false
	}
	switch f.Section {
	case Nodes, Storage, Pipelines:
		return slices.ContainsFunc(a.Prefixes, func(p string) bool { return strings.HasPrefix(f.ID, p) })
	default:
		return true
	}
}

// asked notes what is asked of the clusters; what is asked of pipelines is noted where
// their facts are read.
func (f *finder) asked() *Asked {
	a := &Asked{Clusters: f.in.Clusters}
	if f.in.Unread == 0 {
		a.Repos = make([]int64, 0, len(f.in.Repositories))
		for _, r := range f.in.Repositories {
			a.Repos = append(a.Repos, r.ID)
		}
	}
	for _, cluster := range f.in.Clusters {
		for _, c := range f.in.Checks {
			a.Prefixes = append(a.Prefixes, prefix(c.Section, cluster, c.Name))
		}
		for _, k := range f.in.Kured {
			a.Prefixes = append(a.Prefixes, kuredPrefix(cluster, k))
		}
	}
	return a
}

// ask notes that it is asked about what begins so.
func (f *finder) ask(s Section, at ...any) {
	f.res.Asked.Prefixes = append(f.res.Asked.Prefixes, prefix(s, at...))
}
