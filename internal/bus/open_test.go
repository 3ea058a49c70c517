package bus

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"signalbox/internal/events"
	"signalbox/internal/fact"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

func TestConfigIsChecked(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"nothing", Config{}, "needs a directory"},
		{"a negative interval", Config{Embedded: Embedded{Dir: "x", SyncInterval: -1}}, "sync interval"},
		{"no URL", Config{External: External{URLs: []string{"nats.example.org"}}}, "not of the form"},
		{"a secret in a bad URL", Config{External: External{URLs: []string{"nats://a:hunter2@[x"}}}, "not of the form"},
		{"two credentials", Config{External: External{URLs: []string{"nats://nats.example.org:4222"}, CredentialsFile: "a", NKeyFile: "b"}}, "not both"},
		{"a certificate without a key", Config{External: External{URLs: []string{"nats://nats.example.org:4222"}, TLS: TLS{Cert: "a"}}}, "go together"},
		{"too many replicas", Config{External: External{URLs: []string{"nats://nats.example.org:4222"}, Replicas: 7}}, "replicas"},
		{"too many partitions", Config{Embedded: Embedded{Dir: "x"}, Partitions: 1000}, "partitions"},
		{"a cap below the debounce", Config{Embedded: Embedded{Dir: "x"}, Debounce: time.Minute}, "max wait"},
		{"ids longer than events", Config{Embedded: Embedded{Dir: "x"}, DuplicateWindow: 100 * time.Hour}, "duplicate window"},
		{"no room", Config{Embedded: Embedded{Dir: "x"}, EventsMaxBytes: 1}, "size limit"},
		{"no deliveries", Config{Embedded: Embedded{Dir: "x"}, MaxDeliveries: -1}, "at least 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open(deadline(t), tt.cfg, logger(t), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one about %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, "hold", dir)
	if p.line != "ready" {
		t.Fatal(p.line)
	}
	_, err := Open(deadline(t), fast(Config{Embedded: Embedded{Dir: dir}}), logger(t), nil)
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use by another process") {
		t.Fatalf("error = %v, want one that names %s", err, dir)
	}
	p.kill()
	b := open(t, Config{Embedded: Embedded{Dir: dir}})
	if _, err := Open(deadline(t), fast(Config{Embedded: Embedded{Dir: dir}}), logger(t), nil); err == nil {
		t.Error("the directory was opened twice in one process")
	}
	closeBus(t, b)
	open(t, Config{Embedded: Embedded{Dir: dir}})
}

func TestDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	open(t, Config{Embedded: Embedded{Dir: dir}})
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode = %v, want 0700", info.Mode().Perm())
	}
}

func TestEmbeddedServerDoesNotListen(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	if addr := b.server.srv.Addr(); addr != nil {
		t.Errorf("it listens on %v", addr)
	}
}

func TestStreamsAreUpgraded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Embedded: Embedded{Dir: dir}, EventsMaxAge: 48 * time.Hour})
	publish(t, b, event(t, "gitea/1", 1))
	closeBus(t, b)
	b = open(t, Config{Embedded: Embedded{Dir: dir}, EventsMaxAge: 24 * time.Hour, EventsMaxBytes: 64 << 20})
	info, err := b.streams[streamEvents].Info(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if info.Config.MaxAge != 24*time.Hour || info.Config.MaxBytes != 64<<20 || info.State.Msgs != 1 {
		t.Errorf("age %v, bytes %d, messages %d; want 24h, 64 MiB and the message that was there", info.Config.MaxAge, info.Config.MaxBytes, info.State.Msgs)
	}
}

func TestStreamsAreLeftAloneWhenTheyFit(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	for _, want := range streams(b.cfg) {
		have, err := b.js.Stream(deadline(t), want.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := upgradeDiff(have.CachedInfo().Config, want); diff != "" {
			t.Errorf("stream %s would be updated at every start:\n%s", want.Name, diff)
		}
	}
}

func TestConflictsAreRefused(t *testing.T) {
	t.Parallel()
	ours := func(name string) map[string]string { return map[string]string{metaLayout: "1", "stream": name} }
	tests := []struct {
		name   string
		before jetstream.StreamConfig
		cfg    Config
		want   []string
	}{
		{"a foreign stream", jetstream.StreamConfig{Name: streamEvents, Subjects: []string{"orders.>"}}, Config{}, []string{"EVENTS", "orders.>", "not made by signalbox", "account"}},
		{"foreign subjects", jetstream.StreamConfig{Name: "X", Subjects: []string{"work.>"}}, Config{}, []string{"WORK", "overlap", "account"}},
		{"another retention", jetstream.StreamConfig{Name: streamWork, Subjects: []string{"work.>"}, Metadata: ours("WORK")}, Config{}, []string{"WORK", "retention", "Limits", "WorkQueue"}},
		{
			"other partitions",
			jetstream.StreamConfig{Name: streamWork, Subjects: []string{"work.>"}, Retention: jetstream.WorkQueuePolicy, Metadata: map[string]string{metaLayout: "1", metaPartitions: "8"}},
			Config{Partitions: 16},
			[]string{"WORK", "number of partitions is 8, want 16", "set the configuration back"},
		},
		{"in memory", jetstream.StreamConfig{Name: streamDead, Subjects: []string{"dead.>"}, Storage: jetstream.MemoryStorage, Metadata: ours("DEAD")}, Config{}, []string{"DEAD", "storage", "Memory", "File"}},
		{"a newer layout", jetstream.StreamConfig{Name: streamDead, Subjects: []string{"dead.>"}, Metadata: map[string]string{metaLayout: "3"}}, Config{}, []string{"DEAD", `layout "3"`, "newer version"}},
		{"a foreign bucket", jetstream.StreamConfig{Name: "KV_facts", Subjects: []string{"$KV.facts.>"}}, Config{}, []string{"KV_facts", "not made by signalbox"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, ext := external(t, nil)
			js := connect(t, ext)
			made, err := js.CreateStream(deadline(t), tt.before)
			if err != nil {
				t.Fatal(err)
			}
			was := made.CachedInfo().Config
			tt.cfg.External = ext
			_, err = Open(deadline(t), fast(tt.cfg), logger(t), nil)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			after, err := made.Info(deadline(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(was, after.Config); diff != "" {
				t.Errorf("the refused stream was changed:\n%s", diff)
			}
		})
	}
}

func TestNothingRunsAfterClose(t *testing.T) {
	before := len(goroutines())
	reg := prometheus.NewRegistry()
	for range 2 { // metrics can be registered again
		b, err := Open(deadline(t), fast(Config{Embedded: Embedded{Dir: t.TempDir()}}), logger(t), reg)
		if err != nil {
			t.Fatal(err)
		}
		stopped := make(chan error, 3)
		go func() {
			stopped <- b.ConsumeEvents(context.Background(), "pull", []string{"event.>"}, nothing[events.Event])
		}()
		go func() { stopped <- b.facts.Consume(context.Background(), "fact", nothing[fact.Key]) }()
		go func() { stopped <- b.work.Consume(context.Background(), nothing[Item]) }()
		publish(t, b, event(t, "gitea/1", 1))
		if err := b.work.Soon(deadline(t), Item{Ref: ref(1), Kind: Full}); err != nil {
			t.Fatal(err)
		}
		closeBus(t, b)
		for range 3 {
			// One that had not begun before the close is told so.
			if err := <-stopped; err != nil && !errors.Is(err, errClosed) {
				t.Error("consumer ended with", err)
			}
		}
		if err := b.Publish(deadline(t), event(t, "gitea/2", 1)); err == nil {
			t.Error("published after close")
		}
		if err := b.ConsumeEvents(deadline(t), "pull", nil, nothing[events.Event]); err == nil {
			t.Error("consumed after close")
		}
		if b.Health(deadline(t)) == nil {
			t.Error("healthy after close")
		}
	}
	eventually(t, "every goroutine ends", func() bool { return len(goroutines()) <= before })
}

func TestHandlersGetTheirTimeAtClose(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	started, finish, acked := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	running(t, func(ctx context.Context) error {
		return b.ConsumeEvents(ctx, "pull", []string{"event.>"}, func(ctx context.Context, _ events.Event) error {
			close(started)
			<-finish
			acked <- ctx.Err()
			return nil
		})
	})
	publish(t, b, event(t, "gitea/1", 1))
	<-started
	time.AfterFunc(50*time.Millisecond, func() { close(finish) })
	closeBus(t, b)
	if err := <-acked; err != nil {
		t.Errorf("the handler's context ended early: %v", err)
	}
}

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	b := open(t, Config{})
	started, ended := make(chan struct{}), make(chan struct{})
	running(t, func(ctx context.Context) error {
		return b.ConsumeEvents(ctx, "pull", []string{"event.>"}, func(ctx context.Context, _ events.Event) error {
			close(started)
			<-ctx.Done()
			close(ended)
			return ctx.Err()
		})
	})
	publish(t, b, event(t, "gitea/1", 1))
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Close(ctx); err == nil || !strings.Contains(err.Error(), "still running") {
		t.Errorf("error = %v, want one that says that handlers were running", err)
	}
	<-ended
	b.closeErr = nil // for the cleanup
}

// treeSize is the size of all files below a directory.
func treeSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
