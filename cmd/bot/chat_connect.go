package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"signalbox/internal/bus"
	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/matrix"
	"signalbox/internal/slack"
)

// adaptersOf makes the connections that are configured.
func adaptersOf(c *config.Config) map[chat.Platform]makeAdapter {
	out := map[chat.Platform]makeAdapter{}
	if s := c.Chat.Slack; s != nil {
		out[chat.Slack] = func(a *app, r chat.Receiver) (adapter, error) {
			made, err := slack.New(slack.Config{
				BotToken: s.BotToken, AppToken: s.AppToken, SigningSecret: s.SigningSecret, APIURL: s.APIURL,
			}, r, a.log, a.registry)
			if err != nil {
				return nil, err
			}
			return slackAdapter{made, !s.SigningSecret.Empty()}, nil
		}
	}
	if m := c.Chat.Matrix; m != nil {
		out[chat.Matrix] = func(a *app, r chat.Receiver) (adapter, error) {
			bucket, err := bus.OpenBucket[string](context.Background(), a.bus, bucketMatrix)
			if err != nil {
				return nil, err
			}
			return matrix.New(matrix.Config{
				Homeserver: m.Homeserver.String(), Token: m.Token, Rooms: m.Rooms,
				Encryption: matrix.Encryption{Dir: m.EncryptionDir, PickleKey: m.PickleKey},
				Allowed:    a.mayInvite,
			}, syncStore{bucket}, r, a.log, a.registry)
		}
	}
	return out
}

// slackAdapter is the adapter of Slack, with its part of the HTTP server.
type slackAdapter struct {
	*slack.Adapter
	http bool
}

// routed is an adapter that the platform calls.
type routed interface {
	route(mux *http.ServeMux)
}

func (s slackAdapter) route(mux *http.ServeMux) {
	if s.http {
		mux.Handle("/hooks/slack/", s.Handler())
	}
}

// mayInvite lets whoever is known in Gitea talk to signalbox alone.
func (a *app) mayInvite(ctx context.Context, _ chat.Room, inviter chat.User) bool {
	_, known, err := a.chats.handler.Directory.Person(ctx, inviter)
	if err != nil {
		a.log.WarnContext(ctx, "who invites is not known", "user", inviter.String(), "error", err)
	}
	return known
}

// bucketMatrix holds how far Matrix was read.
const bucketMatrix = "matrix"

// syncStore keeps how far Matrix was read, by homeserver and account. Every replica
// reads all of it, and whoever wrote last decides where the next start begins: events
// that come again by that are the same events, and each replica writes only what it has
// handed on.
type syncStore struct{ bucket *bus.Bucket[string] }

// syncKey is where the position of an account is kept.
func syncKey(homeserver, account string) string {
	sum := sha256.Sum256([]byte(homeserver + " " + account))
	return "since." + hex.EncodeToString(sum[:12])
}

// Load implements [matrix.SyncStore].
func (s syncStore) Load(ctx context.Context, homeserver, account string) (string, error) {
	if err := s.bucket.Sync(ctx); err != nil {
		return "", fmt.Errorf("read how far Matrix was read: %w", err)
	}
	token, _, _ := s.bucket.Get(syncKey(homeserver, account))
	return token, nil
}

// Save implements [matrix.SyncStore].
func (s syncStore) Save(ctx context.Context, homeserver, account, token string) error {
	if _, err := s.bucket.Set(ctx, syncKey(homeserver, account), token); err != nil {
		return fmt.Errorf("keep how far Matrix was read: %w", err)
	}
	return nil
}
