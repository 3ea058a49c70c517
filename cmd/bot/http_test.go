package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections in memory, whose deadlines follow the clock of a
// bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// connection serves a handler on a connection, and returns the other end.
func connection(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	l := pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	client, accepted := net.Pipe()
	l.conns <- accepted
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return client
}

// TestBodiesThatNeverEnd checks that they end all the same, whether they are read or
// not.
func TestBodiesThatNeverEnd(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"read":     func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"not read": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := connection(t, timed(h))
				began := time.Now()
				if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: signalbox\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
					t.Fatal(err)
				}
				_ = conn.SetReadDeadline(began.Add(time.Hour))
				_, err := io.Copy(io.Discard, conn)
				if took := time.Since(began); err != nil || took > 2*bodyTime {
					t.Errorf("the connection was held for %s: %v", took, err)
				}
			})
		})
	}
}
