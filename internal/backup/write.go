package backup

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"
)

// line is one line: one of its fields is set.
type line struct {
	Head   *Head      `json:"backup,omitempty"`
	Bucket *Bucket    `json:"bucket,omitempty"`
	Entry  *entryLine `json:"entry,omitempty"`
	End    *End       `json:"end,omitempty"`
}

// entryLine is an entry as it is written: its value as the JSON that it is, or
// as Base64 if it is not, or is spaced in another way than signalbox does.
type entryLine struct {
	Seq   uint64          `json:"seq"`
	At    time.Time       `json:"at"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"`
	Raw   []byte          `json:"raw,omitempty"`
}

// Writer writes a backup. After an error nothing more can be written.
type Writer struct {
	zip   *gzip.Writer
	lines *json.Encoder
	out   *measured
	count count
}

// measured counts and sums up what is written.
type measured struct {
	to   io.Writer
	sum  hash.Hash
	size int64
}

func (m *measured) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	if len(p) > MaxLine {
		return 0, fmt.Errorf("a line has %d bytes, a backup takes %d", len(p), MaxLine)
	}
	if m.size > MaxSize {
		return 0, fmt.Errorf("it has more than %d bytes, which is the most that a backup takes", int64(MaxSize))
	}
	_, _ = m.sum.Write(p)
	return m.to.Write(p)
}

// NewWriter begins a backup. The form is that of this package, whatever the head
// says.
func NewWriter(to io.Writer, head Head) (*Writer, error) {
	zip := gzip.NewWriter(to)
	out := &measured{to: zip, sum: sha256.New()}
	w := &Writer{zip: zip, lines: json.NewEncoder(out), out: out}
	w.lines.SetEscapeHTML(false) // A value stays as it is.
	head.Form, head.At = Form, head.At.UTC()
	return w, w.put(line{Head: &head})
}

func (w *Writer) put(l line) error {
	if err := w.lines.Encode(l); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// Bucket begins a bucket. Each is begun once.
func (w *Writer) Bucket(b Bucket) error {
	if err := w.count.bucket(b); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	b.Begun = b.Begun.UTC()
	return w.put(line{Bucket: &b})
}

// Entry adds an entry to the bucket that was begun last.
func (w *Writer) Entry(e Entry) error {
	if err := w.count.entry(e.Seq, e.Key); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	out := entryLine{Seq: e.Seq, At: e.At.UTC(), Key: e.Key}
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Value); err == nil && bytes.Equal(compact.Bytes(), e.Value) {
		out.Value = e.Value
	} else {
		out.Raw = e.Value
	}
	return w.put(line{Entry: &out})
}

// Close writes the last line. Without it the backup is none.
func (w *Writer) Close() (End, error) {
	end := End{Buckets: w.count.totals, SHA256: hex.EncodeToString(w.out.sum.Sum(nil))}
	if err := w.put(line{End: &end}); err != nil {
		return End{}, err
	}
	if err := w.zip.Close(); err != nil {
		return End{}, fmt.Errorf("write the backup: %w", err)
	}
	return end, nil
}
