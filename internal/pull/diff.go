package pull

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
)

// Diff is the identity of the change that a pull request makes: one entry for
// each file, in the order of the patch.
type Diff struct {
	Files []FileDiff `json:"files"`
}

// FileDiff is the identity of the change of one file.
type FileDiff struct {
	// Header is the hash of the lines that name the file and its mode.
	Header string `json:"header"`
	// Old and New are the blobs as the patch abbreviates them; empty for a pure
	// rename or change of mode.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Hunks is the hash of the hunks without their positions. It is empty for a
	// binary file, whose content only the blobs identify.
	Hunks string `json:"hunks,omitempty"`
}

// Same reports whether two diffs make the same change. A file whose old
// content is the same must have the same new content. A file whose old content
// differs (the base moved on) must have the same hunks, wherever they stand
// now: so a rebase keeps the identity, while a hunk that was moved to a
// look-alike place in an unchanged file does not. A binary file must be the
// same on both sides. The diff without files is the same as nothing, not even
// itself, for it identifies nothing.
func (d Diff) Same(o Diff) bool {
	return len(d.Files) > 0 && slices.EqualFunc(d.Files, o.Files, FileDiff.same)
}

func (f FileDiff) same(o FileDiff) bool {
	if f.Header != o.Header || f.Hunks != o.Hunks {
		return false
	}
	if f.Hunks == "" || sameBlob(f.Old, o.Old) {
		return sameBlob(f.Old, o.Old) && sameBlob(f.New, o.New)
	}
	return true
}

// sameBlob compares two abbreviations of blob names: git lengthens them as the
// repository grows.
func sameBlob(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// maxPatchLine bounds a line of a patch that is read, in bytes.
const maxPatchLine = 16 << 20

// ReadDiff reads a patch in git's format and returns its identity. White space
// counts, because it means something in YAML. A patch that does not look like
// git's is an error.
func ReadDiff(r io.Reader) (Diff, error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), maxPatchLine)
	scanner.Split(scanRawLines)
	p := patchReader{}
	for scanner.Scan() {
		if err := p.line(scanner.Text()); err != nil {
			return Diff{}, err
		}
	}
	if err := scanner.Err(); err != nil {
		return Diff{}, fmt.Errorf("read patch: %w", err)
	}
	if p.old > 0 || p.new > 0 {
		return Diff{}, errors.New("patch: ends within a hunk")
	}
	p.finish()
	return p.diff, nil
}

// scanRawLines splits at "\n" and keeps a "\r", which is content.
func scanRawLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := slices.Index(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// patchReader reads a patch line by line.
type patchReader struct {
	diff    Diff
	open    bool
	file    FileDiff
	header  hash.Hash
	hunks   hash.Hash
	inHunks bool
	// old and new count the lines of the current hunk that are still to come,
	// so that a content line such as "--- a/x" is never taken for a header.
	old, new int
}

func (p *patchReader) line(l string) error {
	if p.inHunks && (p.old > 0 || p.new > 0) {
		return p.content(l)
	}
	switch {
	case strings.HasPrefix(l, "diff --git "):
		p.finish()
		p.open = true
		p.file, p.header, p.hunks, p.inHunks = FileDiff{}, sha256.New(), sha256.New(), false
		hashLine(p.header, l)
	case !p.open && l == "":
	case !p.open:
		return fmt.Errorf("patch: line %q outside a file", clip(l))
	case strings.HasPrefix(l, "@@ "):
		var err error
		if p.old, p.new, err = hunkSize(l); err != nil {
			return err
		}
		p.inHunks = true
		hashLine(p.hunks, "@@")
	case p.inHunks && strings.HasPrefix(l, `\`):
		hashLine(p.hunks, l)
	case strings.HasPrefix(l, "index "):
		p.index(l)
	case strings.HasPrefix(l, "similarity index "), strings.HasPrefix(l, "dissimilarity index "):
		// Changes with the base; the hunks say what changed.
	default:
		hashLine(p.header, l)
	}
	return nil
}

func (p *patchReader) content(l string) error {
	switch {
	case l == "" || l[0] == ' ':
		p.old--
		p.new--
	case l[0] == '-':
		p.old--
	case l[0] == '+':
		p.new--
	case l[0] == '\\':
	default:
		return fmt.Errorf("patch: line %q in a hunk", clip(l))
	}
	hashLine(p.hunks, l)
	return nil
}

// index takes "index <old>..<new>[ <mode>]" apart; the mode is part of the
// header.
func (p *patchReader) index(l string) {
	blobs, mode, _ := strings.Cut(strings.TrimPrefix(l, "index "), " ")
	p.file.Old, p.file.New, _ = strings.Cut(blobs, "..")
	hashLine(p.header, "mode "+mode)
}

func (p *patchReader) finish() {
	if !p.open {
		return
	}
	p.file.Header = sum(p.header)
	if p.inHunks {
		p.file.Hunks = sum(p.hunks)
	}
	p.diff.Files = append(p.diff.Files, p.file)
}

// hunkSize reads the two line counts of "@@ -a[,b] +c[,d] @@".
func hunkSize(l string) (before, after int, err error) {
	fields := strings.Fields(l)
	if len(fields) < 4 || fields[3] != "@@" {
		return 0, 0, fmt.Errorf("patch: bad hunk header %q", clip(l))
	}
	before, errOld := rangeSize(fields[1], "-")
	after, errNew := rangeSize(fields[2], "+")
	if err := errors.Join(errOld, errNew); err != nil {
		return 0, 0, fmt.Errorf("patch: bad hunk header %q: %w", clip(l), err)
	}
	return before, after, nil
}

func rangeSize(s, sign string) (int, error) {
	s, ok := strings.CutPrefix(s, sign)
	if !ok {
		return 0, fmt.Errorf("range does not start with %q", sign)
	}
	start, size, counted := strings.Cut(s, ",")
	if _, err := parseCount(start); err != nil {
		return 0, err
	}
	if !counted {
		return 1, nil
	}
	return parseCount(size)
}

func parseCount(s string) (int, error) {
	n := 0
	if s == "" || len(s) > 9 {
		return 0, fmt.Errorf("bad number %q", s)
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("bad number %q", s)
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

func hashLine(h hash.Hash, l string) {
	// A hash never fails to write.
	_, _ = io.WriteString(h, l)
	_, _ = h.Write([]byte{'\n'})
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:32] }

func clip(l string) string {
	if len(l) > 80 {
		return l[:80] + "…"
	}
	return l
}
