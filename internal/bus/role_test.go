package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"signalbox/internal/events"
)

// killedDelay is when the work is due that the process schedules before it is
// killed.
const killedDelay = 1500 * time.Millisecond

// playRole is what the test binary does as another process: it leaves things
// in the bus, says so, and waits to be killed.
func playRole(role, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b, err := Open(ctx, fast(Config{Embedded: Embedded{Dir: dir}, Debounce: 100 * time.Millisecond, MaxWait: 200 * time.Millisecond}),
		slog.New(slog.NewTextHandler(os.Stderr, nil)), nil)
	if err != nil {
		return err
	}
	inHand := make(chan struct{})
	switch role {
	case "hold":
		close(inHand)
	case "leave":
		data, err := json.Marshal(events.Tick{Name: "reconcile"})
		if err != nil {
			return err
		}
		e := events.Event{ID: "clock/1", Type: events.TypeTick, Source: "clock", Subject: "event.clock.reconcile", Data: data}
		_, put := b.facts.Put(ctx, someFact("apps", "1", "one"))
		err = errors.Join(
			b.Publish(ctx, e), put,
			b.work.Soon(ctx, Item{Ref: ref(1), Kind: Full, Reason: "soon"}),
			b.work.Schedule(ctx, Item{Ref: ref(2), Kind: Wake, Reason: "later"}, time.Now().Add(killedDelay)),
		)
		if err != nil {
			return err
		}
		close(inHand)
	case "work":
		go b.work.Consume(ctx, func(ctx context.Context, _ Item) error { //nolint:errcheck // the process is killed
			close(inHand)
			<-ctx.Done()
			return nil
		})
		if err := b.work.Soon(ctx, Item{Ref: ref(1), Kind: Full, Reason: "in hand"}); err != nil {
			return err
		}
	}
	<-inHand
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}
