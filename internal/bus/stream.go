package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"signalbox/internal/events"
)

// Names of the streams.
const (
	streamEvents = "EVENTS"
	streamWork   = "WORK"
	streamDead   = "DEAD"
)

// Keys of the metadata that mark a stream as made by signalbox.
const (
	metaLayout     = "signalbox.layout"
	metaPartitions = "signalbox.partitions"
	// metaVersion is the version of signalbox that opened the stream last.
	metaVersion = "signalbox.version"
	// metaBegun is when the ledger was begun, where that was before its stream was
	// made: it was restored.
	metaBegun = "signalbox.begun"
	// metaRestoring is there while a stream is being restored, and says since when.
	metaRestoring = "signalbox.restoring"
)

// LayoutVersion is the layout of the store that this signalbox makes, and the
// newest that it knows. It changes when streams are laid out, or hold something,
// in a way that an older signalbox would misread:
//
//	1  the first
//	2  what is said in chats may have a picture, and is kept after it was said
//	   until that is shown; records have the history of their verdict
const LayoutVersion = 2

// apiLevel is the JetStream API level that has scheduled messages
// (nats-server 2.12).
const apiLevel = 2

// streams describes the streams that every bus has. To add one, add it here.
func streams(cfg Config) []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		{
			Name:        streamEvents,
			Description: "what happened",
			Subjects:    []string{events.SubjectRoot + ".>"},
			// A limits stream remembers the ids of its messages over a restart; a
			// work queue forgets those of the acknowledged ones.
			Retention:  jetstream.LimitsPolicy,
			MaxAge:     cfg.EventsMaxAge,
			MaxBytes:   cfg.EventsMaxBytes,
			Duplicates: cfg.DuplicateWindow,
		},
		{
			Name:              streamWork,
			Description:       "pull requests that must be looked at again",
			Subjects:          []string{workRoot + ".>"},
			Retention:         jetstream.WorkQueuePolicy,
			Duplicates:        2 * time.Minute,
			AllowDirect:       true,
			AllowRollup:       true,
			AllowMsgSchedules: true,
			Metadata:          map[string]string{metaPartitions: strconv.Itoa(cfg.Partitions)},
		},
		{
			Name:        streamDead,
			Description: "what could not be handled, with the reason",
			Subjects:    []string{deadRoot + ".>"},
			Retention:   jetstream.LimitsPolicy,
			MaxAge:      90 * 24 * time.Hour,
			MaxBytes:    256 << 20,
			Duplicates:  time.Hour,
		},
	}
}

// bucketStream describes the stream of a key-value bucket as NATS lays it out
// (ADR-8), so that its tools read it too.
func bucketStream(name string, maxAge time.Duration) jetstream.StreamConfig {
	duplicates := 2 * time.Minute
	if maxAge > 0 {
		duplicates = min(duplicates, maxAge)
	}
	return jetstream.StreamConfig{
		Name:              "KV_" + name,
		Subjects:          []string{bucketPrefix(name) + ">"},
		Retention:         jetstream.LimitsPolicy,
		MaxMsgsPerSubject: 1,
		MaxAge:            maxAge,
		Discard:           jetstream.DiscardNew,
		Duplicates:        duplicates,
		AllowRollup:       true,
		AllowDirect:       true,
		DenyDelete:        true,
	}
}

func bucketPrefix(name string) string { return "$KV." + name + "." }

// startTime is how long servers may take to be there when signalbox starts.
const startTime = 30 * time.Second

// whileStarting repeats what failed because the servers have just started as
// well, until they had their time.
func whileStarting(ctx context.Context, do func() error) error {
	until := time.Now().Add(startTime)
	for {
		err := do()
		if err == nil || !starting(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// starting reports whether a cluster that is not complete yet, or has no leader
// at this moment, may be the reason of an error.
func starting(err error) bool {
	if errors.Is(err, errNoAnswer) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == 10005 && strings.Contains(api.Description, "offline") || // JSClusterNoPeersErrF
		api.ErrorCode == 10008 || // JSClusterNotAvailErr
		api.ErrorCode == 10009) // JSClusterNotLeaderErr
}

// ensureStream makes a stream, or brings an existing one to the wanted form.
// One that conflicts is refused and left as it is. Replicas may do this at the
// same time.
func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig) (s jetstream.Stream, err error) {
	err = whileStarting(ctx, func() error {
		s, err = b.ensureStreamNow(ctx, want)
		if errors.Is(err, context.DeadlineExceeded) {
			// They answered before, and are busy with finding each other.
			return errors.Join(errNoAnswer, err)
		}
		return err
	})
	return s, err
}

// errNoAnswer is of a request that was not answered in time.
var errNoAnswer = errors.New("the NATS servers do not answer")

func (b *Bus) ensureStreamNow(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	js, replicas := b.js, b.cfg.External.Replicas
	want = completed(want, b.cfg.Version)
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		want.Replicas = max(replicas, 1)
		s, err = js.CreateStream(ctx, want)
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return s, streamError("make", want.Name, err)
		}
		// Another replica made it meanwhile, perhaps in another form.
		s, err = js.Stream(ctx, want.Name)
	}
	if err != nil {
		return nil, streamError("read", want.Name, err)
	}
	have := s.CachedInfo().Config
	if err := conflict(have, want); err != nil {
		return nil, err
	}
	next := upgrade(have, want, replicas)
	if reflect.DeepEqual(have, next) {
		return s, nil
	}
	s, err = js.UpdateStream(ctx, next)
	return s, streamError("update", want.Name, err)
}

// completed spells out what the server would fill in, so that it can be
// compared, and marks the stream as made by a version of signalbox.
func completed(s jetstream.StreamConfig, version string) jetstream.StreamConfig {
	s.MaxMsgs, s.MaxConsumers, s.MaxMsgSize = -1, -1, -1
	s.MaxBytes = cmp.Or(s.MaxBytes, -1)
	s.MaxMsgsPerSubject = cmp.Or(s.MaxMsgsPerSubject, -1)
	s.Storage = jetstream.FileStorage
	marks := maps.Clone(s.Metadata)
	if marks == nil {
		marks = map[string]string{}
	}
	marks[metaLayout] = strconv.Itoa(LayoutVersion)
	if version != "" {
		marks[metaVersion] = version
	}
	s.Metadata = marks
	return s
}

func streamError(what, name string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case 10065: // JSStreamSubjectOverlapErr
			hint = "; another stream of this NATS account has its subjects: give signalbox an account of its own"
		case 10047, 10028, 10023: // storage or account resources exceeded
			hint = "; raise the storage limit of the NATS account, or lower the size limit of events"
		case 10074: // JSStreamReplicasNotSupportedErr
			hint = "; replicas need a NATS cluster: set them to 1 for a single server"
		}
	}
	return fmt.Errorf("%s stream %s: %w%s", what, name, err, hint)
}

// conflict says how an existing stream differs from the wanted one in what
// cannot, or must not, be changed.
func conflict(have, want jetstream.StreamConfig) error {
	if _, owned := have.Metadata[metaLayout]; !owned {
		return fmt.Errorf("stream %s exists and was not made by signalbox (its subjects are %s); give signalbox a NATS account of its own, or remove that stream",
			have.Name, strings.Join(have.Subjects, ", "))
	}
	if err := newerLayout(have); err != nil {
		return err // Somebody made it since the store was looked at as a whole.
	}
	var diffs []string
	differ := func(what string, have, want any) {
		if !reflect.DeepEqual(have, want) {
			diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", what, have, want))
		}
	}
	differ("retention", have.Retention, want.Retention)
	differ("storage", have.Storage, want.Storage)
	differ("sealed", have.Sealed, false)
	differ("mirror", have.Mirror != nil, false)
	if n, ok := want.Metadata[metaPartitions]; ok {
		differ("number of partitions", have.Metadata[metaPartitions], n)
	}
	if len(diffs) == 0 {
		return nil
	}
	return fmt.Errorf("stream %s exists and does not fit: %s; set the configuration back to what the stream has, or stop every replica and remove the stream",
		have.Name, strings.Join(diffs, "; "))
}

// upgrade returns the existing configuration with what signalbox decides put
// in. What it does not decide, such as placement, stays as the operator has it.
func upgrade(have, want jetstream.StreamConfig, replicas int) jetstream.StreamConfig {
	next := have
	next.Description = want.Description
	if !slices.Equal(have.Subjects, want.Subjects) {
		next.Subjects = want.Subjects
	}
	next.MaxAge = want.MaxAge
	next.MaxBytes = want.MaxBytes
	next.MaxMsgs = want.MaxMsgs
	next.MaxMsgsPerSubject = want.MaxMsgsPerSubject
	next.MaxMsgSize = want.MaxMsgSize
	next.Discard = want.Discard
	next.Duplicates = want.Duplicates
	next.AllowRollup = want.AllowRollup
	next.AllowDirect = want.AllowDirect
	next.AllowMsgSchedules = want.AllowMsgSchedules
	next.DiscardNewPerSubject = want.DiscardNewPerSubject
	next.DenyDelete = want.DenyDelete
	next.DenyPurge = want.DenyPurge
	if replicas > 0 {
		next.Replicas = replicas
	}
	next.Metadata = maps.Clone(have.Metadata)
	maps.Copy(next.Metadata, want.Metadata)
	return next
}
