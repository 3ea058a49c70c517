package handlers

import (
	"context"
	"fmt"

	"signalbox/internal/fact"
	"signalbox/internal/work"
)

// Facts wakes the pull requests that a changed fact concerns.
type Facts struct {
	Queue   Queue
	Records Records
	Index   *Index
}

// Handle asks for exactly the pull requests whose last verdict looked the fact
// up, whether it was there or not.
func (h *Facts) Handle(ctx context.Context, key fact.Key) error {
	// A record that was stored before the fact changed must be in the index.
	// One that is stored later is checked by its evaluation.
	if err := h.Records.Sync(ctx); err != nil {
		return fmt.Errorf("fact %s: %w", key, err)
	}
	return soon(ctx, h.Queue, work.Fact, "fact "+key.String(), h.Index.Readers(key))
}
