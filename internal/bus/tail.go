package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"signalbox/internal/recording"
	"signalbox/internal/trace"
)

// bucketPulls holds the records of pull requests.
const bucketPulls = "pulls"

// Tail says what [Reader.Tail] reads.
type Tail struct {
	// Kinds are those that are wanted, at least one.
	Kinds []recording.Kind
	// Since leaves out older events and dead letters. Of the others all that is there
	// is told, because it is true.
	Since time.Time
	// Follow goes on with what is stored from now on.
	Follow bool
}

// Tail tells what is on the bus: all that is there, in the order in which it was
// stored, then a line of kind [recording.Now], and then, if it is to follow, what is
// stored until ctx ends. Of two streams the order then is nearly that of the clock.
//
// A bucket has the last value of each key only. Work is looked at four times a second,
// because nobody but its one handler may take it from its stream: what comes and goes
// within that time may not be seen. What people said in chats is left out.
//
// Tail returns the error of yield if it has one, and nil when ctx ends.
func (r *Reader) Tail(ctx context.Context, t Tail, yield func(recording.Line) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var feeds []*tailFeed
	for _, kind := range t.Kinds {
		f := &tailFeed{r: r, kind: kind, tail: t, lines: make(chan recording.Line, 64), there: make(chan struct{})}
		feeds = append(feeds, f)
		group.Go(func() error {
			defer close(f.lines)
			if err := f.run(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("read %s of the bus: %w", kind, err)
			}
			return nil
		})
	}
	group.Go(func() error { return tellAll(ctx, feeds, t.Follow, yield) })
	if err := group.Wait(); !errors.Is(err, errTailEnds) {
		return err
	}
	return nil
}

// errTailEnds ends the feeds after the last line was told.
var errTailEnds = errors.New("all is told")

// tailFeed reads the lines of one kind. It sends those that are there, closes there,
// and goes on if it is to follow.
type tailFeed struct {
	r     *Reader
	kind  recording.Kind
	tail  Tail
	lines chan recording.Line
	there chan struct{}
}

// tellAll tells the lines of all feeds: first those that are there, by their time.
func tellAll(ctx context.Context, feeds []*tailFeed, follow bool, yield func(recording.Line) error) error {
	heads := make([]*recording.Line, len(feeds))
	for {
		oldest := -1
		for i, f := range feeds {
			if heads[i] == nil {
				heads[i] = f.head(ctx)
			}
			if heads[i] != nil && (oldest < 0 || heads[i].At.Before(heads[oldest].At)) {
				oldest = i
			}
		}
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if oldest < 0 {
			break
		}
		if err := yield(*heads[oldest]); err != nil {
			return err
		}
		heads[oldest] = nil
	}
	if err := yield(recording.Line{Kind: recording.Now, At: time.Now().UTC()}); err != nil {
		return err
	}
	if !follow {
		return errTailEnds
	}
	return tellLive(ctx, feeds, yield)
}

// head returns the next line that is there, or nil after the last.
func (f *tailFeed) head(ctx context.Context) *recording.Line {
	select {
	case l, ok := <-f.lines:
		if ok {
			return &l
		}
		return nil
	default:
	}
	select {
	case l, ok := <-f.lines:
		if ok {
			return &l
		}
	case <-f.there:
		// The last one may have been sent meanwhile.
		select {
		case l, ok := <-f.lines:
			if ok {
				return &l
			}
		default:
		}
	case <-ctx.Done():
	}
	return nil
}

// tellLive tells lines as they come.
func tellLive(ctx context.Context, feeds []*tailFeed, yield func(recording.Line) error) error {
	all := make(chan recording.Line)
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range feeds {
		group.Go(func() error {
			for {
				select {
				case l, ok := <-f.lines:
					if !ok {
						return nil
					}
					select {
					case all <- l:
					case <-ctx.Done():
						return nil
					}
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	group.Go(func() error {
		for {
			select {
			case l := <-all:
				if err := yield(l); err != nil {
					return err
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

func (f *tailFeed) send(ctx context.Context, l recording.Line) bool {
	select {
	case f.lines <- l:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *tailFeed) run(ctx context.Context) error {
	switch f.kind {
	case recording.Event:
		return f.stream(ctx, streamEvents, "", f.since())
	case recording.Dead:
		return f.stream(ctx, streamDead, "", f.since())
	case recording.Work:
		return f.work(ctx)
	case recording.Fact:
		return f.bucket(ctx, bucketFacts)
	case recording.Pull:
		return f.bucket(ctx, bucketPulls)
	case recording.Decision:
		return f.bucket(ctx, bucketDecisions)
	default:
		return fmt.Errorf("the kind %q is not known", f.kind)
	}
}

func (f *tailFeed) since() jetstream.ConsumerConfig {
	if f.tail.Since.IsZero() {
		return jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}
	}
	return jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &f.tail.Since}
}

func (f *tailFeed) bucket(ctx context.Context, name string) error {
	return f.stream(ctx, "KV_"+name, bucketPrefix(name), jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: bucketPrefix(name) + ">",
	})
}

// stream reads a stream with a consumer that takes nothing away from anybody.
func (f *tailFeed) stream(ctx context.Context, name, prefix string, cfg jetstream.ConsumerConfig) error {
	s, err := f.r.b.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		close(f.there)
		return nil
	}
	if err != nil {
		return err
	}
	cfg.AckPolicy, cfg.MemoryStorage, cfg.Replicas = jetstream.AckNonePolicy, true, 1
	cfg.InactiveThreshold = time.Minute
	cons, err := s.CreateConsumer(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		// The server would forget it by itself after a while.
		_ = f.r.b.js.DeleteConsumer(end, name, cons.CachedInfo().Name)
	}()
	// What is there is what was when the consumer was made; some of it may be replaced
	// before it is read.
	left := cons.CachedInfo().NumPending
	reached := left == 0
	if reached {
		close(f.there)
		if !f.tail.Follow {
			return nil
		}
	}
	it, err := cons.Messages(jetstream.PullHeartbeat(f.r.b.cfg.timing.heartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return err
	}
	defer it.Stop()
	for next := uint64(1); ; next++ {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		md, err := msg.Metadata()
		if err != nil {
			return err
		}
		if md.Sequence.Consumer != next {
			return errGap
		}
		l := f.line(msg.Subject(), prefix, msg.Headers(), msg.Data())
		l.Seq, l.At = md.Sequence.Stream, md.Timestamp.UTC()
		if !f.send(ctx, l) {
			return nil
		}
		if !reached && (next >= left || md.NumPending == 0) {
			reached = true
			close(f.there)
			if !f.tail.Follow {
				return nil
			}
		}
	}
}

// workEvery is how often work is looked at.
const workEvery = 250 * time.Millisecond

// work reads the work that is there, and goes on to look for more.
func (f *tailFeed) work(ctx context.Context) error {
	s, err := f.r.b.js.Stream(ctx, streamWork)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		close(f.there)
		return nil
	}
	if err != nil {
		return err
	}
	tick := time.NewTicker(workEvery)
	defer tick.Stop()
	for seq, first := uint64(1), true; ; {
		msg, err := s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(workRoot+".>"))
		switch {
		case err == nil:
			l := f.line(msg.Subject, "", msg.Header, msg.Data)
			l.Seq, l.At = msg.Sequence, msg.Time.UTC()
			if !f.send(ctx, l) {
				return nil
			}
			seq = msg.Sequence + 1
			continue
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return err
		}
		if first {
			first = false
			close(f.there)
		}
		if !f.tail.Follow {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// line makes a line of a message, as yet without its place and time. What cannot be
// read is told as such: whoever looks at the bus may be looking for just that.
func (f *tailFeed) line(subject, prefix string, header nats.Header, data []byte) recording.Line {
	origin := trace.Read(header.Get)
	l := recording.Line{Kind: f.kind, Key: strings.TrimPrefix(subject, prefix), Event: origin.Event, Trace: origin.Parent}
	if header.Get(headerOperation) != "" {
		l.Deleted = true
		return l
	}
	var err error
	switch f.kind {
	case recording.Dead:
		tries, _ := strconv.Atoi(header.Get(headerDeliveries)) // absent counts as none
		l.Value, err = json.Marshal(recording.Letter{
			Stream: header.Get(headerStream), Subject: header.Get(headerSubject), Consumer: header.Get(headerConsumer),
			Reason: header.Get(headerReason), Deliveries: tries,
		})
	case recording.Event:
		l.Event = "" // It is the event.
		l.Value, err = recording.WithoutSpeech(data)
	default:
		if l.Value = data; !json.Valid(data) {
			err = errors.New("it is not JSON")
		}
	}
	if err != nil {
		l.Value = recording.Unreadable(err)
	}
	return l
}
