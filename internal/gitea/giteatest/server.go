package giteatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configure a [Server]. The zero value is right for most tests.
type Options struct {
	// SubPath serves Gitea below a path, such as "/git".
	SubPath string
	// Addr is where it listens; empty means a free port of 127.0.0.1.
	Addr string
	// Clock gives the time of what happens. Nil means [time.Now].
	Clock func() time.Time
	// MaxItems is the longest page; 0 means 50, as in Gitea.
	MaxItems int
}

// Server is the stand-in. Make it with [New] and end it with [Server.Close].
type Server struct {
	options  Options
	root     string
	listener net.Listener
	http     *http.Server
	serving  sync.WaitGroup
	hooks    *deliverer

	mu     sync.Mutex
	model  model
	calls  map[string]int
	fail   func(*http.Request) *Response
	down   bool
	slow   time.Duration
	lag    Lag
	late   []func()
	closed chan struct{}
}

// Response is an answer that [Server.Fail] gives in the place of the real one.
type Response struct {
	Code   int
	Header http.Header
	Body   string
	// Break cuts the connection after the body, which is announced as longer.
	Break bool
}

// New starts a server.
func New(options Options) (*Server, error) {
	if options.Addr == "" {
		options.Addr = "127.0.0.1:0"
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.MaxItems == 0 {
		options.MaxItems = 50
	}
	options.SubPath = strings.TrimRight(options.SubPath, "/")
	listener, err := net.Listen("tcp", options.Addr)
	if err != nil {
		return nil, fmt.Errorf("start the stand-in for gitea: %w", err)
	}
	s := &Server{
		options:  options,
		listener: listener,
		root:     "http://" + listener.Addr().String() + options.SubPath,
		model:    newModel(),
		calls:    map[string]int{},
		closed:   make(chan struct{}),
		hooks:    newDeliverer(),
	}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.serving.Go(func() {
		// It ends with ErrServerClosed; a broken listener shows in the callers.
		_ = s.http.Serve(listener)
	})
	return s, nil
}

// Close ends the server: open connections are cut, webhooks that wait are
// dropped.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closed:
		s.mu.Unlock()
		return
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	// Closing a listener twice is all that can fail.
	_ = s.http.Close()
	s.serving.Wait()
	s.hooks.close()
}

// URL returns the address as a person opens it, with the sub-path and a slash
// at the end.
func (s *Server) URL() string { return s.root + "/" }

// Settle waits until no webhook waits for its delivery.
func (s *Server) Settle(ctx context.Context) error { return s.hooks.settle(ctx) }

// Calls returns how often each route of the API was asked for, such as
// "GET /repos/{owner}/{repo}/pulls/{index}". Answers of [Server.Fail] count.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// TotalCalls returns the number of all calls.
func (s *Server) TotalCalls() int {
	total := 0
	for _, n := range s.Calls() {
		total += n
	}
	return total
}

// ResetCalls starts counting anew.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.calls)
}

// Fail asks f about every call; where it returns a response, that is the
// answer. Nil ends it. f is called without locks and may use the server.
func (s *Server) Fail(f func(*http.Request) *Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Down makes the server cut every connection without an answer, or ends that.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Slow makes every answer wait.
func (s *Server) Slow(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = by
}

// Lag is how far pull requests stay behind their branches, as they do in a
// real Gitea for the moment between a push and the work that it queues.
type Lag int

// What follows a push at once.
const (
	// Everything: there is no lag.
	NoLag Lag = iota
	// LagMergeBase: the reference follows, the merge base that the diff is taken
	// from stays, and no event comes.
	LagMergeBase
	// LagHead: nothing; files and diff are of the old head, while the pull
	// request itself tells the new one.
	LagHead
)

// SetLag sets the lag for what is pushed from now on. Without one, all that was
// left is done.
func (s *Server) SetLag(lag Lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag
	if lag != NoLag {
		return
	}
	late := s.late
	s.late = nil
	for _, work := range late {
		work()
	}
}

// handler routes calls and puts what tests want to break before them.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range s.routes() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+s.options.SubPath+"/api/v1"+path, func(w http.ResponseWriter, r *http.Request) {
			s.count(method + " " + routeName(r, path))
			if s.broken(w, r) {
				return
			}
			s.serve(w, r, handle)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.count(r.Method + " " + r.URL.Path)
		if !s.broken(w, r) {
			writeJSON(w, http.StatusNotFound, errorBody("not found"))
		}
	})
	return mux
}

// routeName tells apart calls that share a pattern: the diff of a pull request
// and the pull request itself, the parts of an issue.
func routeName(r *http.Request, path string) string {
	if strings.HasSuffix(r.PathValue("index"), ".diff") {
		return path + ".diff"
	}
	return strings.Replace(path, "{part}", r.PathValue("part"), 1)
}

func (s *Server) count(route string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[route]++
}

// broken does what a test asked for in the place of an answer.
func (s *Server) broken(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	fail, down, slow := s.fail, s.down, s.slow
	s.mu.Unlock()
	if slow > 0 {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-s.closed:
		}
	}
	if down {
		panic(http.ErrAbortHandler)
	}
	if fail == nil {
		return false
	}
	answer := fail(r)
	if answer == nil {
		return false
	}
	maps.Copy(w.Header(), answer.Header)
	if answer.Break {
		w.Header().Set("Content-Length", fmt.Sprint(len(answer.Body)+1))
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write([]byte(answer.Body))
	if answer.Break {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	return true
}

// handle answers one call. It is called with the lock held.
type handle func(*request) error

// request is a call in work.
type request struct {
	*http.Request
	w      http.ResponseWriter
	server *Server
	doer   *account // Nil without a token.
}

// apiError is an answer that is no success.
type apiError struct {
	code    int
	message string
}

func (e *apiError) Error() string { return e.message }

var errNotFound = &apiError{http.StatusNotFound, "not found"}

// answer is an answer that is complete before it is sent, so that a caller who
// reads slowly does not hold the lock.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request, handle handle) {
	a := &answer{header: w.Header(), code: http.StatusOK}
	s.decide(a, r, handle)
	w.WriteHeader(a.code)
	// Nobody reads the rest of an answer whose reader has gone.
	_, _ = w.Write(a.body.Bytes())
}

func (s *Server) decide(w http.ResponseWriter, r *http.Request, handle handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req := &request{Request: r, w: w, server: s}
	err := req.authenticate()
	if err == nil {
		err = handle(req)
	}
	var known *apiError
	switch {
	case err == nil:
	case errors.As(err, &known):
		writeJSON(w, known.code, errorBody(known.message))
	default:
		writeJSON(w, http.StatusInternalServerError, errorBody(err.Error()))
	}
}

// authenticate finds the account of the token. A wrong token is refused
// everywhere, a missing one only where an account is needed.
func (r *request) authenticate() error {
	text := r.Header.Get("Authorization")
	if text == "" {
		return nil
	}
	kind, token, _ := strings.Cut(text, " ")
	if kind == "token" || kind == "Bearer" {
		for _, a := range r.server.model.accounts {
			if a.token != "" && a.token == token {
				r.doer = a
				return nil
			}
		}
	}
	return &apiError{http.StatusUnauthorized, "invalid username, password or token"}
}

func (r *request) needDoer() error {
	if r.doer == nil {
		return &apiError{http.StatusUnauthorized, "token is required"}
	}
	return nil
}

func errorBody(message string) any {
	return map[string]string{"message": message, "url": "http://example.org/api/swagger"}
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	w.WriteHeader(code)
	// What is not written here is seen by the reader.
	_ = json.NewEncoder(w).Encode(body)
}
