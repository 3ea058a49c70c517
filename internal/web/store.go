package web

import (
	"context"
	"time"
)

// Session is a person who signed in. It is kept under the digest of the token that
// only their browser has.
type Session struct {
	// UserID is the id of the account in Gitea.
	UserID int64 `json:"userId"`
	// Until is when it ends, whatever happens.
	Until time.Time `json:"until"`
	// Form is what a form must bring back.
	Form string `json:"form"`

	// SignIn is set, and nothing else but Until, while somebody is at Gitea to sign in.
	SignIn *Started `json:"signIn,omitempty"`
}

// Started is a sign-in that is under way.
type Started struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	// Return is the path that was asked for, below the address of signalbox.
	Return string `json:"return"`
}

// Sessions keeps sessions, or sign-ins that are under way, for all replicas. They vanish
// by themselves: sessions after a day, and sign-ins, which anybody can begin, soon after
// [SignInTime].
type Sessions interface {
	Get(key string) (s Session, revision uint64, ok bool)
	Put(ctx context.Context, key string, s Session, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	Sync(ctx context.Context) error
}
