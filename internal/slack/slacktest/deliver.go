package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// delivery is something for the app that is on its way.
type delivery struct {
	kind    string
	payload map[string]any
	// ref is the message or the trigger that it is about.
	ref string
	// once says that it is not sent again: a person waits for it.
	once     bool
	attempts int
	sent     time.Time
	link     *link
	acked    bool
	// round is how often it was delivered again although it had arrived. An
	// acknowledgement of an earlier round does not count.
	round int
}

// envelope is one attempt to deliver something by Socket Mode.
type envelope struct {
	*delivery

	round int
}

// queue sends something to the app.
func (s *Server) queue(d *delivery) {
	s.deliveries = append(s.deliveries, d)
	s.stir()
}

// stir lets what is due be sent at once.
func (s *Server) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Acknowledged says whether everything about a message or a trigger was
// acknowledged, and there was anything.
func (s *Server) Acknowledged(ref string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, d := range s.deliveries {
		if d.ref == ref {
			found = true
			if !d.acked {
				return false
			}
		}
	}
	return found
}

// Redeliver delivers what is about a message again, although it was acknowledged.
func (s *Server) Redeliver(ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.deliveries {
		if d.ref == ref {
			d.acked, d.sent = false, time.Time{}
			d.round++
		}
	}
	s.stir()
}

// deliver sends what is due until the server is closed.
func (s *Server) deliver() {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-s.closed:
			return
		case <-ticker.C:
		case <-s.wake:
		}
		for _, d := range s.due() {
			if hooks := s.hooks(); hooks != "" {
				s.send(hooks, d)
			} else {
				s.push(d)
			}
		}
	}
}

func (s *Server) hooks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.Hooks
}

// due is what is to be sent now, the oldest first.
func (s *Server) due() []*delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*delivery
	for _, d := range s.deliveries {
		if !d.acked && (d.attempts == 0 || !d.once && time.Since(d.sent) >= s.options.Again) {
			out = append(out, d)
		}
	}
	return out
}

// push sends a delivery by Socket Mode, if the app is connected.
func (s *Server) push(d *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.links) == 0 {
		return
	}
	l := s.links[len(s.links)-1]
	id := s.id("envelope-")
	s.envelopes[id] = envelope{d, d.round}
	frame := map[string]any{"type": d.kind, "envelope_id": id, "payload": d.payload, "accepts_response_payload": d.once}
	if d.kind == "events_api" {
		frame["retry_attempt"], frame["retry_reason"] = d.attempts, ""
		if d.attempts > 0 {
			frame["retry_reason"] = "timeout"
		}
	}
	d.attempts, d.sent, d.link = d.attempts+1, time.Now(), l
	l.write(frame)
}

// send sends a delivery by HTTP.
func (s *Server) send(root string, d *delivery) {
	s.mu.Lock()
	attempt, round := d.attempts, d.round
	d.attempts, d.sent = d.attempts+1, time.Now()
	path, kind, body := encode(d)
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, root+path, bytes.NewReader(body))
	if err != nil {
		s.problem("the address of the app: %v", err)
		return
	}
	Sign(req.Header, body, time.Now())
	req.Header.Set("Content-Type", kind)
	if attempt > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(attempt))
		req.Header.Set("X-Slack-Retry-Reason", "http_error")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		s.mu.Lock()
		defer s.mu.Unlock()
		d.acked = d.acked || d.round == round
	}
}

// encode is a delivery as it is sent by HTTP.
func encode(d *delivery) (path, kind string, body []byte) {
	text, err := json.Marshal(d.payload)
	if err != nil {
		panic(fmt.Sprintf("slacktest: encode: %v", err))
	}
	const form = "application/x-www-form-urlencoded"
	switch d.kind {
	case "slash_commands":
		values := url.Values{}
		for k, v := range d.payload {
			values.Set(k, fmt.Sprint(v))
		}
		return "/hooks/slack/command", form, []byte(values.Encode())
	case "interactive":
		return "/hooks/slack/interactive", form, []byte(url.Values{"payload": {string(text)}}.Encode())
	default:
		return "/hooks/slack/events", "application/json", text
	}
}

// Sign adds the headers of a signature with [SigningSecret].
func Sign(h http.Header, body []byte, at time.Time) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(SigningSecret))
	// A hash never fails to write.
	_, _ = mac.Write(append([]byte("v0:"+stamp+":"), body...))
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

func (s *Server) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}
