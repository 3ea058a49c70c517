package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"signalbox/internal/fact"
)

// FactWriter keeps facts.
type FactWriter interface {
	Lookup(key fact.Key) (fact.Fact, bool)
	Put(ctx context.Context, f fact.Fact) (changed bool, err error)
	Sync(ctx context.Context) error
}

// Beats tells when clusters were last heard from, by any replica.
type Beats interface {
	Last(cluster string) (at time.Time, ok bool)
	Sync(ctx context.Context) error
}

// Silence turns the absence of heartbeats into a fact: silence sends no event,
// so somebody must look.
type Silence struct {
	Facts    FactWriter
	Beats    Beats
	Clusters []string
	// Limit is how long a cluster may be silent.
	Limit time.Duration
	Now   func() time.Time
}

// lookEvery is the time between two looks. A look costs no call while nothing
// changed, and a cluster that comes back should not stay unknown for long.
const lookEvery = time.Second

// Run looks until the context ends. An error of one look is given to report and
// the next look tries again.
func (s *Silence) Run(ctx context.Context, report func(error)) error {
	ticker := time.NewTicker(min(lookEvery, s.Limit))
	defer ticker.Stop()
	for {
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Look writes the heartbeat fact of each cluster if it changed.
func (s *Silence) Look(ctx context.Context) error {
	if err := errors.Join(s.Facts.Sync(ctx), s.Beats.Sync(ctx)); err != nil {
		return fmt.Errorf("look for silent clusters: %w", err)
	}
	var errs []error
	for _, cluster := range s.Clusters {
		errs = append(errs, s.look(ctx, cluster))
	}
	return errors.Join(errs...)
}

func (s *Silence) look(ctx context.Context, cluster string) error {
	now := s.Now()
	key := fact.HeartbeatKey(cluster)
	held, known := s.Facts.Lookup(key)
	heard, ok := s.Beats.Last(cluster)
	silent := !ok || now.Sub(heard) > s.Limit
	if known && held.Heartbeat != nil && held.Heartbeat.Silent == silent {
		return nil
	}
	f := fact.Fact{Key: key, Since: now.UTC(), SeenAt: now.UTC(), Heartbeat: &fact.Heartbeat{Silent: silent}}
	if silent {
		f.Heartbeat.LastHeard = heard.UTC()
		if ok {
			f.Since = heard.UTC()
		}
	}
	if _, err := s.Facts.Put(ctx, f); err != nil {
		return fmt.Errorf("heartbeat of cluster %s: %w", cluster, err)
	}
	return nil
}
