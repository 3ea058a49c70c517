package bus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/events"
)

// authority makes a certificate authority and a certificate of it for the
// loopback, and returns the files.
func authority(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	ca, cert, key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	issue := func(file string, template, parent *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) *x509.Certificate {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, "CERTIFICATE", der)
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	caKey, leafKey := newKey(), newKey()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example.org"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root = issue(ca, root, root, &caKey.PublicKey, caKey)
	issue(cert, &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, root, &leafKey.PublicKey, caKey)
	der, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, "PRIVATE KEY", der)
	return ca, cert, key
}

func write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestExternalServerWithTLS(t *testing.T) {
	t.Parallel()
	ca, cert, key := authority(t)
	_, ext := external(t, func(o *server.Options) {
		config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: ca, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		o.TLSConfig, o.TLS, o.TLSTimeout = config, true, 5
		o.TLSConfig.ClientAuth = tls.RequireAndVerifyClientCert
	})
	if _, err := Open(deadline(t), fast(Config{External: ext}), logger(t), nil); err == nil {
		t.Error("connected without a certificate and without trust")
	}
	ext.TLS = TLS{CA: ca}
	if _, err := Open(deadline(t), fast(Config{External: ext}), logger(t), nil); err == nil {
		t.Error("connected without a certificate")
	}
	ext.TLS = TLS{CA: ca, Cert: cert, Key: key}
	b := open(t, Config{External: ext})
	if state, err := b.nc.TLSConnectionState(); err != nil || state.Version < tls.VersionTLS12 {
		t.Errorf("TLS %x, %v", state.Version, err)
	}
	publish(t, b, event(t, "gitea/1", 1))
}

func TestExternalServerWithNKey(t *testing.T) {
	t.Parallel()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	_, ext := external(t, func(o *server.Options) {
		o.Username, o.Password = "", ""
		o.Nkeys = []*server.NkeyUser{{Nkey: public}}
	})
	ext.URLs[0] = strings.Replace(ext.URLs[0], "signalbox:hunter2@", "", 1)
	ext.NKeyFile = file
	publish(t, open(t, Config{External: ext}), event(t, "gitea/1", 1))
	ext.NKeyFile = filepath.Join(t.TempDir(), "none")
	if _, err := Open(deadline(t), fast(Config{External: ext}), logger(t), nil); err == nil || !strings.Contains(err.Error(), ext.NKeyFile) {
		t.Errorf("error = %v, want one that names the file", err)
	}
}

func TestExternalServerThatWillNotDo(t *testing.T) {
	t.Parallel()
	t.Run("another password", func(t *testing.T) {
		_, ext := external(t, nil)
		ext.URLs[0] = strings.Replace(ext.URLs[0], "hunter2", "hunter3", 1)
		refusedBecause(t, ext, "check the credentials")
	})
	t.Run("nobody there", func(t *testing.T) {
		refusedBecause(t, External{URLs: []string{"nats://signalbox:hunter2@127.0.0.1:1"}}, "127.0.0.1:1", "is it running")
	})
	t.Run("no JetStream", func(t *testing.T) {
		_, ext := external(t, func(o *server.Options) { o.JetStream = false })
		refusedBecause(t, ext, "without JetStream")
	})
	t.Run("not enabled for the account", func(t *testing.T) {
		_, ext := external(t, func(o *server.Options) {
			account := server.NewAccount("plain")
			o.Accounts = []*server.Account{account}
			o.Users = []*server.User{{Username: "signalbox", Password: "hunter2", Account: account}}
			o.Username, o.Password = "", ""
		})
		refusedBecause(t, ext, "not enabled for this account")
	})
	t.Run("an old version", func(t *testing.T) {
		// A server without JetStream, and a client that answers in its place.
		_, ext := external(t, func(o *server.Options) { o.JetStream = false })
		nc, err := connectExternal(ext, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Subscribe("$JS.API.INFO", func(m *nats.Msg) {
			if err := m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.account_info_response","api":{"level":1}}`)); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		refusedBecause(t, ext, "cannot schedule messages", "2.12")
	})
	t.Run("more replicas than servers", func(t *testing.T) {
		_, ext := external(t, nil)
		ext.Replicas = 3
		refusedBecause(t, ext, "EVENTS", "cluster")
	})
}

func refusedBecause(t *testing.T, ext External, reasons ...string) {
	t.Helper()
	_, err := Open(deadline(t), fast(Config{External: ext}), logger(t), nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, reason := range reasons {
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("error = %q, want one that says %q", err, reason)
		}
	}
	for _, password := range []string{"hunter2", "hunter3"} {
		if strings.Contains(err.Error(), password) {
			t.Errorf("error tells the password: %q", err)
		}
	}
}

// restart ends a server and starts it again on the same port and directory.
func restart(t *testing.T, s *server.Server, dir string) func() {
	t.Helper()
	addr := s.Addr().(*net.TCPAddr)
	s.Shutdown()
	s.WaitForShutdown()
	return func() {
		external(t, func(o *server.Options) { o.Port, o.StoreDir = addr.Port, dir })
	}
}

func TestServerThatIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, ext := external(t, func(o *server.Options) { o.StoreDir = dir })
	b := open(t, Config{External: ext, timing: timing{heartbeat: 500 * time.Millisecond}})
	var seen record[string]
	var work record[Item]
	consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { seen.add(e.ID); return nil })
	consumeWork(t, b, func(_ context.Context, i Item) error { work.add(i); return nil })
	publish(t, b, event(t, "gitea/1", 1))
	putFact(t, b.facts, someFact("apps", "1", "one"))
	eventually(t, "the first is handled", func() bool { return seen.len() == 1 })

	back := restart(t, s, dir)
	eventually(t, "it is noticed", func() bool { return b.Health(deadline(t)) != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.Publish(ctx, event(t, "gitea/2", 1)); err == nil {
		t.Error("published into nothing")
	}
	back()
	eventually(t, "it is healthy again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return b.Health(ctx) == nil
	})
	publish(t, b, event(t, "gitea/2", 1)) // the one that failed, once more
	publish(t, b, event(t, "gitea/3", 1))
	soon(t, b, Item{Ref: ref(1), Kind: Full})
	putFact(t, b.facts, someFact("apps", "2", "two"))
	syncBucket(t, b.facts)
	if v, _ := b.facts.Lookup(someFact("apps", "", "").Key); v.Flux.Applied != "two" {
		t.Errorf("the fact is %+v", v)
	}
	eventually(t, "all is handled", func() bool { return seen.len() >= 3 && work.len() == 1 })
	settledEvents(t, b, "pull")
	if got := strings.Join(slices.Sorted(slices.Values(seen.all())), " "); got != "gitea/1 gitea/2 gitea/3" {
		t.Errorf("handled %q, want each once", got)
	}
	if n := counted(t, b.metrics.reconnects); n != 1 {
		t.Errorf("%v reconnects counted, want 1", n)
	}
}

// TestHandlerEndsBeforeAnotherMayTakeOver cuts a replica off while work is in
// its hands.
func TestHandlerEndsBeforeAnotherMayTakeOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, ext := external(t, func(o *server.Options) { o.StoreDir = dir })
	const ackWait = 2 * time.Second
	b := open(t, Config{External: ext, timing: timing{ackWait: ackWait}})
	started, ended := make(chan struct{}), make(chan error, 10)
	var calls record[Item]
	consumeWork(t, b, func(ctx context.Context, i Item) error {
		if calls.add(i) > 1 {
			return nil
		}
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	soon(t, b, Item{Ref: ref(1), Kind: Full})
	<-started
	back := restart(t, s, dir)
	cut := time.Now()
	if err := <-ended; !errors.Is(err, errLeaseLost) {
		t.Errorf("the handler ended because of %v", err)
	}
	if took := time.Since(cut); took > ackWait {
		t.Errorf("it ended after %v, another may take over after %v", took, ackWait)
	}
	back()
	eventually(t, "the work is done", func() bool { return calls.len() == 2 && queued(t, b) == 0 })
	if n := calls.all()[1].Attempt; n != 0 {
		t.Errorf("what was taken away counts as attempt %d", n)
	}
}

// TestHandlerEndsWhenItsMessageIsAnothers: the connection is fine, but whoever delivers the message again
// does not hear of it.
func TestHandlerEndsWhenItsMessageIsAnothers(t *testing.T) {
	t.Parallel()
	_, ext := external(t, nil)
	const ackWait = 2 * time.Second
	b := open(t, Config{External: ext, Partitions: 1, timing: timing{ackWait: ackWait}})
	started, ended := make(chan struct{}), make(chan error, 1)
	var calls record[Item]
	consumeWork(t, b, func(ctx context.Context, i Item) error {
		if calls.add(i) > 1 {
			return nil
		}
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	soon(t, b, Item{Ref: ref(1), Kind: Full})
	<-started
	if err := b.js.DeleteConsumer(deadline(t), streamWork, "work-0"); err != nil {
		t.Fatal(err)
	}
	gone := time.Now()
	if err := <-ended; !errors.Is(err, errLeaseLost) {
		t.Errorf("the handler ended because of %v", err)
	}
	if took := time.Since(gone); took > ackWait {
		t.Errorf("it ended after %s, another may take over after %s", took, ackWait)
	}
	eventually(t, "the work is done", func() bool { return calls.len() == 2 })
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	b, err := Open(deadline(t), fast(Config{Embedded: Embedded{Dir: t.TempDir()}}), logger(t), reg)
	if err != nil {
		t.Fatal(err)
	}
	defer closeBus(t, b)
	if _, err := Open(deadline(t), fast(Config{Embedded: Embedded{Dir: t.TempDir()}}), logger(t), reg); err == nil {
		t.Error("two sets of metrics in one registry")
	}
	var seen record[string]
	stop := consumeEvents(t, b, "pull", func(_ context.Context, e events.Event) error { seen.add(e.ID); return nil })
	publish(t, b, event(t, "gitea/1", 1))
	eventually(t, "it is handled", func() bool { return seen.len() == 1 })
	stop()
	publish(t, b, event(t, "gitea/2", 1))
	got := map[string]float64{}
	eventually(t, "one message waits or is unacknowledged", func() bool {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		clear(got)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetName() + "=" + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		pending, hasPending := got["signalbox_bus_consumer_pending consumer=pull"]
		unacked, hasUnacked := got["signalbox_bus_consumer_unacked consumer=pull"]
		// It is unacknowledged if the consumer had asked for it before it ended. The
		// server counts a moment after it has acknowledged the publish.
		return hasPending && hasUnacked && pending+unacked == 1
	})
	for name, want := range map[string]float64{
		"signalbox_bus_published_total result=ok stream=EVENTS": 2,
		"signalbox_bus_handled_total consumer=pull result=ok":   1,
		"signalbox_bus_handler_seconds consumer=pull":           1,
		"signalbox_bus_connected":                               1,
		"signalbox_bus_reconnects_total":                        0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v, %v; want %v", name, v, ok, want)
		}
	}
}
