package conformance

import (
	"bytes"
	"sync"
)

// Journal is a log that can be read while it is written.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is all that was written so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
