package bus

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/events"
	"signalbox/internal/pull"
)

// roleEnv makes the test binary play another process of signalbox.
const roleEnv = "SIGNALBOX_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := playRole(role, os.Args[len(os.Args)-1]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is another process, which prints one line when it has done its part.
type process struct {
	cmd  *exec.Cmd
	line string
}

// startProcess runs a role and waits for its line.
func startProcess(t *testing.T, role, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd}
	t.Cleanup(func() { p.kill() })
	buf := make([]byte, 1000)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatalf("process said nothing: %v", err)
	}
	p.line = strings.TrimSpace(string(buf[:n]))
	return p
}

// kill ends the process as a power switch would.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may have ended by itself
		_ = p.cmd.Wait()         // its error is that it was killed
	}
}

// fast are the times of tests: no waiting longer than needed to tell one thing
// from another.
func fast(cfg Config) Config {
	if cfg.embedded() && cfg.Embedded.SyncInterval == 0 {
		cfg.Embedded.SyncInterval = time.Minute
	}
	if cfg.Debounce == 0 {
		cfg.Debounce, cfg.MaxWait = 20*time.Millisecond, 200*time.Millisecond
	}
	if cfg.timing.retryMin == 0 {
		cfg.timing.retryMin, cfg.timing.retryMax = 10*time.Millisecond, 80*time.Millisecond
	}
	return cfg
}

// open opens a bus and closes it when the test ends.
func open(t testing.TB, cfg Config) *Bus {
	t.Helper()
	if cfg.embedded() && cfg.Embedded.Dir == "" {
		cfg.Embedded.Dir = t.TempDir()
	}
	b, err := Open(deadline(t), fast(cfg), logger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBus(t, b) })
	return b
}

func closeBus(t testing.TB, b *Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error("close:", err)
	}
}

func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// deadline is how long anything in a test may take.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// external starts a NATS server that listens on the loopback, and returns how
// to reach it.
func external(t testing.TB, change func(*server.Options)) (*server.Server, External) {
	t.Helper()
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), MaxPayload: maxPayload,
		Username: "signalbox", Password: "hunter2",
	}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the external server did not start")
	}
	return s, External{URLs: []string{fmt.Sprintf("nats://signalbox:hunter2@%s", s.Addr())}}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := deadline(t)
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// running starts a consumer in the background and returns how to end it and
// wait for it. It is ended with the test in any case.
func running(t testing.TB, consume func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- consume(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("consumer ended with", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// log gathers what handlers saw, in order.
type record[T any] struct {
	mu   sync.Mutex
	list []T
	at   []time.Time
}

func (r *record[T]) add(v T) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, v)
	r.at = append(r.at, time.Now())
	return len(r.list)
}

func (r *record[T]) all() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]T(nil), r.list...)
}

func (r *record[T]) times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.at...)
}

func (r *record[T]) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// event makes an event about a pull request.
func event(t testing.TB, id string, number int64) events.Event {
	t.Helper()
	e, err := events.New(id, "gitea", time.Now(), events.PullChanged{Repo: events.Repo{ID: 7, Owner: "ops", Name: "home"}, Number: number})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func publish(t testing.TB, b *Bus, e events.Event) {
	t.Helper()
	if err := b.Publish(deadline(t), e); err != nil {
		t.Fatal(err)
	}
}

func ref(number int64) pull.Ref { return pull.Ref{RepoID: 7, Number: number} }

// goroutines returns the stacks of all goroutines of NATS and of this package.
func goroutines() []string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for _, g := range strings.Split(string(buf), "\n\n")[1:] {
		if strings.Contains(g, "nats-io") || strings.Contains(g, "internal/bus.") && !strings.Contains(g, "testing.tRunner(") {
			out = append(out, g)
		}
	}
	return out
}

func nothing[T any](context.Context, T) error { return nil }

// connect is a client of its own on an external server.
func connect(t testing.TB, ext External) jetstream.JetStream {
	t.Helper()
	nc, err := connectExternal(ext, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// upgradeDiff shows what ensureStream would change.
func upgradeDiff(have, want jetstream.StreamConfig) string {
	return cmp.Diff(have, upgrade(have, completed(want, ""), 0))
}

// counted reads one counter.
func counted(t testing.TB, c prometheus.Collector) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families, %v", len(families), err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

func msgFor(subject, data string) *nats.Msg { return &nats.Msg{Subject: subject, Data: []byte(data)} }

func mustStream(t testing.TB, js jetstream.JetStream, name string) jetstream.Stream {
	t.Helper()
	s, err := js.Stream(deadline(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
