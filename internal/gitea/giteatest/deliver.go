package giteatest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// delivery is one webhook on its way.
type delivery struct {
	url    string
	secret string
	event  string
	kind   string
	body   []byte
}

// deliverer delivers webhooks one after the other, once each, as Gitea does.
type deliverer struct {
	client *http.Client
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	queue   []delivery
	busy    bool
	changed chan struct{} // Closed and replaced at every change.
	closed  bool
}

func newDeliverer() *deliverer {
	ctx, cancel := context.WithCancel(context.Background())
	d := &deliverer{
		client: &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true},
		},
		cancel:  cancel,
		done:    make(chan struct{}),
		changed: make(chan struct{}),
	}
	go d.run(ctx)
	return d
}

func (d *deliverer) add(list ...delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, list...)
	d.signal()
}

// signal wakes whoever waits for a change. It is called with the lock held.
func (d *deliverer) signal() {
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *deliverer) run(ctx context.Context) {
	defer close(d.done)
	for {
		d.mu.Lock()
		if d.busy {
			d.busy = false
			d.signal()
		}
		if d.closed {
			d.mu.Unlock()
			return
		}
		if len(d.queue) == 0 {
			changed := d.changed
			d.mu.Unlock()
			<-changed
			continue
		}
		next := d.queue[0]
		d.queue, d.busy = d.queue[1:], true
		d.mu.Unlock()
		d.deliver(ctx, next)
	}
}

// deliver sends a webhook. What the receiver answers changes nothing.
func (d *deliverer) deliver(ctx context.Context, w delivery) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(w.body))
	if err != nil {
		return
	}
	req.Header = Headers(w.event, w.kind, w.secret, w.body)
	resp, err := d.client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

func (d *deliverer) settle(ctx context.Context) error {
	for {
		d.mu.Lock()
		idle, changed := len(d.queue) == 0 && !d.busy, d.changed
		d.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for webhooks: %w", context.Cause(ctx))
		}
	}
}

func (d *deliverer) close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		d.signal()
	}
	d.mu.Unlock()
	d.cancel()
	<-d.done
}

// Headers returns the headers of a delivery with a fresh id, signed with the
// secret. An empty secret gives empty signatures, as in Gitea.
func Headers(event, kind, secret string, body []byte) http.Header {
	id := uuid()
	sign := func(algorithm func() hash.Hash) string {
		if secret == "" {
			return ""
		}
		mac := hmac.New(algorithm, []byte(secret))
		// A hash never fails to write.
		_, _ = mac.Write(body)
		return hex.EncodeToString(mac.Sum(nil))
	}
	sum := sign(sha256.New)
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	for _, family := range []string{"X-Gitea-", "X-Gogs-", "X-GitHub-"} {
		h.Set(family+"Delivery", id)
		h.Set(family+"Event", event)
		h.Set(family+"Event-Type", kind)
	}
	h.Set("X-Gitea-Signature", sum)
	h.Set("X-Gogs-Signature", sum)
	h.Set("X-Hub-Signature", "sha1="+sign(sha1.New))
	h.Set("X-Hub-Signature-256", "sha256="+sum)
	h.Set("X-Gitea-Hook-Installation-Target-Type", "repository")
	return h
}

func uuid() string {
	var b [16]byte
	// It never fails, see crypto/rand.
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// eventOf is the event that belongs to a type.
func eventOf(kind string) string {
	switch kind {
	case "pull_request_review_approved", "pull_request_review_rejected", "pull_request_review_comment":
		return strings.Replace(kind, "_review", "", 1)
	case "pull_request_comment":
		return "issue_comment"
	}
	if strings.HasPrefix(kind, "pull_request") {
		return "pull_request"
	}
	return kind
}

// send puts a webhook of a type into the queue of each hook that wants it. It
// is called with the lock held, so that the payload is of this moment.
func (s *Server) send(r *repo, kind string, payload map[string]any) {
	wanted := kind
	if strings.HasPrefix(kind, "pull_request_review_") && kind != "pull_request_review_request" {
		wanted = "pull_request_review"
	}
	var body []byte
	for _, h := range r.hooks {
		if !h.active || !h.events[wanted] || h.content != "json" {
			continue
		}
		if body == nil {
			payload["repository"] = s.repoJSON(r, Admin)
			// What the model holds can always be encoded.
			body, _ = json.MarshalIndent(payload, "", "  ")
		}
		s.hooks.add(delivery{url: h.url, secret: h.secret, event: eventOf(kind), kind: kind, body: body})
	}
}

// sendPull sends an event about a pull request.
func (s *Server) sendPull(p *pullRequest, kind, action string, by *account, more map[string]any) {
	payload := map[string]any{
		"action": action, "number": p.number, "pull_request": s.pullJSON(p), "sender": s.userJSON(by),
		"requested_reviewer": nil, "commit_id": "", "review": nil,
	}
	maps.Copy(payload, more)
	s.send(p.repo, kind, payload)
}

// sendComment sends an event about a comment.
func (s *Server) sendComment(p *pullRequest, e *entry, action string, by *account, more map[string]any) {
	state := "open"
	if p.closed {
		state = "closed"
	}
	payload := map[string]any{
		"action": action, "comment": s.commentJSON(p, e), "pull_request": s.pullJSON(p), "is_pull": true,
		"sender": s.userJSON(by),
		"issue": map[string]any{
			"id": p.number, "number": p.number, "title": p.title, "state": state, "user": s.userJSON(p.author),
			"pull_request": map[string]any{"merged": p.merged, "draft": draft(p.title), "html_url": s.pullURL(p)},
		},
	}
	maps.Copy(payload, more)
	s.send(p.repo, "pull_request_comment", payload)
}
