package giteatest

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// conflict returns the first file that two commits changed in ways that do not
// go together since they parted, or "".
func (m *model) conflict(ours, theirs string) string {
	base := m.treeAt(m.mergeBase(ours, theirs))
	mine := m.treeAt(ours)
	for _, c := range changes(base, m.treeAt(theirs)) {
		for _, path := range []string{c.old, c.path} {
			was, now := base[path], mine[path]
			if was == now || path == c.path && now == c.after {
				continue
			}
			if path == c.path && c.old == c.path {
				if _, ok := mergeText(was.content, now.content, c.after.content); ok && now.mode != "" && c.after.mode != "" {
					continue
				}
			}
			return path
		}
	}
	return ""
}

// mergeText merges two changes of a text, unless they touch.
func mergeText(base, ours, theirs string) (string, bool) {
	was := lines(base)
	mine, other := edits(was, lines(ours)), edits(was, lines(theirs))
	var out strings.Builder
	at := 0
	for len(mine)+len(other) > 0 {
		var e edit
		switch {
		case len(mine) == 0:
			e, other = other[0], other[1:]
		case len(other) == 0:
			e, mine = mine[0], mine[1:]
		case mine[0] == other[0]:
			e, mine, other = mine[0], mine[1:], other[1:]
		case mine[0].to < other[0].from:
			e, mine = mine[0], mine[1:]
		case other[0].to < mine[0].from:
			e, other = other[0], other[1:]
		default:
			return "", false
		}
		out.WriteString(strings.Join(was[at:e.from], "") + e.text)
		at = e.to
	}
	out.WriteString(strings.Join(was[at:], ""))
	return out.String(), true
}

// edit puts a text in the place of some lines.
type edit struct {
	from, to int
	text     string
}

func edits(before, after []string) []edit {
	var list []edit
	for _, op := range difflib.NewMatcher(before, after).GetOpCodes() {
		if op.Tag != 'e' {
			list = append(list, edit{op.I1, op.I2, strings.Join(after[op.J1:op.J2], "")})
		}
	}
	return list
}
