package bus

import (
	"context"
	"slices"
	"testing"
	"time"

	"signalbox/internal/recording"
	"signalbox/internal/trace"
)

// TestScheduledWorkKeepsItsEvent schedules work, which the server moves when its time
// has come, and looks at both ends; on a bus of its own and on one that is shared.
func TestScheduledWorkKeepsItsEvent(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) Config{
		"embedded": func(t *testing.T) Config { return Config{Embedded: Embedded{Dir: t.TempDir()}} },
		"external": func(t *testing.T) Config {
			_, ext := external(t, nil)
			return Config{External: ext}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			b := open(t, cfg)
			ctx := deadline(t)
			asked := trace.WithEvent(ctx, "gitea/1")
			if err := b.Work().Schedule(asked, Item{Ref: ref(1), Kind: Wake}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			// A reader of a shared bus is another process.
			reader := b.Reader()
			if len(cfg.External.URLs) > 0 {
				other, err := OpenReader(ctx, cfg, logger(t))
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := other.Close(ctx); err != nil {
						t.Error(err)
					}
				}()
				reader = other
			}
			var seen []string
			err := reader.Tail(ctx, Tail{Kinds: recording.Kinds()}, func(l recording.Line) error {
				seen = append(seen, string(l.Kind)+" "+l.Event)
				return nil
			})
			if want := []string{"work gitea/1", "now "}; err != nil || !slices.Equal(seen, want) {
				t.Errorf("the bus holds %v, %v, want %v", seen, err, want)
			}
			if err := b.Work().Schedule(asked, Item{Ref: ref(1), Kind: Wake}, time.Now().Add(50*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			consuming, cancel := context.WithCancel(ctx)
			defer cancel()
			var event string
			err = b.Work().Consume(consuming, func(ctx context.Context, _ Item) error {
				event = trace.Event(ctx)
				cancel()
				return nil
			})
			if err != nil || event != "gitea/1" {
				t.Errorf("the work is of the event %q, %v", event, err)
			}
		})
	}
}
