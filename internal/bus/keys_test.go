package bus

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConsumeKeys: each consumer gets the keys of its part, what fails comes again
// for ever, and a deletion is told too.
func TestConsumeKeys(t *testing.T) {
	cfg := fast(Config{Embedded: Embedded{Dir: t.TempDir()}})
	cfg.MaxDeliveries = 2
	b := open(t, cfg)
	k, err := OpenBucket[string](deadline(t), b, "outbox")
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := k.Set(deadline(t), key, value); err != nil {
			t.Fatal(err)
		}
	}
	put("slack.a", "one")
	put("matrix.b", "two")
	var slack, all record[string]
	fails := 5
	running(t, func(ctx context.Context) error {
		return k.ConsumeKeys(ctx, "outbox-slack", "slack", func(_ context.Context, key string) error {
			value, _, _ := k.Get(key)
			if fails > 0 {
				fails--
				return errors.New("the platform is down")
			}
			slack.add(key + "=" + value)
			return nil
		})
	})
	running(t, func(ctx context.Context) error {
		return k.ConsumeKeys(ctx, "all", "", func(_ context.Context, key string) error {
			all.add(key)
			return nil
		})
	})
	eventually(t, "both are told", func() bool { return slack.len() == 1 && all.len() == 2 })
	if diff := cmp.Diff([]string{"slack.a=one"}, slack.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := k.Delete(deadline(t), "slack.a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion is told", func() bool { return slack.len() == 2 })
	if got := slack.all()[1]; got != "slack.a=" {
		t.Errorf("after the deletion it is %q", got)
	}
}
