package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/chat"
	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/pull"
	"signalbox/internal/recording"
)

var (
	tailRepo = pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
	tailRef  = pull.Ref{RepoID: 7, Number: 12}
)

// filled is a bus that holds something of each kind.
func filled(t *testing.T) (*bus.Bus, *bus.Bucket[map[string]string]) {
	t.Helper()
	b := bustest.Open(t, bus.Config{MaxDeliveries: 1})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	publish := func(id string, p events.Payload) {
		t.Helper()
		e, err := events.New(id, "test", time.Now(), p)
		must(err)
		must(b.Publish(ctx, e))
	}
	publish("gitea/1", events.PullChanged{Repo: events.Repo(tailRepo), Number: 12, Action: "opened"})
	_, err := b.Facts().Put(ctx, fact.Fact{Key: fact.Kube("prod", "kustomization", "flux-system", "apps")})
	must(err)
	_, err = b.Facts().Put(ctx, fact.Fact{Key: fact.Kube("prod", "kustomization", "flux-system", "gone")})
	must(err)
	must(b.Facts().Delete(ctx, fact.Kube("prod", "kustomization", "flux-system", "gone")))
	pulls, err := bus.OpenBucket[map[string]string](ctx, b, "pulls")
	must(err)
	_, err = pulls.Set(ctx, tailRef.String(), map[string]string{"say": "first"})
	must(err)
	ledger, err := bus.OpenLedger(ctx, b)
	must(err)
	_, err = ledger.Append(ctx, decision.Entry{
		ID: "comment/1/0", Kind: decision.Hold, By: pull.Person{ID: 1, Login: "alice"}, Repo: tailRepo, Number: 12, At: time.Now(),
	})
	must(err)
	publish("slack/1", events.ChatSaid{Message: chat.Message{Room: chat.Room{Platform: chat.Slack, ID: "C1"}, User: chat.User{Platform: chat.Slack, ID: "U1"}, Text: "link 314159"}})
	must(b.Work().Schedule(ctx, bus.Item{Ref: tailRef, Kind: bus.Wake, Reason: "time"}, time.Now().Add(time.Hour)))
	refused, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- b.ConsumeEvents(refused, "refuses", []string{"event.chat.>"}, func(context.Context, events.Event) error {
			return events.Permanent(errors.New("it cannot be"))
		})
	}()
	for deadline := time.Now().Add(30 * time.Second); ; {
		n, err := b.Dead().Count(ctx)
		must(err)
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("there is no dead letter")
		}
		<-time.After(5 * time.Millisecond)
	}
	cancel()
	must(<-ended)
	return b, pulls
}

// inShort writes a line without what is another each time.
func inShort(l recording.Line) string {
	switch {
	case l.Kind == recording.Now:
		return "now"
	case l.Deleted:
		return fmt.Sprintf("%s %s deleted", l.Kind, l.Key)
	case l.Kind == recording.Dead:
		var d recording.Letter
		if err := json.Unmarshal(l.Value, &d); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("dead %s %s: %s", d.Subject, d.Consumer, d.Reason)
	}
	return fmt.Sprintf("%s %s", l.Kind, l.Key)
}

func TestTailTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	b, _ := filled(t)
	var got []string
	var lines []recording.Line
	err := b.Reader().Tail(t.Context(), bus.Tail{Kinds: recording.Kinds()}, func(l recording.Line) error {
		got, lines = append(got, inShort(l)), append(lines, l)
		if l.At.IsZero() {
			t.Errorf("%v has no time", l)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	apps, gone := "fact kube.prod.kustomization.flux-system.apps", "fact kube.prod.kustomization.flux-system.gone"
	want := []string{
		"event event.gitea.pull.7.12", apps, gone + " deleted", "pull 7.12", "decision 7.12.CDNMQPBECTQ2U1PG62O3", "event event.chat.slack",
		"work work.at.7.12.wake", "dead event.chat.slack refuses: it cannot be", "now",
	}
	for i := range want {
		if strings.HasPrefix(want[i], "decision") && i < len(got) {
			got[i], want[i] = strings.SplitAfter(got[i], "7.12.")[0], "decision 7.12."
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, l := range lines {
		if strings.Contains(string(l.Value), "314159") {
			t.Errorf("what was said in a chat is told: %s", l.Value)
		}
		if l.Kind == recording.Dead && l.Event != "slack/1" {
			t.Errorf("the dead letter is of the event %q", l.Event)
		}
	}
	// What is true is told however old it is; what happened is not.
	got = nil
	err = b.Reader().Tail(t.Context(), bus.Tail{Kinds: recording.Kinds(), Since: time.Now().Add(time.Hour)}, func(l recording.Line) error {
		got = append(got, string(l.Kind))
		return nil
	})
	if want := []string{"fact", "fact", "pull", "decision", "work", "now"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("of the future it tells %v, %v, want %v", got, err, want)
	}
}

func TestTailFollows(t *testing.T) {
	t.Parallel()
	b, pulls := filled(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	changed := map[string]bool{}
	live := false
	err := b.Reader().Tail(ctx, bus.Tail{Kinds: recording.Kinds(), Follow: true}, func(l recording.Line) error {
		if l.Kind == recording.Now {
			live = true
			if _, err := pulls.Set(ctx, tailRef.String(), map[string]string{"say": "second"}); err != nil {
				return err
			}
			if err := pulls.Delete(ctx, tailRef.String()); err != nil {
				return err
			}
			if _, err := b.Facts().Put(ctx, fact.Fact{Key: fact.HeartbeatKey("prod"), Heartbeat: &fact.Heartbeat{}}); err != nil {
				return err
			}
			return b.Work().Schedule(ctx, bus.Item{Ref: tailRef, Kind: bus.Retry}, time.Now().Add(time.Hour))
		}
		if live {
			if changed[inShort(l)] = true; len(changed) == 4 {
				cancel()
			}
		}
		return nil
	})
	want := map[string]bool{"pull 7.12": true, "pull 7.12 deleted": true, "fact kube.prod.heartbeat.=.=": true, "work work.at.7.12.retry": true}
	if diff := cmp.Diff(want, changed); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTailOfAnEmptyBus(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	var got []string
	err := b.Reader().Tail(t.Context(), bus.Tail{Kinds: recording.Kinds()}, func(l recording.Line) error {
		got = append(got, inShort(l))
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"now"}) {
		t.Errorf("it tells %v, %v", got, err)
	}
	if err := b.Reader().Tail(t.Context(), bus.Tail{Kinds: []recording.Kind{"x"}}, func(recording.Line) error { return nil }); err == nil || !strings.Contains(err.Error(), `"x" is not known`) {
		t.Errorf("error %v", err)
	}
	if err := b.Reader().Tail(t.Context(), bus.Tail{Kinds: recording.Kinds()}, func(recording.Line) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
}

// TestTailTakesNothing looks at the bus while somebody works, who must not notice.
func TestTailTakesNothing(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Work().Soon(ctx, bus.Item{Ref: tailRef, Kind: bus.Full}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := b.Reader().Tail(ctx, bus.Tail{Kinds: recording.Kinds()}, func(recording.Line) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	handled := 0
	err := b.Work().Consume(ctx, func(context.Context, bus.Item) error {
		handled++
		cancel()
		return nil
	})
	if err != nil || handled != 1 {
		t.Errorf("the work was handled %d times, %v", handled, err)
	}
}
