package renovate

import (
	"bufio"
	"errors"
	"io"
)

// Limits bound what is read of a log. A zero field means its default.
type Limits struct {
	// Bytes is how much of a log is read at most; 64 MiB by default.
	Bytes int64
	// Line is the length from which a line is shortened, in bytes; 1 MiB by
	// default, and 4 KiB at least.
	Line int
}

const (
	defaultBytes = 64 << 20
	defaultLine  = 1 << 20
	minLine      = 4 << 10
	// tail is how much is kept of the end of a long line, because the message of
	// a JSON line stands there.
	tail = 1 << 10
)

func (l Limits) orDefault() Limits {
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	if l.Line <= 0 {
		l.Line = defaultLine
	}
	l.Line = max(l.Line, minLine)
	return l
}

// lines reads a log line by line in bounded memory.
type lines struct {
	in     *bufio.Reader
	source *counted
	limit  int
	buffer []byte
}

// counted hands out at most so many bytes.
type counted struct {
	r    io.Reader
	read int64
	left int64
}

func (c *counted) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.read += int64(n)
	c.left -= int64(n)
	return n, err
}

func newLines(r io.Reader, limits Limits) *lines {
	source := &counted{r: r, left: limits.Bytes}
	return &lines{in: bufio.NewReaderSize(source, 64<<10), source: source, limit: limits.Line}
}

// line is one line without its end.
type line struct {
	text []byte
	// end is the end of a line that was shortened, else nil.
	end []byte
}

// next returns the next line, which is valid until the call after it, or
// io.EOF. With another error it returns what it has of the line.
func (l *lines) next() (line, error) {
	l.buffer = l.buffer[:0]
	var end []byte
	some := false
	for {
		part, err := l.in.ReadSlice('\n')
		some = some || len(part) > 0
		if room := l.limit - len(l.buffer); end == nil && len(part) <= room {
			l.buffer = append(l.buffer, part...)
		} else {
			if end == nil {
				l.buffer = append(l.buffer, part[:room]...)
				end = append(end, l.buffer[max(0, len(l.buffer)-tail):]...)
				part = part[room:]
			}
			end = append(end, part...)
			end = append(end[:0], end[max(0, len(end)-tail):]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && some:
			return line{text: l.buffer, end: end}, nil
		default:
			return line{text: l.buffer, end: end}, err
		}
	}
}

// more says whether the log goes on beyond the limit.
func (l *lines) more() bool {
	if l.source.left > 0 {
		return false
	}
	var one [1]byte
	n, _ := io.ReadFull(l.source.r, one[:])
	return n > 0
}
