package backup

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	at      = time.Date(2026, 9, 7, 3, 4, 5, 678, time.UTC)
	sample  = Head{Form: Form, Version: "v1.2.3", Layout: 2, At: at}
	entries = map[string][]Entry{
		"pulls": {
			{Seq: 3, At: at, Key: "1.12", Value: []byte(`{"title":"<b> & \u2028","n":1.50}`)},
			{Seq: 9, At: at, Key: "1.13", Value: []byte(`{"spaced": true}`)},
			{Seq: 10, At: at, Key: "1.14", Value: []byte("\xff not JSON")},
			{Seq: 11, At: at, Key: "1.15", Value: []byte(`"text"`)},
		},
		"empty":     nil,
		"decisions": {{Seq: 1, At: at, Key: "1.12.AB", Value: []byte(`null`)}},
	}
	order = []string{"pulls", "empty", "decisions"}
)

// written writes the sample and returns it with its last line.
func written(t testing.TB) ([]byte, End) {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range order {
		if err := w.Bucket(Bucket{Name: name, Begun: at}); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries[name] {
			if err := w.Entry(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	end, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), end
}

// unpacked are the lines of a backup, and packed makes a file of them.
func unpacked(t testing.TB, file []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func packed(t testing.TB, lines string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := io.WriteString(zip, lines); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReadWhatWasWritten(t *testing.T) {
	file, wrote := written(t)
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample, r.Head()); diff != "" {
		t.Error(diff)
	}
	got, names := map[string][]Entry{}, []string{}
	for {
		b, e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if b != nil {
			names = append(names, b.Name)
			got[b.Name] = nil
			continue
		}
		name := names[len(names)-1]
		got[name] = append(got[name], *e)
	}
	if diff := cmp.Diff(order, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(entries, got); diff != "" {
		t.Errorf("values are to be the same to the byte (-want +got):\n%s", diff)
	}
	_, end, err := Check(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wrote, end); diff != "" {
		t.Error(diff)
	}
	want := []Total{{"pulls", 4, 11}, {"empty", 0, 0}, {"decisions", 1, 1}}
	if diff := cmp.Diff(want, end.Buckets); diff != "" {
		t.Error(diff)
	}
	// People can read it.
	if text := unpacked(t, file); !strings.Contains(text, `"value":{"title":"<b> & \u2028","n":1.50}`) {
		t.Errorf("a value is not shown as it is:\n%s", text)
	}
}

// TestEveryCutIsFound cuts the file, and its lines, at every byte.
func TestEveryCutIsFound(t *testing.T) {
	file, _ := written(t)
	for n := range file {
		if _, _, err := Check(bytes.NewReader(file[:n])); !errors.Is(err, ErrBroken) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(file), err)
		}
	}
	lines := unpacked(t, file)
	for n := range lines {
		r, err := newLineReader(strings.NewReader(lines[:n]))
		for err == nil {
			_, _, err = r.Next()
		}
		if !errors.Is(err, ErrBroken) {
			t.Fatalf("cut after %d of %d characters: %v", n, len(lines), err)
		}
	}
}

// TestEveryFlipIsFound turns every bit of the file. Those that mean nothing, such as
// the time in gzip's header, change nothing that is read.
func TestEveryFlipIsFound(t *testing.T) {
	file, _ := written(t)
	lines, found := unpacked(t, file), 0
	for i := range file {
		for bit := range 8 {
			flipped := bytes.Clone(file)
			flipped[i] ^= 1 << bit
			_, _, err := Check(bytes.NewReader(flipped))
			switch {
			// The form may be a newer one by that.
			case errors.Is(err, ErrBroken), errors.Is(err, ErrNewer):
				found++
			case err != nil || unpacked(t, flipped) != lines:
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
	if all := 8 * len(file); all-found > 100 {
		t.Errorf("of %d bits %d were found", all, found)
	}
}

func TestWhatIsNoBackup(t *testing.T) {
	file, end := written(t)
	lines := unpacked(t, file)
	begin := strings.SplitAfter(lines, "\n")
	changed := func(old, now string) string {
		t.Helper()
		if !strings.Contains(lines, old) {
			t.Fatalf("there is no %q in\n%s", old, lines)
		}
		return strings.Replace(lines, old, now, 1)
	}
	hidden := strings.Replace(lines, begin[len(begin)-2], `{"end":null,"entry":{"seq":2,"at":"2026-09-07T03:04:05Z","key":"x","value":1}}`+"\n"+begin[len(begin)-2], 1)
	for name, tt := range map[string]struct {
		file []byte
		is   error
		want string
	}{
		"nothing":                  {nil, ErrBroken, "too early"},
		"another file":             {[]byte("apiVersion: v1\nkind: List\n"), ErrBroken, "invalid header"},
		"another compressed file":  {packed(t, "apiVersion: v1\n"), ErrBroken, "does not begin like one"},
		"an empty compressed file": {packed(t, ""), ErrBroken, "empty"},
		"something behind it":      {append(bytes.Clone(file), "more"...), ErrBroken, ""},
		"another backup behind it": {append(bytes.Clone(file), file...), ErrBroken, "after its end"},
		"a newer form":             {packed(t, changed(`"form":1`, `"form":2,"shape":"round"`)), ErrNewer, `"v1.2.3" and has form 2`},
		"no form":                  {packed(t, changed(`"form":1`, `"form":0`)), ErrBroken, "begin"},
		"a changed value":          {packed(t, changed(`"n":1.50`, `"n":1.51`)), ErrBroken, "SHA-256"},
		"another layout":           {packed(t, changed(`"layout":2`, `"layout":1`)), ErrBroken, "SHA-256"},
		"a wrong count":            {packed(t, changed(`"entries":4`, `"entries":5`)), ErrBroken, "says"},
		"a missing line":           {packed(t, changed(begin[2], "")), ErrBroken, "SHA-256"},
		"an entry as the end":      {packed(t, hidden), ErrBroken, "SHA-256"},
		"an entry before a bucket": {packed(t, begin[0]+begin[2]), ErrBroken, "no bucket"},
		"an order that is wrong":   {packed(t, begin[0]+begin[1]+begin[3]+begin[2]), ErrBroken, "comes after 9"},
		"a bucket twice":           {packed(t, begin[0]+begin[1]+begin[1]), ErrBroken, "twice"},
		"two heads":                {packed(t, begin[0]+begin[0]), ErrBroken, "line 2 is none"},
		"two objects in a line":    {packed(t, begin[0]+strings.TrimSpace(begin[1])+begin[2]), ErrBroken, "more than one"},
		"an unknown field":         {packed(t, begin[0]+`{"bucket":{"name":"x","begun":"2026-09-07T03:04:05Z","z":1}}`+"\n"), ErrBroken, `unknown field "z"`},
		"an end that is all":       {packed(t, begin[0]+fmt.Sprintf(`{"end":{"buckets":[],"sha256":%q}}`+"\n", end.SHA256)), ErrBroken, "SHA-256"},
	} {
		_, _, err := Check(bytes.NewReader(tt.file))
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tt.want)
		}
	}
}

// TestBombs: a small file does not become large.
func TestBombs(t *testing.T) {
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 2 * MaxLine / len(zeros) {
		if _, err := zip.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Check(&bomb); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "a line has more than") {
		t.Errorf("a line that does not end: %v", err)
	}

	file, _ := written(t)
	r, err := newLineReader(strings.NewReader(unpacked(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	r.size = MaxSize // As after four billion bytes of entries.
	if _, _, err := r.Next(); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("lines that do not end: %v", err)
	}
}

// TestWriterRefuses what no reader would take.
func TestWriterRefuses(t *testing.T) {
	fresh := func() *Writer {
		w, err := NewWriter(io.Discard, sample)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Bucket(Bucket{Name: "pulls"}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	if err := fresh().Bucket(Bucket{Name: "pulls"}); err == nil {
		t.Error("a bucket was begun twice")
	}
	if err := fresh().Entry(Entry{Seq: 0, Key: "a"}); err == nil {
		t.Error("an entry came at no place")
	}
	if err := fresh().Entry(Entry{Seq: 1, Key: "a", Value: make([]byte, MaxLine)}); err == nil || !strings.Contains(err.Error(), "a line has") {
		t.Errorf("a line of any length: %v", err)
	}
	w := fresh()
	w.out.size = MaxSize
	if err := w.Entry(Entry{Seq: 1, Key: "a", Value: []byte("1")}); err == nil || !strings.Contains(err.Error(), "the most that a backup takes") {
		t.Errorf("a backup of any size: %v", err)
	}
}

// readAll reads to the end and writes what was read again.
func readAll(r *Reader) (again []byte, err error) {
	var out bytes.Buffer
	w, err := NewWriter(&out, r.Head())
	if err != nil {
		return nil, err
	}
	for {
		b, e, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			_, err := w.Close()
			return out.Bytes(), err
		case err != nil:
			return nil, err
		case b != nil:
			err = w.Bucket(*b)
		default:
			err = w.Entry(*e)
		}
		if err != nil {
			return nil, fmt.Errorf("what was read cannot be written: %w", err)
		}
	}
}

// FuzzRead reads anything as a file, and as the lines of one whose last line is
// right.
func FuzzRead(f *testing.F) {
	file, _ := written(f)
	f.Add(file)
	f.Add([]byte(unpacked(f, file)))
	f.Add([]byte(`{"backup":{"form":1}}` + "\n" + `{"bucket":{"name":"a"}}` + "\n" + `{"entry":{"seq":1,"key":"k","raw":"AA=="}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := NewReader(bytes.NewReader(data)); err == nil {
			_, _ = readAll(r)
		} else if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrNewer) {
			t.Errorf("from memory, an error of the reader: %v", err)
		}
		r, err := newLineReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := readAll(r)
		if err != nil {
			if !errors.Is(err, ErrBroken) && strings.Contains(err.Error(), "cannot be written") {
				t.Error(err)
			}
			return
		}
		if _, _, err := Check(bytes.NewReader(again)); err != nil {
			t.Errorf("what was read and written is broken: %v", err)
		}
	})
}
