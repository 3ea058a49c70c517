package gitea

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/events"
	"signalbox/internal/secret"
	"signalbox/internal/trace"
)

// IntakeConfig configures the webhook endpoint.
type IntakeConfig struct {
	// Secrets are the accepted signing secrets: one, or two while it is being
	// rotated. Empty ones do not count, and without any every delivery is
	// refused.
	Secrets []secret.Value
	// Publish puts an event where it cannot be lost, and returns after that.
	Publish func(context.Context, events.Event) error
	// Known reports whether a repository is configured. Nil accepts all.
	Known func(repoID int64, fullName string) bool
	// Tracer makes a trace of each delivery; nil for none.
	Tracer *trace.Tracer
	// MaxBody bounds a delivery in bytes. Zero means 8 MiB.
	MaxBody int64
	// Clock gives the time of an event. Nil means [time.Now].
	Clock func() time.Time
}

const (
	defaultMaxBody = 8 << 20
	// bodyTime is how long a delivery may take to arrive. Gitea itself gives up
	// after five seconds.
	bodyTime = 10 * time.Second
	// publishTime is how long an event that was handed over is tried to be
	// stored. It is shorter than what a program that stops waits for requests.
	publishTime = 9 * time.Second
)

// intake is the webhook endpoint.
type intake struct {
	config     IntakeConfig
	log        *slog.Logger
	deliveries *prometheus.CounterVec
}

// NewIntake makes the webhook endpoint. It answers:
//
//	204  published, or of no interest
//	400  not JSON, or parts are missing
//	401  the signature is missing, empty or wrong
//	405  not a POST
//	413  longer than MaxBody
//	415  not application/json: with "form" Gitea signs something else than it sends
//	503  the event could not be published; Gitea does not try again, a person can
//
// A nil logger discards, a nil registerer keeps the metrics private.
func NewIntake(config IntakeConfig, logger *slog.Logger, registerer prometheus.Registerer) http.Handler {
	in := &intake{
		config: config,
		log:    logger,
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_gitea_webhooks_total",
			Help: "Webhooks received from Gitea, by event and by what became of them.",
		}, []string{"event", "result"}),
	}
	if in.log == nil {
		in.log = slog.New(slog.DiscardHandler)
	}
	in.config.MaxBody = orDefault(config.MaxBody, defaultMaxBody)
	if config.Clock == nil {
		in.config.Clock = time.Now
	}
	if registerer != nil {
		registerer.MustRegister(in.deliveries)
	}
	return in
}

// ServeHTTP implements [http.Handler].
func (in *intake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		in.refuse(w, "", "method", http.StatusMethodNotAllowed)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		in.refuse(w, "", "content_type", http.StatusUnsupportedMediaType)
		return
	}
	body, err := in.readBody(w, r)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			in.refuse(w, "", "too_large", http.StatusRequestEntityTooLarge)
		} else {
			in.refuse(w, "", "broken_off", http.StatusBadRequest)
		}
		return
	}
	if !in.signed(r.Header, body) {
		in.refuse(w, "", "signature", http.StatusUnauthorized)
		return
	}
	in.accept(w, r, body)
}

// readBody reads a delivery, within a time where the server allows to set one.
func (in *intake) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	return io.ReadAll(http.MaxBytesReader(w, r.Body, in.config.MaxBody))
}

// signed checks the signature against each secret, in constant time.
func (in *intake) signed(h http.Header, body []byte) bool {
	var given []byte
	for _, name := range []string{"X-Gitea-Signature", "X-Forgejo-Signature", "X-Gogs-Signature"} {
		if text := h.Get(name); text != "" {
			given, _ = hex.DecodeString(text)
			break
		}
	}
	ok := false
	for _, s := range in.config.Secrets {
		if s.Empty() {
			continue
		}
		mac := hmac.New(sha256.New, []byte(s.Reveal()))
		// A hash never fails to write.
		_, _ = mac.Write(body)
		ok = hmac.Equal(mac.Sum(nil), given) || ok
	}
	return ok
}

// accept handles a delivery whose signature is right.
func (in *intake) accept(w http.ResponseWriter, r *http.Request, body []byte) {
	d := readDelivery(r.Header, body)
	e, repo, err := decode(d, body, in.config.Clock())
	switch {
	case errors.Is(err, errIgnored):
		in.done(w, d, "ignored")
		return
	case err != nil:
		in.log.WarnContext(r.Context(), "webhook refused", "event", d.id, "error", err)
		in.refuse(w, d.event, "malformed", http.StatusBadRequest)
		return
	case in.config.Known != nil && !in.config.Known(repo.ID, repo.String()):
		in.done(w, d, "unknown_repository")
		return
	}
	// Gitea delivers once, and gives up before servers have chosen a new leader:
	// then what it has handed over is stored without it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), publishTime)
	defer cancel()
	ctx, span := in.config.Tracer.Begin(ctx, trace.Takes, "webhook",
		trace.Text("hook", d.event), trace.Number("repo_id", repo.ID), trace.Text("repo", repo.String()))
	err = in.config.Publish(ctx, e)
	span.End(err)
	if err != nil {
		in.log.ErrorContext(r.Context(), "webhook not published", "event", e.ID, "repo", repo.String(), "error", err)
		w.Header().Set("Retry-After", "5")
		in.refuse(w, d.event, "not_published", http.StatusServiceUnavailable)
		return
	}
	in.done(w, d, "published")
}

func (in *intake) done(w http.ResponseWriter, d delivery, result string) {
	in.count(d.event, result)
	w.WriteHeader(http.StatusNoContent)
}

func (in *intake) refuse(w http.ResponseWriter, event, result string, code int) {
	in.count(event, result)
	http.Error(w, http.StatusText(code), code)
}

// count counts a delivery. The event comes from outside, so only known words
// become labels.
func (in *intake) count(event, result string) {
	if _, ok := defaultKind[event]; !ok {
		event = "other"
	}
	in.deliveries.WithLabelValues(event, result).Inc()
}
