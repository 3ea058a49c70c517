package gitea

import (
	"sync"
	"time"
)

// budget counts the requests of the last hour, minute by minute.
type budget struct {
	// calls is how many an hour may have.
	calls int

	mu sync.Mutex
	// spent holds the requests of sixty minutes; that of a minute is at its number
	// modulo sixty, and last is the number of the newest.
	spent [minutes]int
	last  int64
}

const minutes = 60

func (b *budget) spend(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(now)
	b.spent[b.last%minutes]++
}

// left is what is left of the calls; negative where there were more.
func (b *budget) left(now time.Time) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(now)
	left := b.calls
	for _, n := range b.spent {
		left -= n
	}
	return left
}

// forget drops the minutes that are an hour old. A clock that was set back counts
// for the newest minute.
func (b *budget) forget(now time.Time) {
	minute := now.Unix() / 60
	for next := max(b.last+1, minute-minutes+1); next <= minute; next++ {
		b.spent[next%minutes] = 0
	}
	b.last = max(b.last, minute)
}
