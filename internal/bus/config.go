package bus

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"signalbox/internal/trace"
)

// maxPayload is the size in bytes of the largest message that the embedded
// server takes. It is the most that NATS advises.
const maxPayload = 8 << 20

// headroom is what a message may grow by on its way, above all by the headers
// of a dead letter. So the largest event is smaller by that.
const headroom = 64 << 10

// Config says where the bus lives and how patient it is. Zero values stand for
// the defaults that the fields name.
type Config struct {
	// Embedded is used when External names no server.
	Embedded Embedded
	External External

	// Version is that of the program, with which streams are marked, or empty.
	Version string

	// Partitions is how many pull requests can be worked on at once, over all
	// replicas; 8 by default. It is fixed when the stream is made: a different
	// number later is refused, because work of one pull request could then be
	// in two partitions.
	Partitions int
	// Debounce is how long work waits for more of its kind, 300ms by default;
	// MaxWait is how long in total under a steady stream, 2s by default.
	Debounce time.Duration
	MaxWait  time.Duration

	// EventsMaxAge and EventsMaxBytes limit the stream of events: 72h and
	// 512 MiB by default. DuplicateWindow is how long the id of an event is
	// remembered: 1h by default, at most EventsMaxAge.
	EventsMaxAge    time.Duration
	EventsMaxBytes  int64
	DuplicateWindow time.Duration

	// MaxDeliveries is how often an event or a fact is tried before it is put
	// aside as a dead letter: 20 by default, which takes about an hour.
	MaxDeliveries int
	// Workers is how many events each consumer handles at once in one replica:
	// 4 by default, so that one slow call does not hold up every pull request.
	Workers int

	// Tracer makes spans of what is published and handled; nil for none.
	Tracer *trace.Tracer

	timing timing
}

// Embedded configures the server inside this process.
type Embedded struct {
	// Dir holds the streams. It is created if missing, and locked.
	Dir string
	// SyncInterval is how often what was written is forced to disk. Zero
	// forces it before each acknowledgement, so that an acknowledged event
	// survives a power cut. A killed process loses nothing either way.
	SyncInterval time.Duration
}

// External names an external NATS server or cluster with JetStream.
type External struct {
	// URLs are the servers of one cluster.
	URLs []string
	// CredentialsFile is a NATS credentials file; NKeyFile a seed file. At most
	// one is set; both are empty where TLS or the URL identifies signalbox.
	CredentialsFile string
	NKeyFile        string
	TLS             TLS
	// Replicas is how many servers hold each stream. Zero makes new streams
	// with one and leaves existing ones as they are.
	Replicas int
}

// TLS names PEM files. CA is needed where the system does not trust the
// server's certificate; Cert and Key where the server asks for one.
type TLS struct {
	CA, Cert, Key string
}

// timing holds the durations that only tests change.
type timing struct {
	// ackWait is how long a message may stay without a sign of life before it
	// is delivered to somebody else.
	ackWait time.Duration
	// retryMin and retryMax bound the growing delay.
	retryMin, retryMax time.Duration
	// heartbeat is how often the server shows on an idle pull that it is there.
	heartbeat time.Duration
	// backstop is how long after the latest moment at which this process would
	// start debounced work the server does it.
	backstop time.Duration
	// moveAfter is how long a server may be silent about streams before another
	// one is tried: longer than the servers need to choose a leader.
	moveAfter time.Duration
}

// embedded reports whether the server runs inside this process. Then nobody
// else can write to the bus.
func (c Config) embedded() bool { return len(c.External.URLs) == 0 }

func (c Config) withDefaults() Config {
	c.Partitions = cmp.Or(c.Partitions, 8)
	c.Debounce = cmp.Or(c.Debounce, 300*time.Millisecond)
	c.MaxWait = cmp.Or(c.MaxWait, 2*time.Second)
	c.EventsMaxAge = cmp.Or(c.EventsMaxAge, 72*time.Hour)
	c.EventsMaxBytes = cmp.Or(c.EventsMaxBytes, 512<<20)
	c.DuplicateWindow = cmp.Or(c.DuplicateWindow, time.Hour)
	c.MaxDeliveries = cmp.Or(c.MaxDeliveries, 20)
	c.Workers = cmp.Or(c.Workers, 4)
	// In one process a message without a sign of life is one that was in hand
	// when the process was killed: there is no network to be patient with.
	ackWait := 15 * time.Second
	if c.embedded() {
		ackWait = 3 * time.Second
	}
	t := &c.timing
	t.ackWait = cmp.Or(t.ackWait, ackWait)
	t.retryMin = cmp.Or(t.retryMin, time.Second)
	t.retryMax = cmp.Or(t.retryMax, 5*time.Minute)
	t.heartbeat = cmp.Or(t.heartbeat, 2*time.Second)
	t.backstop = cmp.Or(t.backstop, time.Second)
	t.moveAfter = cmp.Or(t.moveAfter, 10*time.Second)
	return c
}

// check reports everything that is wrong with a configuration that has its
// defaults.
func (c Config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.embedded() && c.Embedded.Dir == "" {
		bad("the embedded bus needs a directory, or give the URL of an external NATS server")
	}
	if c.Embedded.SyncInterval < 0 {
		bad("sync interval %s is negative; 0 syncs always", c.Embedded.SyncInterval)
	}
	for _, s := range c.External.URLs {
		// The text may hold a password, so an error must not repeat it.
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			bad("a NATS server URL is not of the form nats://host:port")
		}
	}
	if c.External.CredentialsFile != "" && c.External.NKeyFile != "" {
		bad("give a credentials file or an nkey file, not both")
	}
	if (c.External.TLS.Cert == "") != (c.External.TLS.Key == "") {
		bad("a TLS certificate and its key go together")
	}
	if c.External.Replicas < 0 || c.External.Replicas > 5 {
		bad("replicas = %d, want 1 to 5", c.External.Replicas)
	}
	if c.Partitions < 1 || c.Partitions > 256 {
		bad("partitions = %d, want 1 to 256", c.Partitions)
	}
	if c.Debounce < 0 || c.MaxWait < c.Debounce {
		bad("debounce %s must be positive and not longer than max wait %s", c.Debounce, c.MaxWait)
	}
	if c.DuplicateWindow < 0 || c.EventsMaxAge < c.DuplicateWindow {
		bad("duplicate window %s must be positive and not longer than the age limit of events %s", c.DuplicateWindow, c.EventsMaxAge)
	}
	if c.EventsMaxBytes < 2*maxPayload {
		bad("size limit of events is %d bytes, want at least %d", c.EventsMaxBytes, 2*maxPayload)
	}
	if c.MaxDeliveries < 1 || c.Workers < 1 {
		bad("max deliveries %d and workers %d must be at least 1", c.MaxDeliveries, c.Workers)
	}
	return errors.Join(errs...)
}
