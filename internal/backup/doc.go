// Package backup is the form of the file that "bot backup" writes: what it
// holds, how it is written, and how it is read and checked.
//
// A backup is text for people and programs, compressed with gzip: a JSON object
// on each line. "gunzip -c FILE | jq" shows all of it.
//
//	{"backup":{"form":1,"version":"v1.2.3","layout":2,"at":"…"}}
//	{"bucket":{"name":"decisions","begun":"…"}}
//	{"entry":{"seq":1,"at":"…","key":"…","value":{…}}}
//	{"end":{"buckets":[{"name":"decisions","entries":1,"last":1}],"sha256":"…"}}
//
// The first line says who made it, the last one how much there must be of
// everything, and the SHA-256 of all lines before it. So a file that was cut or
// changed is found out, and read to its end before anything is believed. That
// says nothing of who wrote it: whoever may write a backup may put decisions
// into it.
//
// A [Writer] and a [Reader] are for one goroutine each. Both keep one line in
// memory, and go no further than the limits of the package, so that a small
// file cannot become more than a disk takes.
package backup

import (
	"fmt"
	"time"
)

// Form is the form of the file that this package writes, and the newest that it
// reads.
const Form = 1

// Limits of a backup, in bytes before compression.
const (
	// MaxLine is more than the largest value that the bus takes needs as a line.
	MaxLine = 16 << 20
	// MaxSize is some millions of decisions.
	MaxSize = 4 << 30
)

// Head says what a backup is.
type Head struct {
	Form int `json:"form"`
	// Version is that of the signalbox that wrote it.
	Version string `json:"version"`
	// Layout is that of the store that it was made of.
	Layout int `json:"layout"`
	// At is when it was begun, in UTC.
	At time.Time `json:"at"`
}

// Bucket begins the entries of a bucket.
type Bucket struct {
	Name string `json:"name"`
	// Begun is when the bucket was made, in UTC, or when that was which it was
	// restored from.
	Begun time.Time `json:"begun"`
}

// Entry is one key of the bucket that was begun last.
type Entry struct {
	// Seq is its place, which grows within the bucket.
	Seq uint64
	// At is when it was written, in UTC.
	At  time.Time
	Key string
	// Value is the value to the byte.
	Value []byte
}

// Total is how much there is of a bucket.
type Total struct {
	Name    string `json:"name"`
	Entries uint64 `json:"entries"`
	// Last is the place of the last entry, or zero.
	Last uint64 `json:"last"`
}

// End is the last line: what all those before it hold.
type End struct {
	Buckets []Total `json:"buckets"`
	// SHA256 is that of the lines before, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// count returns the total to which an entry belongs, and what is wrong with an
// entry or a bucket that comes next.
type count struct{ totals []Total }

func (c *count) bucket(b Bucket) error {
	for _, t := range c.totals {
		if t.Name == b.Name {
			return fmt.Errorf("bucket %q is there twice", b.Name)
		}
	}
	if b.Name == "" {
		return fmt.Errorf("a bucket has no name")
	}
	c.totals = append(c.totals, Total{Name: b.Name})
	return nil
}

func (c *count) entry(seq uint64, key string) error {
	if len(c.totals) == 0 {
		return fmt.Errorf("entry %d is in no bucket", seq)
	}
	t := &c.totals[len(c.totals)-1]
	if seq <= t.Last || key == "" {
		return fmt.Errorf("entry %d of bucket %q has no key, or comes after %d", seq, t.Name, t.Last)
	}
	t.Entries, t.Last = t.Entries+1, seq
	return nil
}
