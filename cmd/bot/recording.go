package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/recording"
)

// recordingHeader is what a verdict rests on beside what is on the bus, as far as a
// configuration tells it.
func recordingHeader(c *config.Config, now time.Time) recording.Header {
	h := recording.Header{Program: versionText(), At: now.UTC(), Bots: c.Bots, Policy: c.PolicyText}
	for _, cluster := range c.Clusters {
		h.Clusters = append(h.Clusters, cluster.Name)
	}
	return h
}

// serveRecording answers with a recording, until the end of it, or of the request if it
// follows.
func (a *app) serveRecording(w http.ResponseWriter, r *http.Request) {
	tail, err := parseTail(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	h := recordingHeader(a.config, time.Now())
	h.Clusters = a.clusterNames()
	asking, asked := context.WithTimeout(ctx, healthTime)
	h.Self, err = a.evaluator.Account.Self(asking)
	asked()
	if err != nil {
		// Gitea may be down, which is when people look.
		a.log.WarnContext(ctx, "a recording does not know the account of signalbox", "error", err)
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w)
	out, err := recording.NewWriter(w, h)
	if err != nil {
		return // The other side is gone.
	}
	live := false
	err = a.bus.Reader().Tail(ctx, tail, func(l recording.Line) error {
		if err := out.Write(l); err != nil {
			return err
		}
		if live = live || l.Kind == recording.Now; !live {
			return nil
		}
		return flush.Flush()
	})
	if err != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "a recording broke off", "error", err)
		// Who reads must see that this is not all.
		panic(http.ErrAbortHandler)
	}
}

// parseTail reads what tailQuery wrote.
func parseTail(q url.Values) (bus.Tail, error) {
	t := bus.Tail{Follow: q.Get("follow") != ""}
	for _, k := range q["kind"] {
		if !slices.Contains(recording.Kinds(), recording.Kind(k)) {
			return t, fmt.Errorf("the kind %q is not known", k)
		}
		t.Kinds = append(t.Kinds, recording.Kind(k))
	}
	if len(t.Kinds) == 0 {
		return t, errors.New("no kind is asked for")
	}
	if since := q.Get("since"); since != "" {
		at, err := time.Parse(time.RFC3339Nano, since)
		if err != nil {
			return t, fmt.Errorf("since: %w", err)
		}
		t.Since = at
	}
	return t, nil
}

func tailQuery(t bus.Tail) url.Values {
	q := url.Values{}
	for _, k := range t.Kinds {
		q.Add("kind", string(k))
	}
	if !t.Since.IsZero() {
		q.Set("since", t.Since.UTC().Format(time.RFC3339Nano))
	}
	if t.Follow {
		q.Set("follow", "1")
	}
	return q
}

// record reads the bus of a configuration: from the signalbox that runs on it, or from
// the bus itself. It hands on the header first, and then each line.
func record(ctx context.Context, c *config.Config, t bus.Tail, begin func(recording.Header) error, line func(recording.Line) error) error {
	return storeQuestion{
		command: "bot events",
		ask:     func(running *adminClient) error { return running.record(ctx, t, begin, line) },
		read: func(r *bus.Reader) error {
			if err := begin(recordingHeader(c, time.Now())); err != nil {
				return err
			}
			return r.Tail(ctx, t, line)
		},
	}.put(ctx, busConfig(c))
}

// record asks for a recording, and ends without an error when ctx does.
func (c *adminClient) record(ctx context.Context, t bus.Tail, begin func(recording.Header) error, line func(recording.Line) error) error {
	err := c.stream(ctx, "/v1/recording", tailQuery(t), func(body io.Reader) error {
		r, err := recording.NewReader(body)
		if err != nil {
			return fmt.Errorf("the answer of the running signalbox: %w", err)
		}
		if err := begin(r.Header); err != nil {
			return err
		}
		for {
			l, _, err := r.Next()
			switch {
			case errors.Is(err, io.EOF) && t.Follow && ctx.Err() == nil:
				return errors.New("the running signalbox has ended")
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return fmt.Errorf("the answer of the running signalbox: %w", err)
			}
			if err := line(l); err != nil {
				return err
			}
		}
	})
	select {
	case <-ctx.Done():
		return nil // That is how following ends.
	default:
		return err
	}
}
