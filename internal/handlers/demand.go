package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"signalbox/internal/fact"
)

// ClusterCollector collects the facts that are wished of one cluster.
type ClusterCollector interface {
	// Wish sets everything that is wished of the cluster. What is not wished any
	// more is not collected any more, and its fact is removed.
	Wish(wishes []fact.Wish)
	// Await waits until each of the facts was written for the first time since it was
	// wished, or the context ends, and reports which: what is held may be of an earlier
	// life unless it is true. What cannot be read yet is written as such. Where nobody
	// is there to write it does not wait.
	Await(ctx context.Context, keys []fact.Key) bool
}

// Syncer waits until a view shows all that was written before the call.
type Syncer interface {
	Sync(ctx context.Context) error
}

// Demand sees to it that what verdicts wish for is collected, and nothing else.
type Demand struct {
	Index   *Index
	Records Syncer
	// Clusters are by name.
	Clusters map[string]ClusterCollector
	Forge    *ForgeFacts
	// Standing returns what is wished whatever the verdicts wish for; nil stands for
	// nothing. It is asked again and again, as repositories become known.
	Standing func() []fact.Wish
	// Patience is how long the first verdict waits for a cluster to answer.
	Patience time.Duration
	Now      func() time.Time

	mu sync.Mutex
	// recent are wishes of verdicts that may not be stored yet, by when they
	// are forgotten.
	recent map[fact.Key]recentWish
	// settled are the wishes of clusters that were waited for: what is held of
	// them is of this life.
	settled map[fact.Key]bool
}

type recentWish struct {
	wish  fact.Wish
	until time.Time
}

// unstored is how long a wish counts whose verdict is not stored: longer than
// an evaluation takes.
const unstored = 2 * time.Minute

// Collect sees to it that facts are collected from now on, and waits until those
// that were not collected before have been read. It returns the keys of those.
// A cluster is waited for as long as Patience; its facts say then that nothing
// is known yet. An error is one of the forge, and passes.
func (d *Demand) Collect(ctx context.Context, wishes []fact.Wish) (began []fact.Key, err error) {
	ofCluster := map[string][]fact.Key{}
	var ofForge []fact.Key
	d.mu.Lock()
	if d.recent == nil {
		d.recent, d.settled = map[fact.Key]recentWish{}, map[fact.Key]bool{}
	}
	for _, w := range wishes {
		if w.Key.Source == fact.SourceGitea {
			ofForge = append(ofForge, w.Key)
			continue
		}
		d.recent[w.Key] = recentWish{w, d.Now().Add(unstored)}
		if !d.settled[w.Key] {
			ofCluster[w.Key.Scope] = append(ofCluster[w.Key.Scope], w.Key)
		}
	}
	d.mu.Unlock()
	if len(ofCluster) > 0 {
		d.Tell()
		began = d.await(ctx, ofCluster)
	}
	read, err := d.Forge.Collect(ctx, ofForge)
	return append(began, read...), err
}

// await waits for the clusters, as long as its patience lasts, and returns all the
// keys. What has not settled by then is waited for again by whoever wishes next.
func (d *Demand) await(ctx context.Context, ofCluster map[string][]fact.Key) (keys []fact.Key) {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	for cluster, of := range ofCluster {
		c, ok := d.Clusters[cluster]
		if !ok {
			continue
		}
		for _, k := range of {
			if c.Await(ctx, []fact.Key{k}) {
				d.mu.Lock()
				d.settled[k] = true
				d.mu.Unlock()
			}
			keys = append(keys, k)
		}
	}
	return keys
}

// ReadAnew reads the facts of the forge among some wishes now.
func (d *Demand) ReadAnew(ctx context.Context, wishes []fact.Wish) error {
	var keys []fact.Key
	for _, w := range wishes {
		if w.Key.Source == fact.SourceGitea {
			keys = append(keys, w.Key)
		}
	}
	return d.Forge.ReadAll(ctx, keys)
}

// Run tells the clusters what is wished of them, each time that changes, until
// the context ends.
func (d *Demand) Run(ctx context.Context, changed <-chan struct{}) error {
	// What was wished by verdicts that were never stored is dropped some time.
	ticker := time.NewTicker(unstored)
	defer ticker.Stop()
	for {
		d.Tell()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ticker.C:
		}
	}
}

// Tell tells each cluster what is wished of it now. It is called before the
// clusters are watched, too, so that they know it at the start.
func (d *Demand) Tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[fact.Key]fact.Wish{}
	for _, w := range d.wishes() {
		all[w.Key] = w
	}
	now := d.Now()
	for k, r := range d.recent {
		if now.After(r.until) {
			delete(d.recent, k)
			continue
		}
		all[k] = r.wish
	}
	for k := range d.settled {
		if _, ok := all[k]; !ok {
			delete(d.settled, k)
		}
	}
	for cluster, c := range d.Clusters {
		var wishes []fact.Wish
		for k, w := range all {
			if k.Source == fact.SourceKube && k.Scope == cluster {
				wishes = append(wishes, w)
			}
		}
		slices.SortFunc(wishes, func(a, b fact.Wish) int { return compareKeys(a.Key, b.Key) })
		c.Wish(wishes)
	}
}

// Refresh reads all facts again that are wished of the forge, and drops those
// that nobody wishes for any more.
func (d *Demand) Refresh(ctx context.Context) error {
	if err := d.Records.Sync(ctx); err != nil {
		return fmt.Errorf("refresh facts: %w", err)
	}
	var keys []fact.Key
	wishes := d.standing()
	standing := map[fact.Key]bool{}
	for _, w := range wishes {
		standing[w.Key] = true
	}
	for _, w := range append(d.Index.Wishes(), wishes...) {
		if w.Key.Source == fact.SourceGitea {
			keys = append(keys, w.Key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	wished := func(k fact.Key) bool { return standing[k] || d.Index.Wished(k) }
	return errors.Join(d.Forge.Refresh(ctx, slices.Compact(keys)), d.Forge.Drop(ctx, wished))
}

func (d *Demand) standing() []fact.Wish {
	if d.Standing == nil {
		return nil
	}
	return d.Standing()
}

// wishes are those of all verdicts, and the standing ones.
func (d *Demand) wishes() []fact.Wish { return append(d.Index.Wishes(), d.standing()...) }
