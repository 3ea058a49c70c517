package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"signalbox/internal/config"
	"signalbox/internal/gitea"
)

// Times of the HTTP server.
const (
	headerTime   = 5 * time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 10 * time.Second
	healthTime   = 2 * time.Second
	// bodyTime is how long somebody may send what a request has beside its header.
	bodyTime = 30 * time.Second
)

// serve answers HTTP until ctx ends.
func (a *app) serve(ctx context.Context) error {
	server := &http.Server{Handler: a.routes()}
	if a.pages.end != nil {
		server.RegisterOnShutdown(a.pages.end)
	}
	return serveHTTP(ctx, a.listener, server)
}

// serveHTTP serves until ctx ends, and then lets requests finish.
func serveHTTP(ctx context.Context, listener net.Listener, server *http.Server) error {
	server.ReadHeaderTimeout, server.IdleTimeout = headerTime, idleTime
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		done <- server.Shutdown(end)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", listener.Addr(), err)
	}
	return <-done
}

func (a *app) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/"+config.ReceiverPath, gitea.NewIntake(gitea.IntakeConfig{
		Secrets: webhookSecrets(a.config),
		Publish: a.bus.Publish,
		Tracer:  a.tracer,
		Known:   a.evaluator.Repositories.Configured,
	}, a.log, a.registry))
	if a.chats != nil {
		for _, c := range a.chats.adapters {
			if r, ok := c.(routed); ok {
				r.route(mux)
			}
		}
	}
	a.pages.route(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	// Alive is who answers; ready is whose bus takes events. A cluster or a Gitea
	// that is down makes nobody unready: that is when people look.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), healthTime)
		defer cancel()
		if err := a.bus.Health(ctx); err != nil {
			say(w, http.StatusServiceUnavailable, "the bus is not healthy: "+err.Error())
			return
		}
		say(w, http.StatusOK, "ok")
	})
	return timed(mux)
}

// timed keeps who never sends all of a body from holding a connection for ever: the
// server waits for the rest of it also where no handler reads it. What has no body has
// no such deadline, or streams would end with it.
func timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// A writer that has no deadlines, as in a test, is not slow either.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		next.ServeHTTP(w, r)
	})
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	// The other side may be gone; there is nobody to tell.
	_, _ = fmt.Fprintln(w, text)
}
