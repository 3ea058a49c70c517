package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/bus"
	"signalbox/internal/chart"
	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/digest"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/schedule"
	"signalbox/internal/web"
)

// Names of the buckets and consumers of digests and alerts. They stay the same for
// ever.
const (
	bucketReports   = "reports"
	bucketSamples   = "samples"
	bucketAlerts    = "alerts"
	bucketSchedules = "schedules"

	consumerDigests = "digests"
	consumerSamples = "samples"
)

// How long is kept what digests were made of.
const (
	reportsKept = 90 * 24 * time.Hour
	samplesKept = 32 * 24 * time.Hour
)

// outlook is all of signalbox that tells how things stand.
type outlook struct {
	outlook *handlers.Outlook
	digests *handlers.Digests
	samples *handlers.Samples
	alerts  *handlers.Alerts
	clocks  []*schedule.Clock
	// schedules are by the names of digests.
	schedules *bus.Bucket[begun]
	changed   chan struct{}
	looked    looked
}

// begun is since when a digest has its schedule.
type begun struct {
	Times string    `json:"times"`
	At    time.Time `json:"at"`
}

// wireOutlook makes the handlers of digests and alerts.
func (a *app) wireOutlook(ctx context.Context, records *bus.Bucket[handlers.Record], repositories *handlers.Repositories, account *handlers.Account) error {
	reports, err := bus.OpenBriefBucket[digest.Report](ctx, a.bus, bucketReports, reportsKept)
	if err != nil {
		return err
	}
	samples, err := bus.OpenBriefBucket[digest.Sample](ctx, a.bus, bucketSamples, samplesKept)
	if err != nil {
		return err
	}
	alerts, err := bus.OpenBucket[handlers.AlertState](ctx, a.bus, bucketAlerts)
	if err != nil {
		return err
	}
	schedules, err := bus.OpenBucket[begun](ctx, a.bus, bucketSchedules)
	if err != nil {
		return err
	}
	c := a.config
	o := &handlers.Outlook{
		Facts: a.bus.Facts(), Records: records, Repositories: repositories, Ledger: a.ledger,
		DeadLetters: a.bus.Dead().Count, Clusters: a.clusterNames(),
		Checks: append(digest.DefaultChecks(), c.Watch.Checks...), Kured: c.Watch.Kured, Now: time.Now,
	}
	if len(o.Kured) == 0 {
		o.Kured = digest.DefaultKured()
	}
	o.Renovate, o.CronJobs = renovatesOf(c)
	a.outlook.outlook = o
	a.outlook.samples = &handlers.Samples{Outlook: o, Store: samples, Conflict: isConflict, Now: time.Now}
	a.outlook.digests = &handlers.Digests{
		Rules: digestRules(c), Outlook: o, Reports: reports, Samples: a.outlook.samples, Outbox: a.talk.outbox,
		Issues: a.forge, Account: account, Repositories: repositories, Chart: trendPicture, Page: a.reportPage,
		Conflict: isConflict, Now: time.Now, Log: a.log,
	}
	a.outlook.alerts = &handlers.Alerts{
		Rules: alertRules(c), Outlook: o, States: alerts, Outbox: a.talk.outbox, Page: a.address("digests/now"),
		Conflict: isConflict, Now: time.Now, Log: a.log,
	}
	if len(c.Digests)+len(c.Alerts) > 0 {
		// What nobody is told of need not be read.
		a.demand.Standing, o.Watching = o.Wishes, true
	}
	a.outlook.schedules = schedules
	a.outlook.changed = make(chan struct{}, 1)
	a.live.Follow(func(web.Change) {
		select {
		case a.outlook.changed <- struct{}{}:
		default:
		}
	})
	return nil
}

// beginDigests makes the clocks of the digests. Only who runs does this: whoever looks
// may have another configuration.
func (a *app) beginDigests(ctx context.Context) error {
	if err := forgetSchedules(ctx, a.outlook.schedules, a.config.Digests); err != nil {
		return err
	}
	for _, d := range a.config.Digests {
		since, err := begin(ctx, a.outlook.schedules, d)
		if err != nil {
			return err
		}
		a.outlook.clocks = append(a.outlook.clocks, &schedule.Clock{
			Name: handlers.DigestTick + d.Name, Times: d.Times, Publish: a.bus.Publish, Log: a.log,
			Done: func() time.Time {
				now := time.Now()
				last, _ := a.outlook.digests.Last(d.Name, now)
				return dealtWith(last.Scheduled, since, now)
			},
		})
	}
	return nil
}

// dealtWith is up to when the ticks of a digest were dealt with: the last report, or
// since when it has its schedule. Where the last report may be forgotten by now, nothing
// tells what was missed.
func dealtWith(last, since, now time.Time) time.Time {
	done := now.Add(-reportsKept * 2 / 3)
	for _, t := range []time.Time{last, since} {
		if t.After(done) {
			done = t
		}
	}
	return done
}

// forgetSchedules forgets those of digests that are not configured any more: one that
// comes back has missed nothing.
func forgetSchedules(ctx context.Context, store *bus.Bucket[begun], digests []config.Digest) error {
	if err := store.Sync(ctx); err != nil {
		return err
	}
	for name := range store.All() {
		if slices.ContainsFunc(digests, func(d config.Digest) bool { return d.Name == name }) {
			continue
		}
		if err := store.Delete(ctx, name); err != nil {
			return fmt.Errorf("forget the schedule of digest %s: %w", name, err)
		}
	}
	return nil
}

// begin returns since when a digest has its schedule: what it names before that was
// not missed.
func begin(ctx context.Context, store *bus.Bucket[begun], d config.Digest) (time.Time, error) {
	if err := store.Sync(ctx); err != nil {
		return time.Time{}, err
	}
	held, revision, ok := store.Get(d.Name)
	if ok && held.Times == d.Times.String() {
		return held.At, nil
	}
	now := begun{Times: d.Times.String(), At: time.Now().UTC()}
	if _, err := store.Put(ctx, d.Name, now, revision); err != nil && !isConflict(err) {
		return time.Time{}, fmt.Errorf("keep the schedule of digest %s: %w", d.Name, err)
	}
	// Another replica that began at the same time knows it as well.
	return now.At, nil
}

// run runs digests and alerts. They begin once the clusters are known, or what is
// still being read would be told as something that cannot be known.
func (o *outlook) run(ctx context.Context, group *errgroup.Group, a *app, settled func()) {
	group.Go(func() error {
		settled()
		return a.bus.ConsumeEvents(ctx, consumerDigests, []string{events.Tick{Name: handlers.DigestTick + "*"}.BusSubject()}, o.digests.Handle)
	})
	group.Go(func() error {
		settled()
		return a.bus.ConsumeEvents(ctx, consumerSamples, []string{events.Tick{Name: handlers.SampleTick}.BusSubject()}, o.samples.Handle)
	})
	if len(o.alerts.Rules) > 0 {
		group.Go(func() error {
			settled()
			return o.alerts.Run(ctx, o.changed)
		})
	}
	for _, c := range o.clocks {
		group.Go(func() error { return c.Run(ctx) })
	}
	clock := schedule.Interval{Name: handlers.SampleTick, Every: handlers.SampleEvery, Publish: a.bus.Publish, Log: a.log}
	group.Go(func() error { return clock.Run(ctx) })
}

func digestRules(c *config.Config) []handlers.DigestRule {
	var out []handlers.DigestRule
	for _, d := range c.Digests {
		out = append(out, handlers.DigestRule{
			Name: d.Name, Zone: d.Times.Zone().String(), About: handlers.About(d.About), Rooms: d.Rooms, Issues: d.Issues, Chart: d.Chart,
			Latest: d.Times.Latest,
		})
	}
	return out
}

func alertRules(c *config.Config) []handlers.AlertRule {
	var out []handlers.AlertRule
	for _, al := range c.Alerts {
		out = append(out, handlers.AlertRule{
			Name: al.Name, About: handlers.About(al.About), Rooms: al.Rooms,
			Rule: digest.Rule{After: al.After, Settle: al.Settle, Sections: al.About.Sections, Clusters: al.About.Clusters},
		})
	}
	return out
}

// renovatesOf are the workflows of Renovate by repository, and its CronJobs.
func renovatesOf(c *config.Config) (workflows map[string][]string, cronJobs []fact.Wish) {
	workflows = map[string][]string{}
	for _, r := range c.Watch.Renovate {
		if r.Repository == "" {
			cronJobs = append(cronJobs, fact.WishRenovate(r.Cluster, fact.RenovateQuery{Namespace: r.Namespace, Name: r.CronJob}))
			continue
		}
		name := strings.ToLower(r.Repository)
		workflows[name] = append(workflows[name], r.Workflow)
	}
	return workflows, cronJobs
}

// trendPicture draws the trend for a chat.
func trendPicture(samples []digest.Sample, now time.Time) (chat.Picture, error) {
	png, err := chart.Trend(samples, now, false)
	if err != nil {
		return chat.Picture{}, err
	}
	return chat.Picture{Name: "trend.png", Alt: chart.Alt(samples, now), PNG: png, Width: chart.Width, Height: chart.Height}, nil
}
