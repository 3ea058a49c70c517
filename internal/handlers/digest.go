package handlers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/digest"
	"signalbox/internal/events"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// DigestTick begins the names of the ticks that start a digest; what follows is its
// name.
const DigestTick = "digest."

// DigestRule is a digest that is sent by the clock.
type DigestRule struct {
	Name  string
	Zone  string
	About About
	// Rooms are where it is said, and Issues the repositories, "owner/name", in which an
	// issue is kept up to date.
	Rooms  []chat.Room
	Issues []string
	Chart  bool
	// Latest returns the last moment of its schedule that is after one time and not
	// after another.
	Latest func(after, until time.Time) (time.Time, bool)
}

// Reports is where the reports of digests are kept, by [ReportKey].
type Reports interface {
	Get(key string) (r digest.Report, revision uint64, ok bool)
	Put(ctx context.Context, key string, r digest.Report, revision uint64) (uint64, error)
	All() iter.Seq2[string, digest.Report]
	Sync(ctx context.Context) error
}

// IssueKeeper keeps an issue of a repository up to date.
type IssueKeeper interface {
	KeepIssue(ctx context.Context, repo pull.Repo, author, marker, title, body string) (address string, err error)
}

// Charter draws the trend of samples.
type Charter func(samples []digest.Sample, now time.Time) (chat.Picture, error)

// Digests makes and sends the digests. A tick makes one report, which is kept before
// it is sent: so all replicas, and every try, send the same.
type Digests struct {
	Rules        []DigestRule
	Outlook      *Outlook
	Reports      Reports
	Samples      *Samples
	Outbox       *Outbox
	Issues       IssueKeeper
	Account      *Account
	Repositories *Repositories
	Chart        Charter
	// Page returns where a report can be read, or "".
	Page func(r *digest.Report) string
	// Conflict reports that a key was there already.
	Conflict func(error) bool
	Now      func() time.Time
	Log      *slog.Logger
}

// lateAfter is how much later than scheduled a digest is marked as late.
const lateAfter = 5 * time.Minute

// ReportKey is the key of the report of a digest for a time.
func ReportKey(name string, scheduled time.Time) string {
	return name + "." + strconv.FormatInt(scheduled.Unix(), 10)
}

// Handle makes the report of a tick, and sends it. A tick of a digest that is not
// configured any more does nothing.
func (h *Digests) Handle(ctx context.Context, e events.Event) error {
	payload, err := events.Decode(e)
	if err != nil {
		return err
	}
	tick, ok := payload.(events.Tick)
	if !ok {
		return events.Permanent(fmt.Errorf("event %s: no handler for type %s", e.ID, e.Type))
	}
	name := strings.TrimPrefix(tick.Name, DigestTick)
	i := slices.IndexFunc(h.Rules, func(r DigestRule) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	rule := &h.Rules[i]
	report, err := h.report(ctx, rule, tick.At.UTC())
	if errors.Is(err, errSuperseded) {
		h.Log.InfoContext(ctx, "a digest is not made: the next one is due", "digest", name, "scheduled", tick.At)
		return nil
	}
	if err != nil {
		return fmt.Errorf("digest %s: %w", name, err)
	}
	if err := h.send(ctx, rule, &report); err != nil {
		return fmt.Errorf("send digest %s: %w", name, err)
	}
	return nil
}

// errSuperseded is of a tick that was not handled until the next one was due: what was
// missed is one digest.
var errSuperseded = errors.New("a later digest is due")

// report returns the report for a time, which is made if there is none.
func (h *Digests) report(ctx context.Context, rule *DigestRule, at time.Time) (digest.Report, error) {
	if err := h.Reports.Sync(ctx); err != nil {
		return digest.Report{}, err
	}
	key := ReportKey(rule.Name, at)
	if r, _, ok := h.Reports.Get(key); ok {
		return r, nil
	}
	if _, due := rule.Latest(at, h.Now()); due {
		return digest.Report{}, errSuperseded
	}
	before, ok := h.Last(rule.Name, at)
	found, err := h.look(ctx, rule, before)
	if err != nil {
		return digest.Report{}, err
	}
	r := h.make(rule, found, before, ok, at)
	switch _, err := h.Reports.Put(ctx, key, r, 0); {
	case err == nil:
		return r, nil
	case !h.Conflict(err):
		return digest.Report{}, fmt.Errorf("keep the report: %w", err)
	}
	// Another replica was first.
	if err := h.Reports.Sync(ctx); err != nil {
		return digest.Report{}, err
	}
	r, _, ok = h.Reports.Get(key)
	if !ok {
		return digest.Report{}, errors.New("the report was made by another, and is not there")
	}
	return r, nil
}

// entered is how long after a person acted it may stand in the ledger, by another clock
// and after a start.
const entered = 2 * time.Hour

// look finds what a digest says after the report before, or the zero report. What
// happened before that one was made and was not known then is told now.
func (h *Digests) look(ctx context.Context, rule *DigestRule, before digest.Report) (digest.Result, error) {
	h.complete(ctx)
	if before.Made.IsZero() {
		return h.Outlook.Look(ctx, rule.About, time.Time{})
	}
	since := before.Made.Add(-entered)
	found, err := h.Outlook.Look(ctx, rule.About, since)
	told := map[string]bool{}
	for _, r := range h.Reports.All() {
		if r.Name != rule.Name || r.Made.Before(since) {
			continue
		}
		for _, p := range r.Sections {
			for i := range p.Findings {
				told[p.Findings[i].ID] = true
			}
		}
	}
	found.Findings = slices.DeleteFunc(found.Findings, func(f digest.Finding) bool { return f.Once && told[f.ID] })
	return found, err
}

// complete reads what repositories there are, after a start. A digest says which part of
// it cannot be known without them.
func (h *Digests) complete(ctx context.Context) {
	if err := h.Repositories.Complete(ctx); err != nil {
		h.Log.WarnContext(ctx, "a digest goes without some repositories", "error", err)
	}
}

func (h *Digests) make(rule *DigestRule, found digest.Result, before digest.Report, hasBefore bool, at time.Time) digest.Report {
	var last *digest.Report
	if hasBefore {
		last = &before
	}
	now := h.Now().UTC()
	return digest.Make(found, last, digest.Options{
		Name: rule.Name, Zone: rule.Zone, Scheduled: at, Made: now, Late: now.Sub(at) > lateAfter,
		Sections: rule.About.Sections, Clusters: h.Outlook.clusters(rule.About),
	})
}

// Last returns the last report of a digest that was scheduled before a time.
func (h *Digests) Last(name string, before time.Time) (last digest.Report, ok bool) {
	for _, r := range h.Reports.All() {
		if r.Name == name && r.Scheduled.Before(before) && (!ok || r.Scheduled.After(last.Scheduled)) {
			last, ok = r, true
		}
	}
	return last, ok
}

// Preview makes the report of a digest as it would be at this moment, and keeps nothing.
func (h *Digests) Preview(ctx context.Context, rule *DigestRule) (digest.Report, error) {
	if err := h.Reports.Sync(ctx); err != nil {
		return digest.Report{}, err
	}
	now := h.Now().UTC()
	before, ok := h.Last(rule.Name, now)
	found, err := h.look(ctx, rule, before)
	if err != nil {
		return digest.Report{}, err
	}
	return h.make(rule, found, before, ok, now), nil
}

// saidBy is how long a report is said in chats after it was made. It is less than the
// time in which a platform tells that it was said, so that a tick that is handled again
// days later, as a dead letter, says nothing twice.
const saidBy = 12 * time.Hour

// send says a report in all of its places. One that fails keeps the others from
// nothing; what was said is not said again.
func (h *Digests) send(ctx context.Context, rule *DigestRule, r *digest.Report) error {
	page := h.Page(r)
	var picture *chat.Picture
	if rule.Chart && !r.Quiet() {
		picture = h.picture(ctx, r)
	}
	var errs []error
	rooms := rule.Rooms
	if h.Now().Sub(r.Made) > saidBy {
		rooms = nil
	}
	for _, room := range rooms {
		errs = append(errs, h.Outbox.Say(ctx, Outgoing{
			Room: room, Cause: "digest/" + ReportKey(r.Name, r.Scheduled),
			Body: render.ChatBody(room.Platform, render.Digest(*r, r.Name, page)), Picture: picture,
		}))
	}
	for _, name := range rule.Issues {
		errs = append(errs, h.keepIssue(ctx, name, r, page))
	}
	// What can be done later keeps the whole from being given up.
	if again := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil || events.IsPermanent(err) }); len(again) > 0 {
		return errors.Join(again...)
	}
	return errors.Join(errs...)
}

// picture draws the trend. A digest without it is still a digest.
func (h *Digests) picture(ctx context.Context, r *digest.Report) *chat.Picture {
	samples, err := h.Samples.Trend(ctx, r.Made)
	if err == nil {
		var p chat.Picture
		if p, err = h.Chart(samples, r.Made); err == nil {
			return &p
		}
	}
	h.Log.WarnContext(ctx, "a digest goes without its chart", "digest", r.Name, "error", err)
	return nil
}

// keepIssue makes the issue of a digest say a report, unless a later one was said.
func (h *Digests) keepIssue(ctx context.Context, name string, r *digest.Report, page string) error {
	for _, other := range h.Reports.All() {
		if other.Name == r.Name && other.Scheduled.After(r.Scheduled) {
			return nil
		}
	}
	repo, err := h.repository(ctx, name)
	if err != nil {
		return err
	}
	self, err := h.Account.Self(ctx)
	if err != nil {
		return err
	}
	address, err := h.Issues.KeepIssue(ctx, repo, self.Login, render.DigestMarker(r.Name), "Digest "+r.Name, render.DigestIssue(*r, r.Name, page))
	if err != nil {
		return err
	}
	h.Log.InfoContext(ctx, "issue of a digest is up to date", "digest", r.Name, "issue", address)
	return nil
}

// repository returns a repository by its name in the configuration, whatever it is
// called now.
func (h *Digests) repository(ctx context.Context, name string) (pull.Repo, error) {
	err := h.Repositories.Complete(ctx)
	for _, r := range h.Repositories.Settings() {
		switch {
		case !strings.EqualFold(r.Name, name):
		case r.ID != 0:
			return r.Repo, nil
		case err != nil:
			return pull.Repo{}, err
		}
	}
	return pull.Repo{}, events.Permanent(fmt.Errorf("there is no repository %s", name))
}
