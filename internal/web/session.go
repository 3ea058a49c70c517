package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"signalbox/internal/pull"
)

// sessionTime is how long a sign-in lasts, whatever happens.
const sessionTime = 12 * time.Hour

// The names of the cookies. Where the address is https they get the prefix that
// keeps other hosts of the domain from setting them.
const (
	sessionCookie = "signalbox"
	startCookie   = "signalbox-start"
)

// newToken is 32 random bytes as text.
func newToken() string {
	b := make([]byte, 32)
	// It never fails; see package rand.
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// sessionKey is what a session is kept under. Who reads the store cannot make the
// token of it.
func sessionKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func (s *Server) cookieName(name string) string {
	if s.URL.Scheme == "https" {
		return "__Host-" + name
	}
	return name
}

// setCookie gives the browser a token, or takes it away if that is empty. The
// prefix of the name wants the path of all of the host.
func (s *Server) setCookie(w http.ResponseWriter, name, token string, lasts time.Duration) {
	age := int(lasts / time.Second)
	if token == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(name), Value: token, Path: "/", MaxAge: age,
		Secure: s.URL.Scheme == "https", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// stored returns what is kept under the token of a cookie. What another replica
// has just kept is waited for.
func (s *Server) stored(r *http.Request, in Sessions, name string) (key string, found Session, revision uint64, err error) {
	// Whatever is no token of ours is not looked for.
	cookies := r.CookiesNamed(s.cookieName(name))
	if len(cookies) == 0 || len(cookies[0].Value) != base64.RawURLEncoding.EncodedLen(32) {
		return "", Session{}, 0, nil
	}
	key = sessionKey(cookies[0].Value)
	found, revision, ok := in.Get(key)
	if !ok {
		if err := in.Sync(r.Context()); err != nil {
			return "", Session{}, 0, fmt.Errorf("look for a session: %w", err)
		}
		if found, revision, ok = in.Get(key); !ok {
			return "", Session{}, 0, nil
		}
	}
	if !s.Now().Before(found.Until) {
		return "", Session{}, 0, nil
	}
	return key, found, revision, nil
}

// viewerOf returns who sends a request: the account of the session as it is called
// now. An account that is gone is signed out.
func (s *Server) viewerOf(w http.ResponseWriter, r *http.Request) (viewer, error) {
	if s.SignIn == nil {
		return viewer{}, nil
	}
	key, session, _, err := s.stored(r, s.Sessions, sessionCookie)
	if err != nil {
		s.Log.ErrorContext(r.Context(), "sessions cannot be read", "error", err)
		return viewer{}, &problem{
			Code: http.StatusServiceUnavailable, Title: "Who you are cannot be checked now",
			Text: "signalbox cannot read its sessions. Try again in a moment.", Retry: here(r),
		}
	}
	if key == "" || session.SignIn != nil || session.UserID == 0 {
		return viewer{}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	person, err := s.People.ByID(ctx, session.UserID)
	switch {
	case errors.Is(err, pull.ErrNotFound):
		s.Log.InfoContext(r.Context(), "signed out, as the account is gone", "user", session.UserID)
		s.setCookie(w, sessionCookie, "", 0)
		if err := s.Sessions.Delete(r.Context(), key); err != nil {
			s.Log.WarnContext(r.Context(), "session not deleted", "error", err)
		}
		return viewer{}, nil
	case err != nil && s.Public:
		// They see what everybody sees, and cannot decide.
		s.Log.WarnContext(r.Context(), "account not read", "user", session.UserID, "error", err)
		return viewer{}, nil
	case err != nil:
		s.Log.WarnContext(r.Context(), "account not read", "user", session.UserID, "error", err)
		return viewer{}, &problem{
			Code: http.StatusServiceUnavailable, Title: "Who you are cannot be checked now",
			Text: "signalbox asks Gitea whether your account is still there, and Gitea does not answer. You stay signed in; try again in a moment.", Retry: here(r),
		}
	case person.ID != session.UserID || person.Login == "":
		return viewer{}, fmt.Errorf("account %d was read as another: %d", session.UserID, person.ID)
	}
	return viewer{Person: person, Operator: s.operator(person), Form: session.Form, key: key, until: session.Until}, nil
}

// signOut ends the session of the viewer.
func (s *Server) signOut(w http.ResponseWriter, v *visit) error {
	if err := s.checkForm(w, v); err != nil {
		return err
	}
	if err := s.Sessions.Delete(v.Context(), v.viewer.key); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	s.setCookie(w, sessionCookie, "", 0)
	http.Redirect(w, v.Request, s.path("/signed-out"), http.StatusSeeOther)
	return nil
}

// origin is that of the pages, as a browser writes it: without a port that goes
// without saying.
func (s *Server) origin() string {
	host := s.URL.Host
	if port := map[string]string{"https": ":443", "http": ":80"}[s.URL.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return s.URL.Scheme + "://" + strings.ToLower(host)
}

// checkForm reads a form, and refuses what was not sent from a page that signalbox
// gave to this very session.
func (s *Server) checkForm(w http.ResponseWriter, v *visit) error {
	foreign := &problem{
		Code: http.StatusForbidden, Title: "Nothing was done",
		Text: "This did not come from a page of signalbox that was made for you: perhaps you signed in again since. Open the page anew, and try again.",
	}
	switch site := v.Header.Get("Sec-Fetch-Site"); {
	case v.viewer.anonymous():
		return &problem{Code: http.StatusUnauthorized, Title: "You are not signed in", Text: "Nothing was done. Sign in, and try again."}
	case site != "" && site != "same-origin":
		return foreign
	}
	if origin := v.Header.Get("Origin"); origin != "" && origin != s.origin() {
		return foreign
	}
	control := http.NewResponseController(w)
	// A writer that has no deadlines, as in a test, is not slow either.
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	v.Body = http.MaxBytesReader(w, v.Body, maxBody)
	if err := v.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return &problem{Code: http.StatusRequestEntityTooLarge, Title: "That was too much", Text: fmt.Sprintf("Nothing was done. A form has at most %d KB.", maxBody>>10)}
		}
		return &problem{Code: http.StatusBadRequest, Title: "That could not be read", Text: "Nothing was done. Open the page anew, and try again."}
	}
	_ = control.SetReadDeadline(time.Time{})
	given := v.PostForm.Get("form")
	if v.viewer.Form == "" || subtle.ConstantTimeCompare([]byte(given), []byte(v.viewer.Form)) != 1 {
		return foreign
	}
	return nil
}
