package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"signalbox/internal/fact"
)

// Collector is a cluster with an agent, to whoever wishes for facts of it.
type Collector struct {
	hub     *Hub
	cluster string
	wake    chan struct{}
	// refusals bounds how often it is logged that requests of the agent are refused.
	refusals rate.Sometimes

	mu     sync.Mutex
	wishes []fact.Wish
	// wished counts the changes of wishes.
	wished uint64

	// storing is held while the wishes are stored; stored is what wished was then.
	storing  sync.Mutex
	stored   uint64
	storedAt time.Time
}

// Collector returns that of a cluster.
func (h *Hub) Collector(cluster string) *Collector {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.collectors == nil {
		h.collectors = map[string]*Collector{}
	}
	c := h.collectors[cluster]
	if c == nil {
		c = &Collector{hub: h, cluster: cluster, wake: make(chan struct{}, 1), wished: 1, refusals: rate.Sometimes{First: 3, Interval: time.Minute}}
		h.collectors[cluster] = c
	}
	return c
}

// Wish sets everything that this replica wishes for of the cluster. The agent collects
// what any replica wishes for.
func (c *Collector) Wish(wishes []fact.Wish) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reflect.DeepEqual(c.wishes, wishes) {
		return
	}
	c.wishes = slices.Clone(wishes)
	c.wished++
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// answerTime is how much sooner than its asker an agent stops waiting, so that its answer
// arrives.
const answerTime = 200 * time.Millisecond

// maxWithin bounds how long an agent is asked to wait.
const maxWithin = 8 * time.Second

// Await reports whether the agent has told each of the facts since it began to collect
// it, and waits for that until ctx ends. Where no agent is there it does not wait.
func (c *Collector) Await(ctx context.Context, keys []fact.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, maxWithin)
	defer cancel()
	if err := c.store(ctx); err != nil {
		c.hub.Log.WarnContext(ctx, "what is wished for could not be stored", "cluster", c.cluster, "error", err)
		return false
	}
	deadline, _ := ctx.Deadline()
	within := max(0, time.Until(deadline)-answerTime)
	out, err := request[awaitAnswer](ctx, c.hub.Line, agentSubject(c.cluster, verbAwait), await{keys, within})
	if err != nil {
		c.hub.Log.DebugContext(ctx, "the agent was not heard about facts", "cluster", c.cluster, "error", err)
	}
	return err == nil && out.Settled
}

// run stores what is wished for when it changes, and again before it vanishes.
func (c *Collector) run(ctx context.Context) error {
	ticker := time.NewTicker(WishAge / 10)
	defer ticker.Stop()
	for {
		if err := c.store(ctx); err != nil && ctx.Err() == nil {
			c.hub.Log.WarnContext(ctx, "what is wished for could not be stored, and is tried again", "cluster", c.cluster, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-ticker.C:
		}
	}
}

// store stores what is wished for now, unless that is stored and will stay.
func (c *Collector) store(ctx context.Context) error {
	c.storing.Lock()
	defer c.storing.Unlock()
	c.mu.Lock()
	w, wished := Wished{Cluster: c.cluster, Wishes: c.wishes}, c.wished
	c.mu.Unlock()
	now := c.hub.Now()
	if wished == c.stored && now.Sub(c.storedAt) < WishAge/4 {
		return nil
	}
	key := fact.Key{Source: fact.SourceKube, Scope: c.cluster, Kind: "wishes", Name: c.hub.Replica}
	if _, err := c.hub.Wishes.Set(ctx, key.String(), w); err != nil {
		return fmt.Errorf("store the wishes for cluster %s: %w", c.cluster, err)
	}
	c.stored, c.storedAt = wished, now
	return nil
}

// markOf returns a text that is another one for other wishes.
func markOf(wishes []fact.Wish) (string, error) {
	data, err := json.Marshal(wishes)
	if err != nil {
		return "", fmt.Errorf("encode the wishes: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12]), nil
}
