// Package web serves the pages of signalbox: the pull requests with their evidence,
// the clusters, the digests, the ledger, and how signalbox itself stands. Pages are
// made on the server and can be read without scripts; with them they follow what
// changes. Who may see a repository in Gitea sees it here, and no more.
package web

import (
	"errors"
	"log/slog"
	"net/url"
	"time"

	"signalbox/internal/secret"
)

// ErrNoDeadLetter is of a dead letter that is not there any more.
var ErrNoDeadLetter = errors.New("there is no such dead letter")

// Config is what the pages are made of.
type Config struct {
	// URL is the address of signalbox as people open it, with a slash at its end. A
	// proxy takes its path off before it passes a request on.
	URL *url.URL
	// Gitea is the address of Gitea as people open it, with a slash at its end.
	Gitea *url.URL
	// SignIn is nil where nobody can sign in, which needs Public.
	SignIn *SignIn
	// Public shows everything to everybody who can reach the pages; deciding still
	// needs an account.
	Public bool
	// Operators are logins, in any letter case, of those who see everything and may
	// retry and drop dead letters.
	Operators []string
	// Clusters are the names of the configured clusters, in their order.
	Clusters []string

	Pulls     Pulls
	Facts     Facts
	Decisions Decisions
	Digests   Digests
	Health    Health
	Rights    Rights
	People    People
	Commands  Commands
	Changes   Changes
	// Sessions and SignIns are two stores; those who sign in are not among those who did.
	Sessions, SignIns Sessions

	Version string
	Log     *slog.Logger
	Now     func() time.Time
}

// SignIn is how people sign in: Gitea as the provider of OpenID Connect.
type SignIn struct {
	ClientID string
	Secret   secret.Value
}
