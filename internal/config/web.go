package config

import (
	"fmt"
	"net/url"
	"strings"

	"signalbox/internal/secret"
	"signalbox/internal/yamlfile"
)

// Web is the pages of signalbox and its API.
type Web struct {
	// URL ends with a slash; nil where there are no pages.
	URL *url.URL
	// ClientID is empty where nobody can sign in.
	ClientID string
	Secret   secret.Value
	Public   bool
	// Operators are logins.
	Operators []string
	// APIToken lets programs read everything; empty for no API.
	APIToken secret.Value
}

// Variables of the environment for pages; each also exists with [fileSuffix].
const (
	EnvOAuthSecret = "SIGNALBOX_OAUTH_SECRET"
	EnvAPIToken    = "SIGNALBOX_API_TOKEN"
)

// minAPIToken is the length in bytes below which a token is refused: who guesses it
// reads everything.
const minAPIToken = 32

func (l *loader) web(f *WebFile) Web {
	var w Web
	if l.purpose == Run {
		w.APIToken = l.secret(EnvAPIToken, "")
		if n := len(w.APIToken.Reveal()); n > 0 && n < minAPIToken {
			l.envProblem(EnvAPIToken, fmt.Sprintf("is shorter than %d bytes and could be guessed", minAPIToken), "openssl rand -hex 32 makes a good one")
		}
	}
	if f == nil {
		return w
	}
	at := yamlfile.Path{"web"}
	if f.URL == "" {
		l.problem(at.At("url"), "is missing", "write the address of signalbox as people open it")
	} else if w.URL = l.address(at.At("url"), f.URL); w.URL != nil && w.URL.Scheme == "http" && !loopback(w.URL) {
		l.warn(at.At("url"), "is not encrypted: whoever sees the traffic can act as who signed in", "use https")
	}
	w.Public, w.Operators = f.Public, f.Operators
	switch {
	case f.SignIn == nil && !f.Public:
		l.problem(at, "lets nobody in", "give signIn, or public: true to show everything to everybody")
	case f.SignIn != nil:
		if strings.TrimSpace(f.SignIn.ClientID) == "" {
			l.problem(at.At("signIn", "clientID"), "is missing", "make an OAuth2 application in Gitea; its redirect URI is sign-in/back below web.url")
		}
		w.ClientID = f.SignIn.ClientID
		if l.purpose == Run {
			w.Secret = l.secret(EnvOAuthSecret, "the client secret of signalbox's OAuth2 application in Gitea")
		}
	}
	if f.Public {
		l.warn(at.At("public"), "shows every repository and cluster to everybody who can reach the pages", "")
	}
	for i, login := range f.Operators {
		if !namePattern.MatchString(login) {
			l.problem(at.At("operators", i), fmt.Sprintf("%q is no login", login), "write the name of the account in Gitea")
		}
	}
	return w
}
