package handlers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

// Links tells what the ledger says of an account of a chat.
type Links interface {
	Links(user string) decision.Ledger
}

// Directory tells who in Gitea an account of a chat is: by the configuration, or
// by a link that the person made from their account in Gitea. Whoever uses a page
// has signed in with that account. Names that people choose, and addresses, say
// nothing.
type Directory struct {
	// Configured are logins in Gitea, by account.
	Configured map[chat.User]string
	Links      Links
	People     *People
}

// Person returns who an account is, as called now. False means that nobody has
// said so, or that the account in Gitea is gone.
func (d *Directory) Person(ctx context.Context, user chat.User) (pull.Person, bool, error) {
	var person pull.Person
	var err error
	if user.Platform == PagePlace {
		id, _ := strconv.ParseInt(user.ID, 10, 64)
		if id <= 0 {
			return pull.Person{}, false, nil
		}
		person, err = d.People.ByID(ctx, id)
	} else if login, ok := d.Configured[user]; ok {
		person, err = d.People.ByName(ctx, login)
	} else if link, ok := d.Links.Links(user.String()).Linked(); ok {
		person, err = d.People.ByID(ctx, link.By.ID)
	} else {
		return pull.Person{}, false, nil
	}
	switch {
	case errors.Is(err, pull.ErrNotFound):
		return pull.Person{}, false, nil
	case err != nil:
		return pull.Person{}, false, fmt.Errorf("find out who %s is: %w", user, err)
	}
	return person, true, nil
}

// Code is a one-time code by which an account of a chat is linked.
type Code struct {
	User  chat.User `json:"user"`
	Until time.Time `json:"until"`
	// Used is the cause by which it was used, or empty.
	Used string `json:"used,omitempty"`
}

// Codes is where codes are kept, by the hash of the code.
type Codes interface {
	Get(key string) (c Code, revision uint64, ok bool)
	Put(ctx context.Context, key string, c Code, revision uint64) (uint64, error)
	Sync(ctx context.Context) error
}

// codeTime is how long a code can be used.
const codeTime = 15 * time.Minute

// codeBytes are the random bytes of a code: enough that nobody guesses one of
// those that are valid.
const codeBytes = 10

var codeText = base32.StdEncoding.WithPadding(base32.NoPadding)

// newCode makes a code for an account.
func newCode(ctx context.Context, codes Codes, user chat.User, now time.Time) (string, error) {
	random := make([]byte, codeBytes)
	// It never fails; see there.
	_, _ = rand.Read(random)
	code := codeText.EncodeToString(random)
	if _, err := codes.Put(ctx, codeKey(code), Code{User: user, Until: now.Add(codeTime).UTC()}, 0); err != nil {
		return "", fmt.Errorf("make a code for %s: %w", user, err)
	}
	return code, nil
}

// codeKey hides a code where it is kept. Letter case does not matter.
func codeKey(code string) string {
	sum := sha256.Sum256([]byte(strings.ToUpper(code)))
	return hex.EncodeToString(sum[:])
}

// useCode takes a code for a cause, once. False means that it is none, was used
// for another cause, or is too old.
func useCode(ctx context.Context, codes Codes, code, cause string, now time.Time) (chat.User, bool, error) {
	if err := codes.Sync(ctx); err != nil {
		return chat.User{}, false, fmt.Errorf("look for the code: %w", err)
	}
	c, revision, ok := codes.Get(codeKey(code))
	switch {
	case !ok, c.Used != "" && c.Used != cause, c.Used == "" && !now.Before(c.Until):
		return chat.User{}, false, nil
	case c.Used == cause:
		return c.User, true, nil
	}
	c.Used = cause
	if _, err := codes.Put(ctx, codeKey(code), c, revision); err != nil {
		return chat.User{}, false, fmt.Errorf("use the code: %w", err)
	}
	return c.User, true, nil
}
