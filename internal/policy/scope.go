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
	var exempted globs
	if exempt {
		exempted = compileGlobs(unless.Paths)
	}
	paths := compileGlobs(s.Paths)
	var files []pull.File
	for i := range snap.Files {
		if f := &snap.Files[i]; paths.touches(f) && (!exempt || !exempted.covers(f)) {
			files = append(files, *f)
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

// globs are compiled patterns of paths.
type globs []glob

// glob is a valid doublestar pattern. Most patterns of a policy begin with the
// name of a folder, and most files are not in it: the letters before the first
// special one decide those without a walk through the pattern.
type glob struct {
	pattern string
	// prefix starts every name that matches. It lacks a final slash, because
	// "a/**" matches "a" itself too.
	prefix string
	// literal says that the pattern is a name.
	literal bool
}

func compileGlobs(patterns []string) globs {
	gs := make(globs, len(patterns))
	for i, p := range patterns {
		gs[i] = compileGlob(p)
	}
	return gs
}

func compileGlob(pattern string) glob {
	i := strings.IndexAny(pattern, "*?[{\\")
	if i < 0 {
		return glob{pattern: pattern, prefix: pattern, literal: true}
	}
	return glob{pattern: pattern, prefix: strings.TrimSuffix(pattern[:i], "/")}
}

func (g glob) match(name string) bool {
	if g.literal {
		return g.pattern == name
	}
	if !strings.HasPrefix(name, g.prefix) {
		return false
	}
	ok, err := doublestar.Match(g.pattern, name)
	return err == nil && ok
}

func (gs globs) match(name string) bool {
	for i := range gs {
		if gs[i].match(name) {
			return true
		}
	}
	return false
}

// touches reports whether one of the file's names matches; no globs match all.
func (gs globs) touches(f *pull.File) bool {
	return len(gs) == 0 || gs.match(f.Path) || (f.Previous != "" && gs.match(f.Previous))
}

// covers reports whether all of the file's names match: a file that is moved
// out of an exempted folder is not exempt.
func (gs globs) covers(f *pull.File) bool {
	return gs.match(f.Path) && (f.Previous == "" || gs.match(f.Previous))
}

func matchAny(patterns []string, name string) bool { return compileGlobs(patterns).match(name) }

// clusters returns the clusters that files reach, sorted. A name that no target
// has reaches all, and so does a change without files.
func (f *File) clusters(files []pull.File, all []string) []string {
	if len(files) == 0 {
		return all
	}
	targets := make([]globs, len(f.Targets))
	for i, t := range f.Targets {
		targets[i] = compileGlobs(t.Paths)
	}
	reached := map[string]bool{}
	for _, file := range files {
		for _, path := range file.Paths() {
			named := false
			for i, t := range targets {
				if t.match(path) {
					reached[f.Targets[i].Cluster], named = true, true
				}
			}
			if !named {
				return all
			}
		}
	}
	return slices.Sorted(maps.Keys(reached))
}
