package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/bus"
	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
	"signalbox/internal/work"
)

const benchSecret = "a secret of the benchmark"

// intakeBound is the least rate of the intake, as a share of the bare handler's.
const intakeBound = 0.8

// BenchmarkIntake compares the intake of webhooks (verify, decode, durable
// publish) with a bare handler that checks the signature and publishes the same
// body with the same durability. The two run in turns, so that both see the same
// machine. An operation is one delivery to each.
func BenchmarkIntake(b *testing.B) {
	_, full := fullIntake(b)
	bare := bareIntake(b)
	const round = 64
	var fullTimes, bareTimes []time.Duration
	var fullTotal, bareTotal time.Duration
	for b.Loop() {
		for _, side := range []struct {
			url   string
			total *time.Duration
			times *[]time.Duration
		}{{full, &fullTotal, &fullTimes}, {bare, &bareTotal, &bareTimes}} {
			start := time.Now()
			*side.times = append(*side.times, deliver(b, side.url, round)...)
			*side.total += time.Since(start)
		}
	}
	ratio := float64(bareTotal) / float64(fullTotal)
	b.ReportMetric(ratio, "rate/bare")
	b.ReportMetric(float64(len(fullTimes))/fullTotal.Seconds(), "deliveries/s")
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(percentile(fullTimes, q).Microseconds()), fmt.Sprintf("p%d-µs", q))
		b.ReportMetric(float64(percentile(bareTimes, q).Microseconds()), fmt.Sprintf("bare-p%d-µs", q))
	}
	if b.N > 5 && ratio < intakeBound {
		b.Errorf("the intake has %.2f of the rate of the bare handler, the bound is %.1f", ratio, intakeBound)
	}
}

func percentile(times []time.Duration, q int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*q/100, len(sorted)-1)]
}

var deliveries atomic.Int64

// deliver sends n webhooks, eight at a time, and returns how long each took.
func deliver(b *testing.B, url string, n int) []time.Duration {
	times := make([]time.Duration, n)
	var group sync.WaitGroup
	next := make(chan int)
	for range 8 {
		group.Go(func() {
			for i := range next {
				start := time.Now()
				if err := post(b.Context(), url); err != nil {
					b.Error(err)
				}
				times[i] = time.Since(start)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	return times
}

// hookBody is as large as what Gitea sends for a pull request.
func hookBody(n int64) []byte {
	return fmt.Appendf(nil, `{"action":"opened","number":%d,"pull_request":{"id":1,"number":%d,"title":"t","state":"open","body":%q,
		"head":{"ref":"b","sha":"%040d"},"base":{"ref":"main","sha":"%040d"}},
		"repository":{"id":7,"name":"home-gitops","full_name":"ops/home-gitops","owner":{"id":1,"login":"ops"}},
		"sender":{"id":3,"login":"bob"}}`, n, n, bytes.Repeat([]byte("x"), 10_000), n, n)
}

func post(ctx context.Context, url string) error {
	n := deliveries.Add(1)
	body := hookBody(n)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Gitea-Event", "pull_request")
	req.Header.Set("X-Gitea-Event-Type", "pull_request")
	req.Header.Set("X-Gitea-Delivery", fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
	req.Header.Set("X-Gitea-Signature", sign(body))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("delivery %d: %s", n, resp.Status)
	}
	return nil
}

func sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(benchSecret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// fullIntake is the intake of signalbox on a bus that forces every event to
// disk before it acknowledges.
func fullIntake(b *testing.B) (*bus.Bus, string) {
	b.Helper()
	events, err := bus.Open(b.Context(), bus.Config{Embedded: bus.Embedded{Dir: b.TempDir()}}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := events.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return events, listen(b, gitea.NewIntake(gitea.IntakeConfig{
		Secrets: []secret.Value{secret.New(benchSecret)}, Publish: events.Publish,
	}, nil, nil))
}

// bareIntake is the least that does the same.
func bareIntake(b *testing.B) string {
	s, err := server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true, JetStream: true, StoreDir: b.TempDir(), SyncAlways: true, MaxPayload: 8 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	s.Start()
	b.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "BARE", Subjects: []string{"bare"}}); err != nil {
		b.Fatal(err)
	}
	return listen(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !hmac.Equal([]byte(sign(body)), []byte(r.Header.Get("X-Gitea-Signature"))) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if _, err := js.Publish(r.Context(), "bare", body, jetstream.WithMsgID(r.Header.Get("X-Gitea-Delivery"))); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
}

func listen(b *testing.B, h http.Handler) string {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	return s.URL
}

// BenchmarkFactWakes changes one fact that 5 pull requests read, among 10,000
// facts and more and more open pull requests: the cost must not grow with them.
func BenchmarkFactWakes(b *testing.B) {
	for _, open := range []int{20, 2_000} {
		b.Run(fmt.Sprintf("pulls=%d", open), func(b *testing.B) {
			index := handlers.NewIndex()
			for i := range open {
				reads := []fact.Key{fact.HeartbeatKey("prod"), fact.ClusterKey("prod"), kustomization(10 + i%9_990)}
				if i < 5 {
					reads = append(reads, kustomization(0))
				}
				index.Change("", nil, &handlers.Record{
					Inputs:  handlers.Inputs{Snapshot: pull.Snapshot{Pull: pull.Pull{Repo: pull.Repo{ID: 7}, Number: int64(i + 1)}}},
					Verdict: policy.Verdict{Reads: reads},
				})
			}
			queue := &countingQueue{}
			h := handlers.Facts{Queue: queue, Records: nothingStored{}, Index: index}
			for b.Loop() {
				queue.n = 0
				if err := h.Handle(b.Context(), kustomization(0)); err != nil {
					b.Fatal(err)
				}
				if queue.n != 5 {
					b.Fatalf("%d evaluations, want 5", queue.n)
				}
			}
		})
	}
}

func kustomization(i int) fact.Key {
	return fact.Kube("prod", "Kustomization", "flux-system", fmt.Sprintf("k%d", i))
}

// countingQueue counts what is asked for.
type countingQueue struct {
	handlers.Queue
	n int
}

func (q *countingQueue) Soon(context.Context, work.Item) error {
	q.n++
	return nil
}

// nothingStored has a view that is always current.
type nothingStored struct{ handlers.Records }

func (nothingStored) Sync(context.Context) error { return nil }
