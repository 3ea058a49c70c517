package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	slackapi "github.com/slack-go/slack"
)

// Paths of [Adapter.Handler].
const (
	PathEvents      = "/hooks/slack/events"
	PathCommand     = "/hooks/slack/command"
	PathInteractive = "/hooks/slack/interactive"
)

const (
	// maxBody bounds a request of Slack, in bytes. The longest is a button, which
	// comes with the message it is on.
	maxBody = 1 << 20
	// bodyTime is how long a request may take to arrive.
	bodyTime = 3 * time.Second
)

// Handler is where Slack sends what happens, if it is not Socket Mode: [PathEvents],
// [PathCommand] and [PathInteractive]. It answers:
//
//	200  taken, or of no interest
//	400  signed, but not what Slack sends
//	401  the signature is missing, wrong, or older than five minutes
//	405  not a POST
//	413  longer than 1 MiB
//	503  it could not be taken; Slack sends events again, and shows an error to
//	     whoever used a command or a button
//
// See https://docs.slack.dev/authentication/verifying-requests-from-slack.
func (a *Adapter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+PathEvents, a.signed(kindEvent, a.serveEvent))
	mux.Handle("POST "+PathCommand, a.signed(kindCommand, a.serveCommand))
	mux.Handle("POST "+PathInteractive, a.signed(kindButton, a.servePress))
	return mux
}

// signed reads a request and checks its signature.
func (a *Adapter) signed(kind string, serve func(http.ResponseWriter, *http.Request, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			a.refuse(w, kind, "too_large", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			a.refuse(w, kind, "broken_off", http.StatusBadRequest)
			return
		}
		if !a.authentic(r.Header, body) {
			a.refuse(w, kind, "signature", http.StatusUnauthorized)
			return
		}
		serve(w, r, body)
	})
}

// authentic checks a signature, in constant time.
func (a *Adapter) authentic(h http.Header, body []byte) bool {
	verifier, err := slackapi.NewSecretsVerifier(h, a.config.SigningSecret.Reveal())
	if err != nil {
		return false
	}
	// A hash never fails to write.
	_, _ = verifier.Write(body)
	return verifier.Ensure() == nil
}

func (a *Adapter) serveEvent(w http.ResponseWriter, r *http.Request, body []byte) {
	var c callback
	if json.Unmarshal(body, &c) == nil && c.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, c.Challenge)
		return
	}
	a.answer(w, a.takeEvent(r.Context(), body))
}

func (a *Adapter) serveCommand(w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	c, err := slackapi.SlashCommandParse(r)
	if err != nil {
		a.refuse(w, kindCommand, "malformed", http.StatusBadRequest)
		return
	}
	if r.PostForm.Get("ssl_check") == "1" {
		return
	}
	a.answer(w, a.takeCommand(r.Context(), c))
}

func (a *Adapter) servePress(w http.ResponseWriter, r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		a.refuse(w, kindButton, "malformed", http.StatusBadRequest)
		return
	}
	a.answer(w, a.takePress(r.Context(), []byte(form.Get("payload"))))
}

// answer answers what was taken, or not. A body would be shown to the person.
func (a *Adapter) answer(w http.ResponseWriter, err error) {
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.Is(err, errMalformed):
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
	default:
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
	}
}

func (a *Adapter) refuse(w http.ResponseWriter, kind, result string, code int) {
	a.metrics.received.WithLabelValues(kind, result).Inc()
	http.Error(w, http.StatusText(code), code)
}
