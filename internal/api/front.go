package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Limits of a request and of its answer.
const (
	// maxInFlight bounds the requests that are answered at once. Each may hold
	// maxAnswer in memory.
	maxInFlight = 16
	// maxQuery bounds the part of the address after the question mark, in bytes.
	maxQuery = 4 << 10
	// maxPath bounds the part before it.
	maxPath = 1 << 10
	// maxAnswer bounds a body, in bytes.
	maxAnswer = 8 << 20
	// sendTime is how long the other side may take to receive an answer.
	sendTime = 30 * time.Second
	// wrongEvery is how often at most wrong tokens are logged.
	wrongEvery = time.Minute
)

// front stands before the resources: it asks for the token, bounds what is asked and
// answered, and sets the headers that every answer has.
type front struct {
	public, routes *http.ServeMux
	tokens         tokens
	log            *slog.Logger
	now            func() time.Time
	slots          chan struct{}

	mu     sync.Mutex
	wrong  int
	logged time.Time
}

// ServeHTTP implements [http.Handler].
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if len(r.URL.RawQuery) > maxQuery || len(r.URL.EscapedPath()) > maxPath {
		problem(w, http.StatusRequestURITooLong, fmt.Sprintf("The address is too long: at most %d bytes before the question mark and %d after it are read.", maxPath, maxQuery))
		return
	}
	// The mux would send elsewhere, to an address that lacks what a proxy took off.
	if r.URL.Path != path.Clean(r.URL.Path) || r.URL.EscapedPath() != path.Clean(r.URL.EscapedPath()) {
		problem(w, http.StatusNotFound, "There is nothing at this address; it has a slash too many. "+seeSpec)
		return
	}
	if _, pattern := f.public.Handler(r); pattern != "" {
		f.answer(w, r, f.public)
		return
	}
	if !f.enter(w, r) {
		return
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, fmt.Sprintf("%d requests are being answered, which is the most at once; try again in a second.", maxInFlight))
		return
	}
	f.answer(w, r, f.routes)
}

const seeSpec = "What there is, is described at " + Prefix + "/openapi.yaml."

// enter reports whether a request brings a token, and answers it if not.
func (f *front) enter(w http.ResponseWriter, r *http.Request) bool {
	if len(f.tokens) == 0 {
		problem(w, http.StatusForbidden, "The API is closed, because signalbox has no token for it. Set SIGNALBOX_API_TOKEN to at least 32 random characters, such as the output of: openssl rand -hex 32")
		return false
	}
	token, wrong := bearer(r)
	challenge := `Bearer realm="signalbox"`
	if wrong == "" {
		if f.tokens.has(token) {
			return true
		}
		wrong = "The token is not one of those that signalbox was given."
		challenge += `, error="invalid_token"`
		f.refused(r)
	}
	w.Header().Set("WWW-Authenticate", challenge)
	problem(w, http.StatusUnauthorized, wrong)
	return false
}

// refused logs wrong tokens, and not so often that somebody could fill the log.
func (f *front) refused(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong++
	now := f.now()
	if !f.logged.IsZero() && now.Sub(f.logged) < wrongEvery {
		return
	}
	f.log.WarnContext(r.Context(), "a request to the API has a wrong token", "remote", r.RemoteAddr, "wrongSinceLast", f.wrong)
	f.wrong, f.logged = 0, now
}

// answer lets a mux answer, and sends it whole or not at all.
func (f *front) answer(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	handler, pattern := mux.Handler(r)
	a := &answer{header: http.Header{}}
	if pattern == "" {
		handler.ServeHTTP(a, r)
		if allow := a.header.Get("Allow"); a.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", allow)
			problem(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is not possible here; the API only reads: use GET.", clip(r.Method)))
			return
		}
		problem(w, http.StatusNotFound, "There is nothing at this address. "+seeSpec)
		return
	}
	// There is one format, whatever somebody would rather have.
	r = r.Clone(r.Context())
	r.Header.Del("Accept")
	if err := run(mux, a, r); err != nil {
		f.log.ErrorContext(r.Context(), "a request to the API failed", "path", pattern, "error", err)
		if errors.Is(err, errTooLarge) {
			problem(w, http.StatusInternalServerError, fmt.Sprintf("The answer is larger than %d MiB; ask for less, with limit or a filter.", maxAnswer>>20))
			return
		}
		problem(w, http.StatusInternalServerError, "signalbox could not answer; its log says why.")
		return
	}
	a.send(w, r)
}

// run calls a handler; a panic becomes an error.
func run(h http.Handler, a *answer, r *http.Request) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("panic: %w", v)
		default:
			err = fmt.Errorf("panic: %v", v)
		}
		if a.over {
			err = errTooLarge
		}
	}()
	h.ServeHTTP(a, r)
	return nil
}

// secure sets the headers that every answer has: nothing is kept by anybody in
// between, and no browser takes it for anything but data.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// problem answers with an error as of RFC 9457.
func problem(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: detail})
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// The other side may be gone; there is nobody to tell.
	_, _ = w.Write(append(body, '\n'))
}

var errTooLarge = errors.New("the answer is too large")

// answer holds what a handler writes until all of it is there.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	over   bool
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter]: the first status counts.
func (a *answer) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) {
	if a.over = a.over || a.body.Len()+len(p) > maxAnswer; a.over {
		return 0, errTooLarge
	}
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// send writes the answer, or that it is the one that the other side has already.
func (a *answer) send(w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), a.header)
	status := cmp.Or(a.status, http.StatusOK)
	if status == http.StatusOK {
		sum := sha256.Sum256(a.body.Bytes())
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
		w.Header().Set("ETag", tag)
		if known(r.Header.Values("If-None-Match"), tag) {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	// Who does not take the answer must not hold a place for ever. The next request
	// on the same connection has no deadline. A writer that knows none has to do without.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(sendTime))
	w.WriteHeader(status)
	// The other side may be gone; there is nobody to tell.
	_, _ = w.Write(a.body.Bytes())
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
}

// known reports whether a tag is among those of If-None-Match, which compares
// weakly: RFC 9110, section 13.1.2.
func known(given []string, tag string) bool {
	for t := range strings.SplitSeq(strings.Join(given, ","), ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}
