package main

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// The width of the screen of the demo, in cells. Longer lines are hard to read.
const (
	leastWidth   = 40
	defaultWidth = 100
	mostWidth    = 120
)

func screenWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return defaultWidth
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return defaultWidth
	}
	return min(max(width, leastWidth), mostWidth)
}

// showsColor reports whether w is a terminal whose owner wants colors; see
// https://no-color.org.
func showsColor(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// tailLines is how many lines of the log are shown when the demo fails.
const tailLines = 30

// tailLog keeps the last lines of a log, and passes all on if it knows where
// to. Each call of Write is one line, as package slog writes them.
type tailLog struct {
	to io.Writer

	mu    sync.Mutex
	lines []string
}

// Write implements [io.Writer].
func (l *tailLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == tailLines {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, string(p))
	if l.to == nil {
		return len(p), nil
	}
	return l.to.Write(p)
}

func (l *tailLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}
