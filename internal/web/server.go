package web

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"golang.org/x/time/rate"
)

// Times of the pages.
const (
	// pageTime bounds a page, with all that it asks of Gitea.
	pageTime = 15 * time.Second
	// bodyTime bounds how long somebody may send a form, and writeTime how long a
	// page may be on its way, with the time to make it.
	bodyTime  = 10 * time.Second
	writeTime = time.Minute
)

// maxBody bounds a form, and maxAddress the path and the query that are asked for, in
// bytes: a page may repeat the query in hundreds of links.
const (
	maxBody    = 64 << 10
	maxAddress = 4 << 10
)

// errLong is answered to an address that is too long.
var errLong = &problem{
	Code: http.StatusRequestURITooLong, Title: "That address is too long",
	Text: fmt.Sprintf("signalbox reads addresses of at most %d KB.", maxAddress>>10),
}

// Server serves the pages.
type Server struct {
	Config
	pages      *pages
	assets     *assets
	rights     *rightsCache
	oidc       *provider
	live       *streams
	signIns    *rate.Limiter
	commanders *commanders
	handler    http.Handler
	// ended is closed when the streams have to end.
	ended chan struct{}
	end   func()
}

// New makes a server. It asks nobody for anything; Gitea may be down.
func New(c Config) (*Server, error) {
	switch {
	case c.URL == nil || c.URL.Host == "" || !strings.HasSuffix(c.URL.Path, "/"):
		return nil, errors.New("web: the address of signalbox is missing or does not end with a slash")
	case c.Gitea == nil || c.Gitea.Host == "" || !strings.HasSuffix(c.Gitea.Path, "/"):
		return nil, errors.New("web: the address of Gitea is missing or does not end with a slash")
	case c.SignIn == nil && !c.Public:
		return nil, errors.New("web: nobody could see anything: set up the sign-in, or make the pages public")
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{
		Config:     c,
		rights:     newRightsCache(c.Rights, c.Now),
		live:       newStreams(),
		signIns:    rate.NewLimiter(signInRate, signInBurst),
		commanders: newCommanders(),
		ended:      make(chan struct{}),
	}
	s.end = sync.OnceFunc(func() { close(s.ended) })
	if c.SignIn != nil {
		s.oidc = newProvider(c)
	}
	var err error
	if s.assets, err = loadAssets(); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	if s.pages, err = loadPages(s.functions()); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	// The padding of random length keeps the length of a compressed page from
	// telling what in it is secret.
	compress, err := gzhttp.NewWrapper(gzhttp.RandomJitter(64, 0, false))
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	s.handler = s.secure(s.route(compress))
	return s, nil
}

// Handler answers everything below the address of signalbox.
func (s *Server) Handler() http.Handler { return s.handler }

// Close ends the streams of live updates, which else last as long as somebody
// looks. Pages are answered as before.
func (s *Server) Close() { s.end() }

// path is a path below the address of signalbox, as a browser needs it.
func (s *Server) path(p string) string { return strings.TrimSuffix(s.URL.Path, "/") + p }

// router takes the handlers of pages.
type router struct {
	s   *Server
	mux *http.ServeMux
}

// page is a page for who may see anything at all.
func (r router) page(pattern string, f handler) { r.mux.Handle(pattern, r.s.answer(f)) }

// whole is a page about the whole installation: its clusters, its digests, its
// health. It does not exist for who may not see that.
func (r router) whole(pattern string, f handler) {
	r.page(pattern, func(w http.ResponseWriter, v *visit) error {
		if !v.sight.whole {
			return errNotFound
		}
		return f(w, v)
	})
}

// operators is a page, or an action, for operators only.
func (r router) operators(pattern string, f handler) {
	r.page(pattern, func(w http.ResponseWriter, v *visit) error {
		if !v.viewer.Operator {
			return errNotFound
		}
		return f(w, v)
	})
}

// route makes the routes. Live updates are not compressed: each has to arrive at
// once.
func (s *Server) route(compress func(http.Handler) http.HandlerFunc) http.Handler {
	pages := http.NewServeMux()
	r := router{s, pages}
	s.pullRoutes(r)
	s.overviewRoutes(r)
	s.sessionRoutes(pages)
	pages.HandleFunc("GET /static/{hash}/{file}", s.assets.serve)

	compressed := compress(s.missing(pages))
	mux := http.NewServeMux()
	mux.Handle("GET /live", s.liveHandler())
	mux.Handle("/", compressed)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.EscapedPath())+len(r.URL.RawQuery) > maxAddress {
			s.fail(w, &visit{Request: r, now: s.Now()}, errLong)
			return
		}
		if r.URL.Path == "" || path.Clean(r.URL.Path) != r.URL.Path {
			// The mux would lead to the clean path, without that of the proxy.
			s.answer(notFound).ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// missing answers what no route is for with a page, as the mux would: with 404 or
// 405.
func (s *Server) missing(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		said := &codeOnly{header: http.Header{}}
		h.ServeHTTP(said, r)
		s.answer(func(w http.ResponseWriter, _ *visit) error {
			if said.code != http.StatusMethodNotAllowed {
				return errNotFound
			}
			w.Header()["Allow"] = said.header["Allow"]
			return &problem{Code: said.code, Title: "That cannot be done here", Text: "There is a page here, but nothing that takes a " + r.Method + "."}
		}).ServeHTTP(w, r)
	})
}

// codeOnly takes an answer, and keeps its code and header.
type codeOnly struct {
	header http.Header
	code   int
}

func (c *codeOnly) Header() http.Header         { return c.header }
func (c *codeOnly) Write(b []byte) (int, error) { return len(b), nil }
func (c *codeOnly) WriteHeader(code int)        { c.code = code }

// secure sets the headers that every answer has.
func (s *Server) secure(next http.Handler) http.Handler {
	https := s.URL.Scheme == "https"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if https {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		// A writer that has no deadline, as in a test, is not slow either. What follows
		// changes sets later ones.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
		next.ServeHTTP(w, r)
	})
}
