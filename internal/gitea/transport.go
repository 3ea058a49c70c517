package gitea

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"signalbox/internal/trace"
)

// call says how one request is to be carried out.
type call struct {
	// route is the path with its variable parts replaced, for the metric.
	route string
	// repeatable allows a POST to be sent again although the first may have
	// been carried out. Requests with another method always may: each of them
	// sets a state.
	repeatable bool
	// finalError is set where Gitea answers 500 to a question that is merely
	// wrong, so that a repeat is in vain.
	finalError bool
	// stream leaves a successful body to the caller instead of reading it here.
	stream bool
	// limit bounds the body; zero means maxBody.
	limit int64
}

type callKey struct{}

func withCall(ctx context.Context, info call) context.Context {
	return context.WithValue(ctx, callKey{}, info)
}

const (
	// maxBody bounds an answer that is read into memory, in bytes. The longest
	// is the list of comments, which comes in one piece.
	maxBody = 64 << 20
	// streamFactor times the timeout is how long a streamed body may take.
	streamFactor = 4
	// maxWait is the longest that a request waits because Gitea asked for it;
	// beyond, the caller is told and comes back later.
	maxWait = 10 * time.Second
)

// transport sends a request until it is answered, or must not be sent again.
// It reads bodies completely, so that an answer which breaks off is also one
// that can be asked for again.
type transport struct {
	base     http.RoundTripper
	metrics  *metrics
	timeout  time.Duration
	attempts int
	pause    time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	info, _ := ctx.Value(callKey{}).(call)
	if req.Body != nil {
		// Every attempt gets a body of its own.
		defer func() { _ = req.Body.Close() }()
	}
	steps := backoff.NewExponentialBackOff()
	steps.InitialInterval, steps.MaxInterval = t.pause, 20*t.pause
	tries := 0
	resp, err := backoff.Retry(ctx, func() (*http.Response, error) {
		if tries++; tries > 1 {
			t.metrics.retries.WithLabelValues(req.Method, info.route).Inc()
		}
		return t.judge(req, info)
	}, backoff.WithBackOff(steps), backoff.WithMaxTries(uint(max(t.attempts, 1))), backoff.WithMaxElapsedTime(0))
	if resp != nil && (err == nil || ctx.Err() == nil) {
		// The last answer says more than the error that asked for a repeat.
		return resp, nil
	}
	return nil, err
}

// judge sends the request once. A nil error ends the attempts, also for an
// answer that is no success.
func (t *transport) judge(req *http.Request, info call) (*http.Response, error) {
	resp, err := t.once(req, info)
	safe := req.Method != http.MethodPost || info.repeatable
	switch {
	case req.Context().Err() != nil:
		if resp != nil {
			_ = resp.Body.Close()
		}
		return nil, backoff.Permanent(context.Cause(req.Context()))
	case errors.Is(err, ErrTooLarge), err != nil && !safe && !neverSent(err):
		return nil, backoff.Permanent(err)
	case err != nil:
		return nil, err
	case !temporary(resp.StatusCode),
		!safe && resp.StatusCode != http.StatusTooManyRequests,
		info.finalError && resp.StatusCode == http.StatusInternalServerError:
		return resp, nil
	}
	if wait, ok := retryAfter(resp.Header, time.Now()); ok {
		if wait > maxWait {
			return resp, nil
		}
		return resp, &backoff.RetryAfterError{Duration: wait}
	}
	return resp, fmt.Errorf("HTTP %d", resp.StatusCode)
}

// once sends the request one time and reads the answer.
func (t *transport) once(req *http.Request, info call) (_ *http.Response, err error) {
	limit, timeout := info.limit, t.timeout
	if limit == 0 {
		limit = maxBody
	}
	if info.stream {
		timeout *= streamFactor
	}
	start, code := time.Now(), "error"
	// What is asked of Gitea does not tell it of the trace.
	ctx, span := trace.Start(req.Context(), trace.Asks, req.Method+" "+info.route)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("no complete answer within %s", timeout))
	streaming := false
	defer func() {
		t.metrics.observe(req.Method, info.route, code, time.Since(start))
		span.Tell(trace.Text("code", code))
		span.End(err)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if !streaming {
			cancel()
		}
	}()
	attempt := req.Clone(ctx)
	if req.GetBody != nil {
		if attempt.Body, err = req.GetBody(); err != nil {
			return nil, fmt.Errorf("repeat the request: %w", err)
		}
	}
	resp, err := t.base.RoundTrip(attempt)
	if err != nil {
		return nil, err
	}
	if info.stream && resp.StatusCode == http.StatusOK {
		code, streaming = strconv.Itoa(resp.StatusCode), true
		resp.Body = &bounded{body: resp.Body, left: limit, done: cancel}
		return resp, nil
	}
	if resp.ContentLength > limit {
		_ = resp.Body.Close()
		return nil, ErrTooLarge
	}
	whole := bounded{body: resp.Body, left: limit, done: func() {}}
	data, err := io.ReadAll(&whole)
	_ = whole.Close()
	if err != nil {
		return nil, err
	}
	code = strconv.Itoa(resp.StatusCode)
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// bounded is a body that gives [ErrTooLarge] after its limit.
type bounded struct {
	body io.ReadCloser
	left int64
	done func()
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		return int(b.left), ErrTooLarge
	}
	b.left -= int64(n)
	return n, err
}

func (b *bounded) Close() error {
	defer b.done()
	return b.body.Close()
}

// temporary reports whether a later answer can be another one.
func temporary(code int) bool {
	return code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented
}

// neverSent reports whether a request failed before it left.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// retryAfter reads the time that the server asks to be left alone, given in
// seconds or as a date. It is never negative.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// followRedirect is the redirect policy. Gitea answers 301 for a repository
// that was renamed, upon which HTTP clients turn a POST or PATCH into a GET:
// that would look like success and change nothing.
func followRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.Method != first.Method || len(via) > 3 {
		return ErrMoved
	}
	if req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme {
		return fmt.Errorf("redirect to another server, %s://%s", req.URL.Scheme, req.URL.Host)
	}
	return nil
}
