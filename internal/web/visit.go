package web

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// visit is one request: who asks, what they may see, and when it is.
type visit struct {
	*http.Request
	viewer viewer
	sight  sight
	now    time.Time
}

// handler answers a visit. An error is answered with a page: errNotFound, a
// problem, or anything else, which is logged and not told.
type handler func(w http.ResponseWriter, v *visit) error

// errNotFound is answered where there is nothing, and in the very same way where
// the viewer may not see what there is.
var errNotFound = &problem{
	Code: http.StatusNotFound, Title: "There is nothing here",
	Text: "There is no such page, or you may not see it. signalbox shows you the pull requests of those repositories that you can read in Gitea.",
}

func notFound(http.ResponseWriter, *visit) error { return errNotFound }

// problem is an answer other than what was asked for.
type problem struct {
	// Code is that of HTTP.
	Code        int
	Title, Text string
	// Retry, if set, is where to try again, as a path below the address.
	Retry string
}

// Error implements error.
func (p *problem) Error() string { return p.Title + ": " + p.Text }

// fragment reports whether the script of a page asks, and wants only what changes.
func fragment(r *http.Request) bool { return r.Header.Get("X-Signalbox-Fragment") == "main" }

// answer finds out who asks, and lets f answer them. Where nobody may see anything
// without an account, who has none is led to the sign-in.
func (s *Server) answer(f handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTime)
		defer cancel()
		v, err := s.visitOf(w, r.WithContext(ctx))
		switch {
		case err != nil:
		case v.viewer.anonymous() && !s.Public && v.Method == http.MethodGet && !fragment(v.Request):
			http.Redirect(w, r, s.path(signInPath(here(r))), http.StatusSeeOther)
			return
		case v.viewer.anonymous() && !s.Public:
			err = &problem{Code: http.StatusUnauthorized, Title: "You are not signed in", Text: "Sign in, and try again."}
		default:
			err = f(w, v)
		}
		if err != nil {
			s.fail(w, v, err)
		}
	})
}

// visitOf returns who asks, and what they see. With an error, the visit is that of
// somebody who sees nothing.
func (s *Server) visitOf(w http.ResponseWriter, r *http.Request) (*visit, error) {
	v := &visit{Request: r, now: s.Now()}
	var err error
	if v.viewer, err = s.viewerOf(w, r); err != nil {
		return v, err
	}
	v.sight = s.sightOf(r.Context(), v.viewer)
	return v, nil
}

// fail answers with what went wrong.
func (s *Server) fail(w http.ResponseWriter, v *visit, err error) {
	var p *problem
	if !errors.As(err, &p) {
		if v.Context().Err() == nil || errors.Is(err, context.DeadlineExceeded) {
			s.Log.ErrorContext(v.Context(), "page failed", "path", v.URL.Path, "error", err)
		}
		p = &problem{Code: http.StatusInternalServerError, Title: "That did not work", Text: "signalbox could not make this page. Its log says why."}
	}
	if err := s.show(w, v, page{Template: "problem", Title: p.Title, Code: p.Code, Data: p}); err != nil {
		s.Log.ErrorContext(v.Context(), "page failed", "path", v.URL.Path, "error", err)
		http.Error(w, p.Title, p.Code)
	}
}
