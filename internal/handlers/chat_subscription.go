package handlers

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"signalbox/internal/chat"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Subscription asks for the pull requests of a repository in a room.
type Subscription struct {
	Room chat.Room `json:"room"`
	// Repo is "owner/name".
	Repo string `json:"repo"`
	// Paths are globs as in a policy; a changed file must match one. None match
	// all.
	Paths []string `json:"paths,omitempty"`
	// Sensitive leaves out pull requests that need nobody's approval.
	Sensitive bool `json:"sensitive,omitempty"`
	// By is who asked for it, or zero for the configuration.
	By pull.Person `json:"by,omitzero"`
	At time.Time   `json:"at,omitzero"`
}

// wants reports whether a subscription asks for a pull request.
func (s *Subscription) wants(r *Record) bool {
	snap := &r.Inputs.Snapshot
	if !strings.EqualFold(s.Repo, snap.Pull.Repo.String()) || s.Sensitive && !sensitive(&r.Verdict) {
		return false
	}
	return len(s.Paths) == 0 || slices.ContainsFunc(snap.Files, func(f pull.File) bool {
		return slices.ContainsFunc(f.Paths(), func(path string) bool {
			return slices.ContainsFunc(s.Paths, func(glob string) bool {
				ok, err := doublestar.Match(glob, path)
				return ok && err == nil
			})
		})
	})
}

// sensitive reports whether somebody has to approve a pull request.
func sensitive(v *policy.Verdict) bool {
	return slices.ContainsFunc(v.Approvals, func(a policy.ApprovalResult) bool { return a.State != policy.NotApplicable })
}

// SubscriptionStore keeps the subscriptions that people made.
type SubscriptionStore interface {
	Get(key string) (s Subscription, revision uint64, ok bool)
	Put(ctx context.Context, key string, s Subscription, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	All() iter.Seq2[string, Subscription]
}

// Subscriptions are those of the configuration and those that people made.
type Subscriptions struct {
	Configured []Subscription
	Store      SubscriptionStore
}

// subscriptionKey names the subscription of a room to a repository.
func subscriptionKey(room chat.Room, repo string) string {
	return string(room.Platform) + "." + hashed(room.ID) + "." + hashed(strings.ToLower(repo))
}

// all returns all subscriptions, in the order of their rooms and repositories.
func (s *Subscriptions) all() []Subscription {
	out := slices.Clone(s.Configured)
	for _, made := range s.Store.All() {
		out = append(out, made)
	}
	slices.SortStableFunc(out, func(a, b Subscription) int {
		return cmp.Or(cmp.Compare(a.Room.String(), b.Room.String()), cmp.Compare(a.Repo, b.Repo))
	})
	return out
}

// Of returns the subscriptions of a room.
func (s *Subscriptions) Of(room chat.Room) []Subscription {
	return slices.DeleteFunc(s.all(), func(o Subscription) bool { return o.Room != room })
}

// rooms returns the rooms of a platform that ask for a pull request, each once.
func (s *Subscriptions) rooms(platform chat.Platform, r *Record) []chat.Room {
	var rooms []chat.Room
	for _, o := range s.all() {
		if o.Room.Platform == platform && !slices.Contains(rooms, o.Room) && o.wants(r) {
			rooms = append(rooms, o.Room)
		}
	}
	return rooms
}
