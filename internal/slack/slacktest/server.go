package slacktest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Secrets of the workspace.
const (
	BotToken      = "xoxb-000-111-abcdefSECRET"
	AppToken      = "xapp-1-A000-222-fedcbaSECRET"
	SigningSecret = "0123456789abcdefSECRET"
)

// The app, its account, its bot and its workspace.
const (
	AppID  = "A0SIGNAL"
	UserID = "U0SIGNAL"
	BotID  = "B0SIGNAL"
	TeamID = "T0EXAMPLE"
)

// Options configure a [Server]. The zero value is right for most tests.
type Options struct {
	// Scopes are those that the app was installed with. Nil means all.
	Scopes []string
	// Events are the events that the app has subscribed. Nil means app_mention and
	// message.im.
	Events []string
	// Again is the time after which what was not acknowledged is delivered again.
	// Zero means 300 ms.
	Again time.Duration
	// Hooks is where events are sent by HTTP. Empty means Socket Mode.
	Hooks string
}

// Server is the stand-in. Make it with [New] and end it with [Server.Close].
type Server struct {
	options  Options
	root     string
	http     *http.Server
	listener net.Listener
	parts    sync.WaitGroup
	closed   chan struct{}
	wake     chan struct{}

	mu         sync.Mutex
	ended      bool
	lastTS     int64
	count      int
	users      map[string]string
	channels   map[string]*channel
	refusal    map[string]string
	faults     []Fault
	files      []*File
	uploads    string // The root of the addresses for files.
	used       map[string]bool
	calls      map[string]int
	problems   []string
	links      []*link
	tickets    map[string]bool
	deliveries []*delivery
	envelopes  map[string]envelope
}

// New starts a server on a free port of 127.0.0.1.
func New(options Options) (*Server, error) {
	if options.Again == 0 {
		options.Again = 300 * time.Millisecond
	}
	if options.Events == nil {
		options.Events = []string{"app_mention", "message.im"}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the stand-in for slack: %w", err)
	}
	s := &Server{
		options: options, listener: listener, root: "http://" + listener.Addr().String(),
		uploads: "http://" + listener.Addr().String(), closed: make(chan struct{}), wake: make(chan struct{}, 1),
		users: map[string]string{}, channels: map[string]*channel{}, refusal: map[string]string{},
		used: map[string]bool{}, calls: map[string]int{}, tickets: map[string]bool{}, envelopes: map[string]envelope{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/{method}", s.serveMethod)
	mux.HandleFunc("POST /upload/v1/{ticket}", s.serveUpload)
	mux.HandleFunc("GET /link", s.serveLink)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.parts.Go(func() { _ = s.http.Serve(listener) })
	s.parts.Go(s.deliver)
	return s, nil
}

// APIURL is the root of the Web API.
func (s *Server) APIURL() string { return s.root + "/api/" }

// SetHooks sets where events are sent by HTTP.
func (s *Server) SetHooks(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Hooks = url
}

// Close ends the server and waits for what it has in hand.
func (s *Server) Close() error {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	close(s.closed)
	err := s.http.Close()
	s.Cut()
	s.parts.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Problems are what an adapter did that Slack would not understand.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// Calls is how often a method of the Web API was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// UsedScopes are the scopes that were needed so far, sorted.
func (s *Server) UsedScopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for scope := range s.used {
		out = append(out, scope)
	}
	slices.Sort(out)
	return out
}

// Revoke refuses a token with a code, such as "token_revoked".
func (s *Server) Revoke(token, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal[token] = code
}

// Renew accepts a token again.
func (s *Server) Renew(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refusal, token)
}

// Fault is something that goes wrong with one call of a method.
type Fault struct {
	Method string
	// After is set for a call that is refused with HTTP 429 and this Retry-After.
	After time.Duration
	// Code is the code of "ok": false, Status an HTTP code.
	Code   string
	Status int
	// Lose carries the call out and cuts the connection before the answer. Hang does
	// neither until the caller gives up. Garble answers with what is no JSON.
	Lose, Hang, Garble bool
}

// Fail lets the next call of a method go wrong. Several are kept in order.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// takeFault takes the first fault for a method.
func (s *Server) takeFault(method string) Fault {
	i := slices.IndexFunc(s.faults, func(f Fault) bool { return f.Method == method })
	if i < 0 {
		return Fault{}
	}
	f := s.faults[i]
	s.faults = slices.Delete(s.faults, i, i+1)
	return f
}
