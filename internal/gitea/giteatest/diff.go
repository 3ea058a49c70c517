package giteatest

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// change is what happened to one file between two trees. Before and after are
// zero where the file is not there.
type change struct {
	path, old     string // Old differs from path for a rename.
	before, after blob
	likeness      int // Percent, of a rename.
}

// changes compares two trees as "git diff" does: in the order of the new
// paths, with renames found where half of the content stayed.
func changes(before, after map[string]blob) []change {
	var list []change
	var gone []string
	for _, path := range slices.Sorted(maps.Keys(before)) {
		old, now := before[path], after[path]
		switch {
		case now.mode == "":
			gone = append(gone, path)
		case old != now:
			list = append(list, change{path: path, old: path, before: old, after: now})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if before[path].mode != "" {
			continue
		}
		c := change{path: path, old: path, after: after[path]}
		best := -1
		for i, old := range gone {
			if l := likeness(before[old].content, c.after.content); l >= 50 && l > c.likeness {
				best, c.likeness = i, l
			}
		}
		if best >= 0 {
			c.old, c.before = gone[best], before[gone[best]]
			gone = slices.Delete(gone, best, best+1)
		}
		list = append(list, c)
	}
	for _, path := range gone {
		list = append(list, change{path: path, old: path, before: before[path]})
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.path, b.path) })
	return list
}

// likeness is the share of lines that two contents have in common, in percent
// of the longer one.
func likeness(a, b string) int {
	if a == b {
		return 100
	}
	counts := map[string]int{}
	for line := range strings.Lines(a) {
		counts[line]++
	}
	same := 0
	for line := range strings.Lines(b) {
		if counts[line] > 0 {
			counts[line]--
			same += len(line)
		}
	}
	return 100 * same / max(len(a), len(b), 1)
}

// status is the word of the API.
func (c change) status() string {
	added, removed := c.lines()
	switch {
	case c.after.mode == "":
		return "deleted"
	case c.before.mode == "":
		return "added"
	case c.old != c.path:
		return "renamed"
	case added+removed == 0:
		return "unchanged"
	}
	return "changed"
}

func (c change) binary() bool {
	return strings.Contains(c.before.content, "\x00") || strings.Contains(c.after.content, "\x00")
}

// lines counts the added and removed lines; a binary file has none.
func (c change) lines() (added, removed int) {
	for _, group := range c.hunks() {
		for _, op := range group {
			if op.Tag != 'e' {
				removed += op.I2 - op.I1
				added += op.J2 - op.J1
			}
		}
	}
	return added, removed
}

func (c change) hunks() [][]difflib.OpCode {
	if c.binary() || c.before.content == c.after.content {
		return nil
	}
	const contextLines = 3
	return difflib.NewMatcher(lines(c.before.content), lines(c.after.content)).GetGroupedOpCodes(contextLines)
}

func lines(s string) []string { return slices.Collect(strings.Lines(s)) }

// patch writes a change as "git diff --binary" does.
func (c change) patch(b *strings.Builder) {
	fmt.Fprintf(b, "diff --git %s %s\n", quote("a/"+c.old), quote("b/"+c.path))
	switch {
	case c.before.mode == "":
		fmt.Fprintf(b, "new file mode %s\n", c.after.mode)
	case c.after.mode == "":
		fmt.Fprintf(b, "deleted file mode %s\n", c.before.mode)
	case c.before.mode != c.after.mode:
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", c.before.mode, c.after.mode)
	}
	if c.old != c.path {
		fmt.Fprintf(b, "similarity index %d%%\nrename from %s\nrename to %s\n", c.likeness, quote(c.old), quote(c.path))
	}
	if c.before.content == c.after.content && c.before.mode != "" && c.after.mode != "" {
		return
	}
	c.writeIndex(b)
	if c.binary() {
		b.WriteString("GIT binary patch\n")
		writeLiteral(b, c.after.content)
		writeLiteral(b, c.before.content)
		return
	}
	if len(c.hunks()) == 0 {
		return
	}
	from, to := quote("a/"+c.old), quote("b/"+c.path)
	if c.before.mode == "" {
		from = "/dev/null"
	}
	if c.after.mode == "" {
		to = "/dev/null"
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", tabbed(from), tabbed(to))
	old, now := lines(c.before.content), lines(c.after.content)
	for _, group := range c.hunks() {
		writeHunk(b, group, old, now)
	}
}

// tabbed ends a name with spaces by a tab, as git does.
func tabbed(name string) string {
	if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
		return name + "\t"
	}
	return name
}

// writeIndex names the two contents, in full for a binary file.
func (c change) writeIndex(b *strings.Builder) {
	id := func(f blob) string {
		text := strings.Repeat("0", 40)
		if f.mode != "" {
			text = blobID(f.content)
		}
		if c.binary() {
			return text
		}
		return text[:7]
	}
	fmt.Fprintf(b, "index %s..%s", id(c.before), id(c.after))
	if c.before.mode == c.after.mode {
		b.WriteString(" " + c.after.mode)
	}
	b.WriteString("\n")
}

func writeHunk(b *strings.Builder, group []difflib.OpCode, old, now []string) {
	first, last := group[0], group[len(group)-1]
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(first.I1, last.I2), span(first.J1, last.J2))
	write := func(sign string, list []string) {
		for _, line := range list {
			b.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\\ No newline at end of file\n")
			}
		}
	}
	for _, op := range group {
		if op.Tag == 'e' {
			write(" ", old[op.I1:op.I2])
			continue
		}
		write("-", old[op.I1:op.I2])
		write("+", now[op.J1:op.J2])
	}
}

func span(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

// quote writes a path as git does with Gitea's settings: in C's way where it
// has special bytes, and letters of all languages as they are.
func quote(path string) string {
	plain := true
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
			continue
		}
		plain = false
	}
	if plain {
		return path
	}
	return `"` + b.String() + `"`
}

// writeLiteral writes a content as a binary patch holds it: compressed, in
// git's base 85, 52 bytes a line.
func writeLiteral(b *strings.Builder, content string) {
	fmt.Fprintf(b, "literal %d\n", len(content))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	// A buffer never fails to write.
	_, _ = z.Write([]byte(content))
	_ = z.Close()
	for chunk := range slices.Chunk(packed.Bytes(), 52) {
		size := byte('A' + len(chunk) - 1)
		if len(chunk) > 26 {
			size = byte('a' + len(chunk) - 27)
		}
		b.WriteByte(size)
		for word := range slices.Chunk(chunk, 4) {
			b.WriteString(base85(word))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

const digits85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

func base85(word []byte) string {
	var value uint32
	for i := range 4 {
		value <<= 8
		if i < len(word) {
			value |= uint32(word[i])
		}
	}
	digits := make([]byte, 5)
	for i := range digits {
		digits[len(digits)-1-i] = digits85[value%85]
		value /= 85
	}
	return string(digits)
}
