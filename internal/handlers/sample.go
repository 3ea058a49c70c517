package handlers

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/digest"
	"signalbox/internal/events"
)

// SampleTick is the name of the tick that takes a sample.
const SampleTick = "sample"

// SampleEvery is the time between two samples.
const SampleEvery = time.Hour

// trendTime is how far back a trend goes.
const trendTime = 30 * 24 * time.Hour

// SampleStore keeps samples.
type SampleStore interface {
	Get(key string) (s digest.Sample, revision uint64, ok bool)
	Put(ctx context.Context, key string, s digest.Sample, revision uint64) (uint64, error)
	All() iter.Seq2[string, digest.Sample]
	Sync(ctx context.Context) error
}

// Samples takes a sample of how things stand every hour, so that there is a trend.
type Samples struct {
	Outlook  *Outlook
	Store    SampleStore
	Conflict func(error) bool
	Now      func() time.Time
}

// Handle takes the sample of an hour, once.
func (h *Samples) Handle(ctx context.Context, tick events.Event) error {
	now := h.Now().UTC()
	if now.Sub(tick.Time) > SampleEvery {
		return nil // What was then cannot be seen any more.
	}
	hour := tick.Time.UTC().Truncate(SampleEvery)
	key := strconv.FormatInt(hour.Unix(), 10)
	if err := h.Store.Sync(ctx); err != nil {
		return err
	}
	if _, _, ok := h.Store.Get(key); ok {
		return nil
	}
	if err := h.Outlook.Repositories.Complete(ctx); err != nil && len(h.Outlook.Repositories.Known()) == 0 {
		return nil // Nothing is known of pull requests; that is not none of them.
	}
	found, err := h.Outlook.Look(ctx, About{Sections: digest.Sections()}, time.Time{})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found.Blind, func(b digest.Blind) bool { return b.Section == digest.Flux }) && found.Counts.Total == 0 {
		return nil // Nothing is known; that is no hundred percent of nothing.
	}
	if _, err := h.Store.Put(ctx, key, digest.Sample{At: now, Counts: found.Counts}, 0); err != nil && !h.Conflict(err) {
		return fmt.Errorf("keep the sample of %s: %w", hour.Format(time.RFC3339), err)
	}
	return nil
}

// Trend returns the samples of the last 30 days, the oldest first.
func (h *Samples) Trend(ctx context.Context, now time.Time) ([]digest.Sample, error) {
	if err := h.Store.Sync(ctx); err != nil {
		return nil, err
	}
	return h.Held(now), nil
}

// Held is [Samples.Trend] as far as it is known here.
func (h *Samples) Held(now time.Time) []digest.Sample {
	var out []digest.Sample
	for _, s := range h.Store.All() {
		if now.Sub(s.At) <= trendTime {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b digest.Sample) int { return a.At.Compare(b.At) })
	return out
}
