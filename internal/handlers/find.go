package handlers

import (
	"crypto/sha256"

	lru "github.com/hashicorp/golang-lru/v2"

	"signalbox/internal/command"
)

// foundSize is how many texts are remembered with the commands in them.
const foundSize = 4096

// Finder finds commands in texts, each text once: the comments of a pull request
// are read at every full evaluation, and anybody may write many.
type Finder struct {
	found *lru.Cache[[sha256.Size]byte, command.Found]
}

// NewFinder makes a finder.
func NewFinder() *Finder {
	// It only fails for a size that is not positive.
	cache, _ := lru.New[[sha256.Size]byte, command.Found](foundSize)
	return &Finder{cache}
}

// find returns the commands in a text; they are shared.
func (f *Finder) find(text string) command.Found {
	key := sha256.Sum256([]byte(text))
	if found, ok := f.found.Get(key); ok {
		return found
	}
	found := command.Find(text)
	f.found.Add(key, found)
	return found
}
