package bus

import (
	"cmp"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

// bucketDecisions is the name of the ledger's stream within the buckets: it has
// a subject for each entry, on which the server takes one message and no more.
const bucketDecisions = "decisions"

// Ledger is what people decided, for ever: an entry is never changed, and
// neither signalbox nor another client can delete or purge one.
//
// The id of an entry is its key, so a cause has one entry however often, and
// from however many replicas, it is appended.
type Ledger struct {
	bucket *Bucket[decision.Entry]
	// since is when the ledger was begun whose stream was made at made.
	since, made time.Time

	mu     sync.RWMutex
	byPull map[pull.Ref]map[string]decision.Entry
	// freezes are the keys of the entries that act on a whole repository, by its
	// id.
	freezes map[int64]map[string]struct{}
	// links are the keys of the entries about an account of a chat.
	links map[string]map[string]struct{}
	// causes are what was said in chats and has an entry.
	causes map[string]struct{}
	// count is how many entries there are, and sorted those that there were when all
	// were last asked for: nothing is ever taken out.
	count  int
	sorted decision.Ledger
}

// OpenLedger makes the ledger if it is missing and returns when it is loaded.
// It is opened once and shared.
func OpenLedger(ctx context.Context, b *Bus) (*Ledger, error) {
	s, err := b.ensureStream(ctx, ledgerStream())
	if err != nil {
		return nil, err
	}
	since, err := ledgerBegun(s.CachedInfo())
	if err != nil {
		return nil, err
	}
	v := newView[decision.Entry](b, bucketDecisions, ledgerStream().Name, 0)
	if err := v.start(ctx); err != nil {
		return nil, fmt.Errorf("load the ledger of decisions: %w", err)
	}
	l := &Ledger{
		since:  since,
		made:   s.CachedInfo().Created,
		bucket: &Bucket[decision.Entry]{b: b, name: bucketDecisions, stream: ledgerStream().Name, view: v},
		byPull: map[pull.Ref]map[string]decision.Entry{}, freezes: map[int64]map[string]struct{}{},
		links: map[string]map[string]struct{}{}, causes: map[string]struct{}{},
	}
	l.bucket.OnChange(l.index)
	return l, nil
}

func ledgerStream() jetstream.StreamConfig {
	s := bucketStream(bucketDecisions, 0)
	s.Description = "what people decided, for ever"
	s.DiscardNewPerSubject = true
	s.DenyPurge = true
	// A rollup would delete what it rolls up.
	s.AllowRollup = false
	return s
}

// index follows the entries. There are no changes but new ones.
func (l *Ledger) index(key string, _, now *decision.Entry) {
	if now == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	entries := l.byPull[now.Ref()]
	if entries == nil {
		entries = map[string]decision.Entry{}
		l.byPull[now.Ref()] = entries
	}
	entries[key] = *now
	if now.OfRepo() {
		if l.freezes[now.Repo.ID] == nil {
			l.freezes[now.Repo.ID] = map[string]struct{}{}
		}
		l.freezes[now.Repo.ID][key] = struct{}{}
	}
	if i := strings.LastIndexByte(now.ID, '/'); now.User != "" && i >= 0 {
		l.causes[now.ID[:i]] = struct{}{}
	}
	if now.Kind == decision.Link || now.Kind == decision.Unlink {
		if l.links[now.User] == nil {
			l.links[now.User] = map[string]struct{}{}
		}
		l.links[now.User][key] = struct{}{}
	}
}

// ledgerKey is the key of an entry. Ids are for people and may hold anything;
// keys may not.
func ledgerKey(e decision.Entry) string {
	id := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(e.ID))
	return e.Ref().String() + "." + id
}

// Append adds an entry and reports whether it is new; one whose id is there
// already is left as it is. When it returns, the entry is as durable as an
// event, and Entries of this process has it.
func (l *Ledger) Append(ctx context.Context, e decision.Entry) (added bool, err error) {
	if err := e.Check(); err != nil {
		return false, err
	}
	_, err = l.bucket.Create(ctx, ledgerKey(e), e)
	switch {
	case errors.Is(err, ErrConflict):
		return false, l.Sync(ctx)
	case err != nil:
		return false, fmt.Errorf("append decision %s: %w", e.ID, err)
	}
	return true, nil
}

// Entries returns the ledger of a pull request, in the order of the server.
func (l *Ledger) Entries(ref pull.Ref) decision.Ledger {
	l.mu.RLock()
	keys := slices.Collect(maps.Keys(l.byPull[ref]))
	l.mu.RUnlock()
	return l.ordered(keys)
}

// Freezes returns the entries that act on all pull requests of a repository,
// whichever they were said on, in the order of the server.
func (l *Ledger) Freezes(repo int64) decision.Ledger {
	l.mu.RLock()
	keys := slices.Collect(maps.Keys(l.freezes[repo]))
	l.mu.RUnlock()
	return l.ordered(keys)
}

// Links returns the entries about who an account of a chat is, in the order of
// the server. The account is written "platform/id".
func (l *Ledger) Links(user string) decision.Ledger {
	l.mu.RLock()
	keys := slices.Collect(maps.Keys(l.links[user]))
	l.mu.RUnlock()
	return l.ordered(keys)
}

// Linked returns the entries by which accounts of chats are a person's now, by
// account.
func (l *Ledger) Linked(person int64) []decision.Entry {
	l.mu.RLock()
	users := slices.Sorted(maps.Keys(l.links))
	l.mu.RUnlock()
	var out []decision.Entry
	for _, user := range users {
		if e, ok := l.Links(user).Linked(); ok && e.By.ID == person {
			out = append(out, e)
		}
	}
	return out
}

// Caused reports whether something that was said in a chat has an entry, on
// whichever pull request; see [decision.Entry.ID].
func (l *Ledger) Caused(cause string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, ok := l.causes[cause]
	return ok
}

// All returns every entry, in the order of the server. It is shared and must not be
// changed.
func (l *Ledger) All() decision.Ledger {
	l.mu.RLock()
	sorted, count := l.sorted, l.count
	l.mu.RUnlock()
	if len(sorted) == count {
		return slices.Clip(sorted)
	}
	keys := make([]string, 0, count)
	for key := range l.bucket.All() {
		keys = append(keys, key)
	}
	sorted = l.ordered(keys)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(sorted) > len(l.sorted) {
		l.sorted = sorted
	}
	return slices.Clip(sorted)
}

func (l *Ledger) ordered(keys []string) decision.Ledger {
	out := make(decision.Ledger, 0, len(keys))
	for _, key := range keys {
		if e, revision, ok := l.bucket.Get(key); ok {
			e.Seq = revision
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b decision.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// OnChange calls f for every entry that is there, and then for every new one. It must be
// quick.
func (l *Ledger) OnChange(f func(e decision.Entry)) {
	l.bucket.OnChange(func(_ string, _, now *decision.Entry) {
		if now != nil {
			f(*now)
		}
	})
}

// Since is when the ledger was begun, also if it was restored since. One that somebody
// removed is begun anew.
func (l *Ledger) Since() time.Time {
	l.bucket.view.mu.RLock()
	defer l.bucket.view.mu.RUnlock()
	if made := l.bucket.view.made; !made.Equal(l.made) {
		return made
	}
	return l.since
}

// ledgerBegun returns when a ledger was begun: when its stream was made, or what a
// restore has written there. What people said before that was not written to it.
func ledgerBegun(s *jetstream.StreamInfo) (time.Time, error) {
	text, restored := s.Config.Metadata[metaBegun]
	if !restored {
		return s.Created.UTC(), nil
	}
	begun, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("stream %s does not say when the ledger was begun: %w", s.Config.Name, err)
	}
	return begun, nil
}

// Sync is the barrier; see [Bucket.Sync].
func (l *Ledger) Sync(ctx context.Context) error { return l.bucket.Sync(ctx) }
