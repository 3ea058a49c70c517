package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"signalbox/internal/pull"
)

// match returns the changed files that a rule is about, and whether the rule is
// for the pull request at all. A rule without paths is about every file, and
// for a pull request without files too.
func match(s Scope, unless *Scope, snap *pull.Snapshot) ([]pull.File, bool) {
	p := &snap.Pull
	if !s.matchesPull(p) {
		return nil, false
	}
	exempt := unless != nil && unless.matchesPull(p)
	if exempt && len(unless.Paths) == 0 {
		return nil, false
	}
	if len(s.Paths) == 0 && !exempt {
		return snap.Files, true
	}
	var files []pull.File
	for _, f := range snap.Files {
		if touches(s.Paths, f) && (!exempt || !within(unless.Paths, f)) {
			files = append(files, f)
		}
	}
	return files, len(files) > 0
}

// matchesPull reports whether every given field other than paths matches.
func (s Scope) matchesPull(p *pull.Pull) bool {
	if len(s.Base) > 0 && !matchAny(s.Base, p.Base.Name) {
		return false
	}
	if len(s.Labels) > 0 && !slices.ContainsFunc(p.Labels, func(l string) bool { return matchAny(s.Labels, l) }) {
		return false
	}
	sameLogin := func(a string) bool { return strings.EqualFold(a, p.Author.Login) }
	return len(s.Author) == 0 || slices.ContainsFunc(s.Author, sameLogin)
}

// touches reports whether one of the file's names matches; no globs match all.
func touches(globs []string, f pull.File) bool {
	return len(globs) == 0 || slices.ContainsFunc(f.Paths(), func(p string) bool { return matchAny(globs, p) })
}

// within reports whether all of the file's names match: a file that is moved
// out of an exempted folder is not exempt.
func within(globs []string, f pull.File) bool {
	return !slices.ContainsFunc(f.Paths(), func(p string) bool { return !matchAny(globs, p) })
}

func matchAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return matchGlob(g, name) })
}

// matchGlob is [doublestar.Match] of a valid glob. Most globs of a policy begin
// with the name of a folder, and most files are not in it: the letters before
// the first special one decide those without a walk through the pattern.
func matchGlob(glob, name string) bool {
	i := strings.IndexAny(glob, "*?[{\\")
	if i < 0 {
		return glob == name
	}
	// "a/**" matches "a" itself too, so its slash proves nothing.
	if !strings.HasPrefix(name, strings.TrimSuffix(glob[:i], "/")) {
		return false
	}
	ok, err := doublestar.Match(glob, name)
	return err == nil && ok
}

// clusters returns the clusters that files reach, sorted. A name that no target
// has reaches all, and so does a change without files.
func (f *File) clusters(files []pull.File, all []string) []string {
	if len(files) == 0 {
		return all
	}
	reached := map[string]bool{}
	for _, file := range files {
		for _, path := range file.Paths() {
			named := false
			for _, t := range f.Targets {
				if matchAny(t.Paths, path) {
					reached[t.Cluster], named = true, true
				}
			}
			if !named {
				return all
			}
		}
	}
	return slices.Sorted(maps.Keys(reached))
}
