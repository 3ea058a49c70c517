package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/fact"
)

// FactStore holds the facts of all clusters. It is shared by all replicas.
type FactStore interface {
	// Held returns a fact and its revision, which is zero where there is none.
	Held(key fact.Key) (f fact.Fact, revision uint64, ok bool)
	// Select returns the facts of a source, a scope and a kind; of all kinds if that is
	// empty.
	Select(source, scope, kind string) []fact.Fact
	// PutAt and DeleteAt change a fact that still has a revision; [Hub.Conflict] tells
	// whether an error says that it has another.
	PutAt(ctx context.Context, f fact.Fact, revision uint64) (uint64, error)
	DeleteAt(ctx context.Context, key fact.Key, revision uint64) error
}

// WishStore holds what each replica wishes for. What is not set again vanishes after
// [WishAge].
type WishStore interface {
	Set(ctx context.Context, key string, w Wished) (revision uint64, err error)
	All() iter.Seq2[string, Wished]
	// Sync waits until All shows all that was set before the call.
	Sync(ctx context.Context) error
}

// Wished is what one replica wishes for of a cluster.
type Wished struct {
	Cluster string      `json:"cluster"`
	Wishes  []fact.Wish `json:"wishes"`
}

// WishAge is how long the wishes of a replica stand that is gone.
const WishAge = 10 * time.Minute

// Hub is the end of the line in signalbox.
type Hub struct {
	Line   Line
	Facts  FactStore
	Wishes WishStore
	// Made returns when the store of facts was made.
	Made func() time.Time
	// Beat notes that a cluster was heard from, by whom and when.
	Beat func(ctx context.Context, cluster, by string, at time.Time) error
	// Conflict reports whether an error says that a fact has another revision.
	Conflict func(error) bool
	// Clusters are those that have an agent.
	Clusters []string
	// Replica is the name of this process among those that share the stores.
	Replica string
	// Answered counts a request and whether it was refused.
	Answered func(cluster, verb string, err error)
	Now      func() time.Time
	Log      *slog.Logger

	mu sync.Mutex
	// counts are how many facts are held of each cluster, see [Hub.FactChanged].
	counts map[string]int
	// collectors are by cluster; they are made once.
	collectors map[string]*Collector
}

// maxFacts is how many facts one cluster may have: far more than any has, and few enough
// that an agent gone wrong does not fill the store for all others.
const maxFacts = 50_000

// maxSkew is how much the clock of an agent may differ from that of its hub. Settle
// times and ages are counted from times in facts.
const maxSkew = 30 * time.Second

// FactChanged counts the facts of each cluster. It is to be called for every fact that
// is held, and then for every change; old is nil for a new one, now for one that is gone.
func (h *Hub) FactChanged(key string, old, now *fact.Fact) {
	k, err := fact.ParseKey(key)
	if err != nil || k.Source != fact.SourceKube || (old == nil) == (now == nil) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = map[string]int{}
	}
	if now != nil {
		h.counts[k.Scope]++
	} else {
		h.counts[k.Scope]--
	}
}

// Run answers agents, and keeps what this replica wishes for, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, cluster := range h.Clusters {
		group.Go(func() error { return h.Line.Serve(ctx, hubSubject(cluster, "*"), "hub", h.answer) })
		group.Go(func() error { return h.Collector(cluster).run(ctx) })
	}
	return group.Wait()
}

// answer answers one request.
func (h *Hub) answer(ctx context.Context, subject string, data []byte) []byte {
	cluster, verb := parseSubject(subject)
	of, err := h.handle(ctx, cluster, verb, data)
	h.Answered(cluster, verb, err)
	if err != nil && ctx.Err() == nil {
		h.Collector(cluster).refusals.Do(func() {
			h.Log.WarnContext(ctx, "an agent's request was refused", "cluster", cluster, "request", verb, "error", err)
		})
	}
	return encode(of, err)
}

func (h *Hub) handle(ctx context.Context, cluster, verb string, data []byte) (any, error) {
	switch verb {
	case verbBeat:
		return handle(data, func(b beat) (beatAnswer, error) { return h.beat(ctx, cluster, b) })
	case verbList:
		return handle(data, func(l list) (listAnswer, error) { return h.list(cluster, l) })
	case verbPut:
		return handle(data, func(p put) (putAnswer, error) { return h.put(ctx, cluster, p) })
	case verbDelete:
		return handle(data, func(r remove) (putAnswer, error) { return h.remove(ctx, cluster, r) })
	case verbWishes:
		if err := h.Wishes.Sync(ctx); err != nil {
			return nil, fmt.Errorf("read the wishes: %w", err)
		}
		return h.wishes(cluster)
	default:
		return nil, fmt.Errorf("%q is not known to this hub; is the agent of another version?", verb)
	}
}

// handle decodes a request for its handler.
func handle[In, Out any](data []byte, f func(In) (Out, error)) (any, error) {
	var in In
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("decode the request: %w", err)
	}
	return f(in)
}

func (h *Hub) beat(ctx context.Context, cluster string, b beat) (beatAnswer, error) {
	now := h.Now()
	if skew := b.At.Sub(now); skew.Abs() > maxSkew {
		return beatAnswer{}, fmt.Errorf("the clock of the agent and that of the hub are %s apart, %s at most is trusted; set them right",
			skew.Abs().Round(time.Second), maxSkew)
	}
	if err := h.Beat(ctx, cluster, "agent "+b.Agent, now); err != nil {
		return beatAnswer{}, fmt.Errorf("note the heartbeat: %w", err)
	}
	w, err := h.wishes(cluster)
	return beatAnswer{Store: h.Made(), Wishes: w.Mark}, err
}

// maxPage is about how many bytes a page of a list has.
const maxPage = 256 << 10

func (h *Hub) list(cluster string, l list) (listAnswer, error) {
	out := listAnswer{Store: h.Made()}
	all := h.Facts.Select(fact.SourceKube, cluster, "")
	slices.SortFunc(all, func(a, b fact.Fact) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	size := 0
	for _, f := range all {
		if f.Key.Kind == fact.KindHeartbeat || f.Key.String() <= l.After {
			continue
		}
		data, err := json.Marshal(f)
		if err != nil {
			return listAnswer{}, fmt.Errorf("list fact %s: %w", f.Key, err)
		}
		if size > 0 && size+len(data) > maxPage {
			out.More = true
			break
		}
		size += len(data)
		out.Last = f.Key.String()
		// It may have changed since; then the one now is as good.
		if now, revision, ok := h.Facts.Held(f.Key); ok {
			out.Facts = append(out.Facts, held{now, revision})
		}
	}
	return out, nil
}

func (h *Hub) put(ctx context.Context, cluster string, p put) (putAnswer, error) {
	if err := acceptable(cluster, p.Fact); err != nil {
		return putAnswer{}, err
	}
	h.mu.Lock()
	full := h.counts[cluster] >= maxFacts
	h.mu.Unlock()
	if full && p.Revision == 0 {
		return putAnswer{}, fmt.Errorf("cluster %s has %d facts, and may have no more", cluster, maxFacts)
	}
	revision, err := h.Facts.PutAt(ctx, p.Fact, p.Revision)
	return h.written(p.Fact.Key, revision, err)
}

func (h *Hub) remove(ctx context.Context, cluster string, r remove) (putAnswer, error) {
	if err := ownKey(cluster, r.Key); err != nil {
		return putAnswer{}, err
	}
	return h.written(r.Key, 0, h.Facts.DeleteAt(ctx, r.Key, r.Revision))
}

// written makes the answer to what changes a fact.
func (h *Hub) written(key fact.Key, revision uint64, err error) (putAnswer, error) {
	if err == nil {
		return putAnswer{Revision: revision}, nil
	}
	if !h.Conflict(err) {
		return putAnswer{}, fmt.Errorf("write fact %s: %w", key, err)
	}
	out := putAnswer{Conflict: true}
	f, revision, ok := h.Facts.Held(key)
	out.Revision = revision
	if ok {
		out.Held = &f
	}
	return out, nil
}

// ownKey refuses a key that the agent of a cluster has no say in. Whether a cluster is
// heard from is for the hub to judge.
func ownKey(cluster string, k fact.Key) error {
	if k.Source != fact.SourceKube || k.Scope != cluster || k.Kind == "" || k.Kind == fact.KindHeartbeat {
		return fmt.Errorf("the agent of cluster %s may not tell %s", cluster, k)
	}
	return nil
}

// acceptable refuses a fact that the agent of a cluster may not tell, or that could not
// have come from a cluster.
func acceptable(cluster string, f fact.Fact) error {
	if err := ownKey(cluster, f.Key); err != nil {
		return err
	}
	if f.Since.IsZero() || f.SeenAt.IsZero() {
		return fmt.Errorf("fact %s does not say since when, or when it was read", f.Key)
	}
	if f.Heartbeat != nil || f.Protection != nil || f.Statuses != nil || f.Runs != nil || f.Actions != nil || f.Pull != nil {
		return fmt.Errorf("fact %s holds what no cluster tells", f.Key)
	}
	return nil
}

// wishes returns what all replicas wish for of a cluster.
func (h *Hub) wishes(cluster string) (wishesAnswer, error) {
	byKey := map[fact.Key]fact.Wish{}
	for _, w := range h.Wishes.All() {
		if w.Cluster != cluster {
			continue
		}
		for _, wish := range w.Wishes {
			byKey[wish.Key] = wish
		}
	}
	var out wishesAnswer
	for _, w := range byKey {
		out.Wishes = append(out.Wishes, w)
	}
	slices.SortFunc(out.Wishes, func(a, b fact.Wish) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	mark, err := markOf(out.Wishes)
	out.Mark = mark
	return out, err
}

// WishesChanged tells the agents of a cluster that a replica wishes for something else
// there. It is to be called for every change in the store of wishes.
func (h *Hub) WishesChanged(_ string, old, now *Wished) {
	w := cmp.Or(now, old)
	if w == nil {
		return
	}
	// An agent that does not hear it learns it with its next heartbeat.
	if err := h.Line.Publish(agentSubject(w.Cluster, verbChanged), nil); err != nil && !errors.Is(err, context.Canceled) {
		h.Log.Debug("agents were not told of a wish", "cluster", w.Cluster, "error", err)
	}
}
