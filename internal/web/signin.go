package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"signalbox/internal/pull"
)

const (
	// SignInTime is how long somebody may take at Gitea.
	SignInTime = 10 * time.Minute
	// providerTime bounds one request to Gitea.
	providerTime = 10 * time.Second
	// retryTime is how long Gitea is not asked again after it did not answer.
	retryTime = 3 * time.Second
	// signInRate and signInBurst bound the sign-ins that are begun, a second: who
	// begins one needs no account, and each is kept.
	signInRate  = 20
	signInBurst = 100
	// maxReturn bounds the path that a sign-in leads back to. Escaped, as it is on the
	// way there, it is up to three times as long and has to fit into an address.
	maxReturn = 1300
)

// provider is Gitea as the provider of OpenID Connect. What it says of itself is
// read when it is first needed, and again until that succeeds.
type provider struct {
	config Config
	http   *http.Client
	asking singleflight.Group

	mu    sync.Mutex
	found *oidc.Provider
	// failed is why it could not be read, which is believed until a time.
	failed error
	until  time.Time
}

func newProvider(c Config) *provider {
	return &provider{config: c, http: &http.Client{Timeout: providerTime}}
}

// context is one in which the libraries use the client of the provider.
func (p *provider) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.http)
}

// known returns what was read before, or why it could not be.
func (p *provider) known() (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil && p.config.Now().Before(p.until) {
		return nil, p.failed
	}
	return p.found, nil
}

// discover returns the provider and how to sign in with it. Many who need it at
// once cost one question.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	found, err := p.known()
	if err == nil && found == nil {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-p.asking.DoChan("", func() (any, error) { p.read(ctx); return nil, nil }):
		}
		found, err = p.known()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what Gitea says of its sign-in: %w", err)
	}
	if found == nil {
		return nil, nil, errors.New("read what Gitea says of its sign-in: it could not be read")
	}
	return found, &oauth2.Config{
		ClientID:     p.config.SignIn.ClientID,
		ClientSecret: p.config.SignIn.Secret.Reveal(),
		Endpoint:     found.Endpoint(),
		RedirectURL:  p.config.URL.JoinPath("sign-in", "back").String(),
		Scopes:       []string{oidc.ScopeOpenID},
	}, nil
}

// read asks Gitea. It writes its issuer with a slash at the end or without, as its
// version is.
func (p *provider) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(p.context(context.WithoutCancel(ctx)), providerTime)
	defer cancel()
	found, err := oidc.NewProvider(ctx, p.issuer())
	if err != nil {
		if other, otherErr := oidc.NewProvider(ctx, p.issuer()+"/"); otherErr == nil {
			found, err = other, nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found, p.failed, p.until = found, err, p.config.Now().Add(retryTime)
}

func (p *provider) issuer() string { return strings.TrimSuffix(p.config.Gitea.String(), "/") }

// sessionRoutes are those of who need not be signed in yet.
func (s *Server) sessionRoutes(mux *http.ServeMux) {
	mux.Handle("GET /sign-in", s.plain(s.startSignIn))
	mux.Handle("GET /sign-in/back", s.plain(s.finishSignIn))
	mux.Handle("GET /signed-out", s.plain(func(w http.ResponseWriter, v *visit) error {
		return s.show(w, v, page{Template: "signedout", Title: "Signed out"})
	}))
	mux.Handle("POST /sign-out", s.answer(s.signOut))
}

// plain answers without looking who asks.
func (s *Server) plain(f handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*providerTime)
		defer cancel()
		v := &visit{Request: r.WithContext(ctx), now: s.Now()}
		if err := f(w, v); err != nil {
			s.fail(w, v, err)
		}
	})
}

// errNoSignIn is answered where nobody can sign in.
var errNoSignIn = &problem{Code: http.StatusNotFound, Title: "Nobody can sign in here", Text: "The sign-in is not set up. What there is can be read without it."}

// startSignIn leads to Gitea. The browser gets a token of its own for that, so that
// a session that it has stays until there is another.
func (s *Server) startSignIn(w http.ResponseWriter, v *visit) error {
	if s.SignIn == nil {
		return errNoSignIn
	}
	back := returnPath(v.URL.Query().Get("return"))
	if !s.signIns.AllowN(v.now, 1) {
		w.Header().Set("Retry-After", "5")
		return &problem{Code: http.StatusTooManyRequests, Title: "Too many people sign in", Text: "Try again in a few seconds.", Retry: signInPath(back)}
	}
	_, config, err := s.oidc.discover(v.Context())
	if err != nil {
		return s.providerFailed(v, err, back)
	}
	token, verifier := newToken(), oauth2.GenerateVerifier()
	started := Started{State: newToken(), Nonce: newToken(), Verifier: verifier, Return: back}
	if _, err := s.SignIns.Put(v.Context(), sessionKey(token), Session{Until: v.now.Add(SignInTime), SignIn: &started}, 0); err != nil {
		return fmt.Errorf("keep a sign-in: %w", err)
	}
	s.setCookie(w, startCookie, token, SignInTime)
	http.Redirect(w, v.Request, config.AuthCodeURL(started.State, oidc.Nonce(started.Nonce), oauth2.S256ChallengeOption(verifier)), http.StatusSeeOther)
	return nil
}

// finishSignIn takes who comes back from Gitea. Each sign-in that was begun is
// good once.
func (s *Server) finishSignIn(w http.ResponseWriter, v *visit) error {
	if s.SignIn == nil {
		return errNoSignIn
	}
	key, session, revision, err := s.stored(v.Request, s.SignIns, startCookie)
	if err != nil {
		return err
	}
	query := v.URL.Query()
	if key == "" || session.SignIn == nil || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(session.SignIn.State)) != 1 {
		return &problem{
			Code: http.StatusBadRequest, Title: "This sign-in was not begun here",
			Text: "It took too long, was done already, or was begun in another window. Begin anew.", Retry: signInPath("/"),
		}
	}
	started := *session.SignIn
	// Whoever comes second with the same finds another revision.
	if _, err := s.SignIns.Put(v.Context(), key, Session{Until: v.now}, revision); err != nil {
		return fmt.Errorf("take up a sign-in: %w", err)
	}
	if err := s.SignIns.Delete(v.Context(), key); err != nil {
		return fmt.Errorf("take up a sign-in: %w", err)
	}
	s.setCookie(w, startCookie, "", 0)
	if said := query.Get("error"); said != "" {
		return refusedSignIn(said, started.Return)
	}
	id, err := s.whoSignedIn(v.Context(), query.Get("code"), started)
	if err != nil {
		return s.providerFailed(v, err, started.Return)
	}
	// Whom signalbox cannot see would be signed out at once, and led here again, over
	// and over.
	switch _, err := s.People.ByID(v.Context(), id); {
	case errors.Is(err, pull.ErrNotFound):
		return &problem{
			Code: http.StatusForbidden, Title: "signalbox cannot see your account",
			Text: "Gitea signed you in, but does not show your account to that of signalbox, perhaps because it is private. Nothing is kept.", Retry: signInPath(started.Return),
		}
	case err != nil:
		return s.providerFailed(v, err, started.Return)
	}
	// A session that the browser has is over, whoever it gave it to.
	if old, _, _, err := s.stored(v.Request, s.Sessions, sessionCookie); err == nil && old != "" {
		if err := s.Sessions.Delete(v.Context(), old); err != nil {
			return fmt.Errorf("end the session before: %w", err)
		}
	}
	token := newToken()
	if _, err := s.Sessions.Put(v.Context(), sessionKey(token), Session{UserID: id, Until: v.now.Add(sessionTime), Form: newToken()}, 0); err != nil {
		return fmt.Errorf("keep a session: %w", err)
	}
	s.setCookie(w, sessionCookie, token, sessionTime)
	s.Log.InfoContext(v.Context(), "signed in", "user", id)
	http.Redirect(w, v.Request, s.path(started.Return), http.StatusSeeOther)
	return nil
}

// whoSignedIn takes a code to Gitea, and returns the id of the account. What else
// Gitea gives for the code is forgotten.
func (s *Server) whoSignedIn(ctx context.Context, code string, started Started) (int64, error) {
	found, config, err := s.oidc.discover(ctx)
	if err != nil {
		return 0, err
	}
	ctx = s.oidc.context(ctx)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(started.Verifier))
	if err != nil {
		return 0, fmt.Errorf("give the code to Gitea: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return 0, errors.New("gitea gave no id token: is the application one of OpenID Connect?")
	}
	id, err := found.VerifierContext(ctx, &oidc.Config{ClientID: config.ClientID, Now: s.Now}).Verify(ctx, raw)
	if err != nil {
		return 0, fmt.Errorf("check the id token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(started.Nonce)) != 1 {
		return 0, errors.New("check the id token: it is for another sign-in")
	}
	user, err := strconv.ParseInt(id.Subject, 10, 64)
	if err != nil || user <= 0 {
		return 0, errors.New("check the id token: its subject is not the id of an account")
	}
	return user, nil
}

// providerFailed is the answer where Gitea could not be asked, or answered what
// cannot be. The log says more than the page.
func (s *Server) providerFailed(v *visit, err error, back string) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		// Its text is the whole answer.
		err = fmt.Errorf("gitea refused the code: %s %s", refused.Response.Status, clean(refused.ErrorCode))
	}
	s.Log.WarnContext(v.Context(), "sign-in failed", "error", err)
	return &problem{
		Code: http.StatusBadGateway, Title: "You could not be signed in",
		Text: "Gitea could not be asked, or its answer could not be used. Nothing is lost; the log of signalbox says what it was.", Retry: signInPath(back),
	}
}

// refusedSignIn is the answer to the error that Gitea led back with.
func refusedSignIn(said, back string) error {
	p := &problem{Code: http.StatusForbidden, Title: "Gitea did not sign you in", Text: "It said: " + clip(clean(said), 100) + ".", Retry: signInPath(back)}
	if said == "access_denied" {
		p.Title, p.Text = "You are not signed in", "You did not let signalbox know who you are. It asks for nothing else."
	}
	return p
}

// returnPath is a path below the address that a sign-in may lead back to, or that
// of the board. Nothing that a browser could take for another host passes.
func returnPath(p string) string {
	if len(p) > maxReturn || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n\t\x00") ||
		strings.HasPrefix(p, "/sign-in") || strings.HasPrefix(p, "/sign-out") || strings.HasPrefix(p, "/signed-out") {
		return "/"
	}
	for _, r := range p {
		if r < 0x20 || r == 0x7f {
			return "/"
		}
	}
	return p
}
