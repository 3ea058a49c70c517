package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/bus"
	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/render"
)

// Names of the buckets and consumers of chats. They stay the same for ever.
const (
	bucketRequests      = "requests"
	bucketOutbox        = "outbox"
	bucketCards         = "cards"
	bucketSubscriptions = "subscriptions"
	bucketCodes         = "codes"

	consumerChat   = "chat"
	consumerCards  = "cards-"
	consumerOutbox = "outbox-"
)

// How long is kept what was dealt with, or never will be: all of it is of use for
// a much shorter time, and anybody in a chat can bring more of it.
const (
	requestsKept = 30 * 24 * time.Hour
	outboxKept   = 2 * 24 * time.Hour
	codesKept    = 24 * time.Hour
)

// adapter is a connection to a chat.
type adapter interface {
	chat.Poster
	// Run serves until the context ends. A chat that is down ends nothing.
	Run(ctx context.Context) error
	// Trouble says why signalbox cannot speak or listen there now, or nothing.
	Trouble() string
}

// talk is what it takes for people to give commands elsewhere than on the pull request,
// and to be answered there.
type talk struct {
	requests  *handlers.Requests
	directory *handlers.Directory
	outbox    *handlers.Outbox
	outgoing  *bus.Bucket[handlers.Outgoing]
}

// wireTalk opens where requests and answers are kept.
func (a *app) wireTalk(ctx context.Context) error {
	bucket, err := bus.OpenBriefBucket[handlers.Request](ctx, a.bus, bucketRequests, requestsKept)
	if err != nil {
		return err
	}
	a.talk.requests = &handlers.Requests{Bucket: bucket, Conflict: isConflict}
	bucket.OnChange(a.talk.requests.Change)
	if a.talk.outgoing, err = bus.OpenBriefBucket[handlers.Outgoing](ctx, a.bus, bucketOutbox, outboxKept); err != nil {
		return err
	}
	a.talk.outbox = &handlers.Outbox{
		Store: a.talk.outgoing, Posters: map[chat.Platform]chat.Poster{}, Conflict: isConflict, Now: time.Now, Log: a.log,
	}
	a.talk.directory = &handlers.Directory{Configured: peopleOf(a.config), Links: a.ledger, People: handlers.NewPeople(a.forge, time.Now)}
	return nil
}

// chats is all of signalbox that talks in chats.
type chats struct {
	adapters map[chat.Platform]adapter
	handler  *handlers.Chat
	cards    map[chat.Platform]*handlers.Cards
	talk     *talk
	records  *bus.Bucket[handlers.Record]
}

// receiver puts what comes in on the bus.
type receiver struct {
	platform chat.Platform
	publish  func(context.Context, events.Event) error
}

// Said implements [chat.Receiver].
func (r receiver) Said(ctx context.Context, cause string, m chat.Message) error {
	return r.put(ctx, cause, m.At, events.ChatSaid{Message: m})
}

// Pressed implements [chat.Receiver].
func (r receiver) Pressed(ctx context.Context, cause string, p chat.Press) error {
	return r.put(ctx, cause, p.At, events.ChatPressed{Press: p})
}

func (r receiver) put(ctx context.Context, cause string, at time.Time, p events.Payload) error {
	e, err := events.New(cause, string(r.platform), at, p)
	if err != nil {
		// What cannot be written once never can.
		return events.Permanent(err)
	}
	return r.publish(ctx, e)
}

// makeAdapter connects to a chat; what comes in goes to the receiver.
type makeAdapter func(a *app, r chat.Receiver) (adapter, error)

// wireChats makes the handlers of chats, if any chat is configured.
func (a *app) wireChats(ctx context.Context, records *bus.Bucket[handlers.Record], index *handlers.Index, repositories *handlers.Repositories) error {
	if len(a.makeAdapters) == 0 {
		return nil
	}
	c := &chats{adapters: map[chat.Platform]adapter{}, cards: map[chat.Platform]*handlers.Cards{}, talk: &a.talk, records: records}
	posters := a.talk.outbox.Posters
	for platform, connect := range a.makeAdapters {
		made, err := connect(a, receiver{platform, a.bus.Publish})
		if err != nil {
			return err
		}
		c.adapters[platform], posters[platform] = made, made
	}
	cards, err := bus.OpenBucket[handlers.Card](ctx, a.bus, bucketCards)
	if err != nil {
		return err
	}
	cardIndex := handlers.NewCardIndex()
	cards.OnChange(cardIndex.Change)
	made, err := bus.OpenBucket[handlers.Subscription](ctx, a.bus, bucketSubscriptions)
	if err != nil {
		return err
	}
	codes, err := bus.OpenBriefBucket[handlers.Code](ctx, a.bus, bucketCodes, codesKept)
	if err != nil {
		return err
	}
	subscriptions := &handlers.Subscriptions{Configured: subscriptionsOf(a.config), Store: made}
	for platform, poster := range posters {
		c.cards[platform] = &handlers.Cards{
			Platform: platform, Poster: poster, Records: records, Subscriptions: subscriptions,
			Store: cards, Conflict: isConflict, Index: cardIndex, Forge: a.forge, Now: time.Now, Log: a.log,
		}
	}
	c.handler = &handlers.Chat{
		Directory: a.talk.directory, Repositories: repositories, Records: records, Index: index,
		Requests: a.talk.requests, Queue: a.bus.Work(), Digests: a.outlook.digests,
		Codes: codes, Subscriptions: subscriptions, Cards: cardIndex, Outbox: a.talk.outbox,
		Permissions: a.forge, Ledger: a.ledger, Health: a.health, Root: a.config.Gitea.URL.String(), Now: time.Now,
		Glance: handlers.Glance,
	}
	a.evaluator.Codes = codes
	a.chats = c
	return nil
}

func isConflict(err error) bool { return errors.Is(err, bus.ErrConflict) }

// run runs all that serves chats. Each platform has consumers of its own, so
// that one that is down holds up no other.
func (c *chats) run(ctx context.Context, group *errgroup.Group, b *bus.Bus) {
	group.Go(func() error {
		return b.ConsumeEvents(ctx, consumerChat, []string{events.ChatSubjects}, c.handler.Handle)
	})
	for platform, made := range c.adapters {
		name := string(platform)
		group.Go(func() error { return made.Run(ctx) })
		group.Go(func() error { return c.talk.outgoing.ConsumeKeys(ctx, consumerOutbox+name, name, c.talk.outbox.Handle) })
		group.Go(func() error { return c.records.ConsumeKeys(ctx, consumerCards+name, "", c.cards[platform].Handle) })
	}
}

// health is what signalbox knows of itself and its clusters.
func (a *app) health() render.HealthOf {
	var h render.HealthOf
	for _, cluster := range a.clusterNames() {
		c := render.ClusterHealth{Name: cluster}
		if beat, ok := a.bus.Facts().Lookup(fact.HeartbeatKey(cluster)); ok && beat.Heartbeat != nil {
			c.Heard, c.Since = !beat.Heartbeat.Silent, beat.Since
		}
		h.Clusters = append(h.Clusters, c)
	}
	open := 0
	for range a.chats.records.All() {
		open++
	}
	h.Counts = append(h.Counts, render.Count{N: open, What: "open pull requests"})
	return h
}

func subscriptionsOf(c *config.Config) []handlers.Subscription {
	out := make([]handlers.Subscription, len(c.Chat.Subscriptions))
	for i, s := range c.Chat.Subscriptions {
		out[i] = handlers.Subscription{Room: s.Room, Repo: s.Repository, Paths: s.Paths, Sensitive: s.Sensitive}
	}
	return out
}

func peopleOf(c *config.Config) map[chat.User]string {
	out := make(map[chat.User]string, len(c.Chat.People))
	for _, p := range c.Chat.People {
		out[p.User] = p.Login
	}
	return out
}
