package giteatest

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// blob is a file in a commit.
type blob struct {
	content string
	mode    string // "100644", "100755" or "120000".
}

// commit holds its whole tree, by path.
type commit struct {
	sha     string
	parents []string
	tree    map[string]blob
	message string
	author  *account
	when    time.Time
	order   int64 // Of being made.
}

// commit stores a commit. Its id is made of what it holds and of a counter, so
// that no two are one.
func (m *model) commit(c commit) *commit {
	m.last.commit++
	h := sha1.New()
	fmt.Fprintf(h, "%d %q %q %s\n", m.last.commit, c.parents, c.message, c.when)
	for _, path := range slices.Sorted(maps.Keys(c.tree)) {
		fmt.Fprintf(h, "%q %q\n", path, c.tree[path])
	}
	c.sha, c.order = hex.EncodeToString(h.Sum(nil)), m.last.commit
	m.commits[c.sha] = &c
	return &c
}

// blobID is the id that git gives to a content.
func blobID(content string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	return hex.EncodeToString(sum[:])
}

// history returns a commit and all its ancestors.
func (m *model) history(sha string) map[string]bool {
	seen := map[string]bool{}
	queue := []string{sha}
	for len(queue) > 0 {
		sha, queue = queue[0], queue[1:]
		if c, ok := m.commits[sha]; ok && !seen[sha] {
			seen[sha] = true
			queue = append(queue, c.parents...)
		}
	}
	return seen
}

// between returns the commits of a history that are in none of the others,
// oldest first.
func (m *model) between(sha string, others ...string) []string {
	left := m.history(sha)
	for _, other := range others {
		for old := range m.history(other) {
			delete(left, old)
		}
	}
	return slices.SortedFunc(maps.Keys(left), func(a, b string) int {
		return cmp.Compare(m.commits[a].order, m.commits[b].order)
	})
}

// mergeBase returns the common ancestor that no other common one contains.
func (m *model) mergeBase(a, b string) string {
	common := m.history(a)
	other := m.history(b)
	maps.DeleteFunc(common, func(sha string, _ bool) bool { return !other[sha] })
	best, size := "", -1
	for _, sha := range slices.Sorted(maps.Keys(common)) {
		if n := len(m.history(sha)); n > size {
			best, size = sha, n
		}
	}
	return best
}

// merged returns the files of a commit with what another one changed since they
// parted; where both changed the same lines, the other one's side.
func (m *model) merged(ours, theirs string) map[string]blob {
	files := maps.Clone(m.treeAt(ours))
	for _, c := range changes(m.treeAt(m.mergeBase(ours, theirs)), m.treeAt(theirs)) {
		mine := files[c.path]
		delete(files, c.old)
		if c.after.mode == "" {
			continue
		}
		if both, ok := mergeText(c.before.content, mine.content, c.after.content); ok && c.old == c.path && mine.mode != "" {
			c.after.content = both
		}
		files[c.path] = c.after
	}
	return files
}

// treeAt returns the files of a commit; an unknown one has none.
func (m *model) treeAt(sha string) map[string]blob {
	if c, ok := m.commits[sha]; ok {
		return c.tree
	}
	return nil
}

// treeEntry is a direct child of a folder.
type treeEntry struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Type string `json:"type"`
	Size int64  `json:"size,omitempty"`
	SHA  string `json:"sha"`
}

// folder lists a folder of a tree; ok is false where there is none.
func folder(tree map[string]blob, dir string) (entries []treeEntry, ok bool) {
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
	}
	folders := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		rest, inside := strings.CutPrefix(path, prefix)
		if !inside {
			continue
		}
		ok = true
		name, below, deep := strings.Cut(rest, "/")
		switch {
		case !deep:
			f := tree[path]
			entries = append(entries, treeEntry{Path: name, Mode: f.mode, Type: "blob", Size: int64(len(f.content)), SHA: blobID(f.content)})
		case !folders[name]:
			folders[name] = true
			entries = append(entries, treeEntry{Path: name, Mode: "040000", Type: "tree", SHA: blobID(prefix + name + below)})
		}
	}
	return entries, ok || dir == ""
}
