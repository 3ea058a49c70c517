package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxLine bounds a line that is read, in bytes: more than the largest message of the
// bus, whose value it has.
const MaxLine = 16 << 20

// Writer writes a recording.
type Writer struct {
	lines *json.Encoder
}

// NewWriter begins a recording. It sets the version of the header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Version = Version
	out := &Writer{lines: json.NewEncoder(w)}
	out.lines.SetEscapeHTML(false)
	if err := out.lines.Encode(h); err != nil {
		return nil, fmt.Errorf("write the header of the recording: %w", err)
	}
	return out, nil
}

// Write adds a line.
func (w *Writer) Write(l Line) error {
	if err := w.lines.Encode(l); err != nil {
		return fmt.Errorf("write a line of the recording: %w", err)
	}
	return nil
}

// Reader reads a recording.
type Reader struct {
	Header Header

	in     *bufio.Scanner
	number int
}

// NewReader reads the header of a recording.
func NewReader(r io.Reader) (*Reader, error) {
	out := &Reader{in: bufio.NewScanner(r)}
	out.in.Buffer(make([]byte, 0, 64<<10), MaxLine)
	text, err := out.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty; a recording is made with: bot events --export FILE")
	}
	if err != nil {
		return nil, err
	}
	var version struct {
		Version *int `json:"recording"`
	}
	if err := json.Unmarshal(text, &version); err != nil || version.Version == nil {
		return nil, errors.New(`line 1: it is no recording of signalbox, which begins with {"recording":1`)
	}
	if *version.Version != Version {
		return nil, fmt.Errorf("line 1: it has version %d, this signalbox reads version %d; use the one that wrote it", *version.Version, Version)
	}
	if err := out.decode(text, &out.Header); err != nil {
		return nil, err
	}
	return out, nil
}

// Next returns the next line and its number in the file, or [io.EOF] at the end.
func (r *Reader) Next() (l Line, number int, err error) {
	text, err := r.next()
	if err != nil {
		return Line{}, r.number, err
	}
	if err := r.decode(text, &l); err != nil {
		return Line{}, r.number, err
	}
	switch {
	case l.Kind != Now && !slices.Contains(Kinds(), l.Kind):
		err = r.wrong("the kind %q is not known", l.Kind)
	case l.At.IsZero():
		err = r.wrong("it has no time")
	case l.Kind == Now && (l.Value != nil || l.Deleted):
		err = r.wrong("a line of kind now has no value")
	case l.Kind != Now && !l.Deleted && len(l.Value) == 0:
		err = r.wrong("it has no value")
	case l.Kind != Now && l.Key == "":
		err = r.wrong("it has no key")
	}
	return l, r.number, err
}

// next returns the next line that is not blank.
func (r *Reader) next() ([]byte, error) {
	for r.in.Scan() {
		r.number++
		if text := bytes.TrimSpace(r.in.Bytes()); len(text) > 0 {
			return text, nil
		}
	}
	err := r.in.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: it is longer than %d bytes", r.number+1, MaxLine)
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", r.number+1, err)
	}
	return nil, io.EOF
}

// decode reads one line strictly: a field that is not known may mean something.
func (r *Reader) decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return r.wrong("it breaks off; take it out if the recording was cut short")
		}
		return r.wrong("%w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r.wrong("something follows the object")
	}
	return nil
}

func (r *Reader) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %w", r.number, fmt.Errorf(format, args...))
}
