package backup

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// ErrBroken is that a file is no backup, or not all of one, or not as it was
// written.
var ErrBroken = errors.New("this is not a whole backup")

// ErrNewer is that a backup has a form that only a newer signalbox knows.
var ErrNewer = errors.New("a newer signalbox made this backup")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrBroken, fmt.Errorf(format, args...))
}

// Reader reads a backup.
type Reader struct {
	lines *bufio.Scanner
	// sum is that of all lines but the last, size is of all in bytes, and n counts them.
	sum   hash.Hash
	size  int64
	n     int
	head  Head
	count count
	end   *End
}

// NewReader reads the first line. The error is [ErrBroken], [ErrNewer], or that
// of the reader.
func NewReader(from io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(from)
	if err != nil {
		return nil, readError(err)
	}
	return newLineReader(zip)
}

// newLineReader reads what is not compressed.
func newLineReader(from io.Reader) (*Reader, error) {
	r := &Reader{lines: bufio.NewScanner(from), sum: sha256.New()}
	r.lines.Buffer(nil, MaxLine)
	r.lines.Split(wholeLines)
	text, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, broken("it is empty")
	}
	if err != nil {
		return nil, err
	}
	// What a newer form has beside these is not known here.
	var first line
	if err := json.Unmarshal(text, &first); err != nil || first.Head == nil || first.Head.Form < 1 {
		return nil, broken("it does not begin like one")
	}
	_, _ = r.sum.Write(text)
	r.head = *first.Head
	if r.head.Form > Form {
		return nil, fmt.Errorf("%w: it is of signalbox %.50q and has form %d, and this one knows up to %d; use that version or a newer one",
			ErrNewer, r.head.Version, r.head.Form, Form)
	}
	return r, nil
}

// readError tells a file that is broken from one that cannot be read.
func readError(err error) error {
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return broken("%w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return broken("it ends too early")
	case errors.Is(err, bufio.ErrTooLong):
		return broken("a line has more than %d bytes", MaxLine)
	}
	if _, ok := errors.AsType[flate.CorruptInputError](err); ok {
		return broken("%w", err)
	}
	return fmt.Errorf("read the backup: %w", err)
}

// wholeLines splits at the end of lines. What comes after the last one is a line
// too, which is no JSON then.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

// next returns the next line; [io.EOF] is the end of the file.
func (r *Reader) next() ([]byte, error) {
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return nil, readError(err)
		}
		return nil, io.EOF
	}
	text := r.lines.Bytes()
	r.n++
	if r.size += int64(len(text)); r.size > MaxSize {
		return nil, broken("it has more than %d bytes", int64(MaxSize))
	}
	return text, nil
}

// Head returns the first line.
func (r *Reader) Head() Head { return r.head }

// Next returns the next bucket or entry; the other one is nil. The error is
// [io.EOF] after the last, once all that was read is known to be what was
// written; else [ErrBroken] or that of the reader.
func (r *Reader) Next() (*Bucket, *Entry, error) {
	if r.end != nil {
		return nil, nil, io.EOF
	}
	text, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, nil, broken("it ends after line %d, which is too early", r.n)
	}
	if err != nil {
		return nil, nil, err
	}
	var l line
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&l); err != nil {
		return nil, nil, broken("line %d: %w", r.n, err)
	}
	if strict.InputOffset() != int64(len(text)-1) {
		return nil, nil, broken("line %d has more than one object", r.n)
	}
	if l.End == nil {
		_, _ = r.sum.Write(text)
	}
	switch {
	case l.Bucket != nil && l.Entry == nil && l.Head == nil && l.End == nil:
		if err := r.count.bucket(*l.Bucket); err != nil {
			return nil, nil, broken("line %d: %w", r.n, err)
		}
		return l.Bucket, nil, nil
	case l.Entry != nil && l.Bucket == nil && l.Head == nil && l.End == nil:
		e := Entry{Seq: l.Entry.Seq, At: l.Entry.At, Key: l.Entry.Key, Value: l.Entry.Value}
		if e.Value == nil {
			e.Value = l.Entry.Raw
		}
		if err := r.count.entry(e.Seq, e.Key); err != nil {
			return nil, nil, broken("line %d: %w", r.n, err)
		}
		return nil, &e, nil
	case l.End != nil && l.Bucket == nil && l.Entry == nil && l.Head == nil:
		return nil, nil, r.finish(*l.End)
	}
	return nil, nil, broken("line %d is none of a backup", r.n)
}

// finish compares the last line with what was read. It returns io.EOF.
func (r *Reader) finish(end End) error {
	if sum := hex.EncodeToString(r.sum.Sum(nil)); end.SHA256 != sum {
		return broken("its content is not what was written: the SHA-256 is %s, and it says %.70q", sum, end.SHA256)
	}
	if !slices.Equal(end.Buckets, r.count.totals) {
		return broken("it holds %v, and says %v", r.count.totals, end.Buckets)
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = broken("something comes after its end")
		}
		return err
	}
	r.end = &end
	return io.EOF
}

// Check reads a backup to its end, and returns its first and last line.
func Check(from io.Reader) (Head, End, error) {
	r, err := NewReader(from)
	if err != nil {
		return Head{}, End{}, err
	}
	for {
		if _, _, err := r.Next(); errors.Is(err, io.EOF) {
			return r.head, *r.end, nil
		} else if err != nil {
			return Head{}, End{}, err
		}
	}
}
