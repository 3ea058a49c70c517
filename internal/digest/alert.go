package digest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Rule says which findings alert, and when. Only what is broken or unclear does.
type Rule struct {
	// After is how long something must have been so without a break before it is
	// announced, and Settle how long it must be away before it is taken for recovered.
	After, Settle time.Duration
	// Sections and Clusters are those that the rule is about; none stands for all. What
	// belongs to no cluster is of every rule.
	Sections []Section
	Clusters []string
}

func (r *Rule) about(f *Finding) bool {
	return (len(r.Sections) == 0 || slices.Contains(r.Sections, f.Section)) &&
		(len(r.Clusters) == 0 || f.Cluster == "" || slices.Contains(r.Clusters, f.Cluster))
}

// State is what was seen and announced under one rule so far, by the ID of the
// finding. The zero value is the beginning.
type State struct {
	Watched map[string]Watched `json:"watched,omitempty"`
}

// Watched is a finding that is looked at, by one ID. All times are in UTC.
type Watched struct {
	// Finding is as it was seen last, without those under it.
	Finding Finding `json:"finding"`
	// FirstSeen is when it was seen without a break from then on.
	FirstSeen time.Time `json:"firstSeen"`
	// Anew, if set, is when its age began to count again: when it came back, or was
	// announced under another no longer.
	Anew time.Time `json:"anew,omitzero"`
	// Grouped says that it is announced under another.
	Grouped bool `json:"grouped,omitempty"`
	// Announced is when it was announced; zero if it was not, or recovered since.
	Announced time.Time `json:"announced,omitzero"`
	// GoneSince is since when it is away; zero while it is there, or nothing can be
	// known of it.
	GoneSince time.Time `json:"goneSince,omitzero"`
}

// began is when it began, as far back as counts for its age.
func (w *Watched) began() time.Time {
	if !w.Anew.IsZero() {
		return w.Anew
	}
	return w.first()
}

// first is when it began, as far back as is known.
func (w *Watched) first() time.Time {
	if s := w.Finding.Since; !s.IsZero() && s.Before(w.FirstSeen) {
		return s
	}
	return w.FirstSeen
}

// Notice is a finding that is announced.
type Notice struct {
	// Finding has those under it that are announced along with it.
	Finding Finding `json:"finding"`
	// Began is when it began, and Ended when it was gone; zero while it is there.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	// More is how many of those under it were left out.
	More int `json:"more,omitempty"`
}

// Batch is what is to be announced at one time.
type Batch struct {
	Broke     []Notice `json:"broke,omitempty"`
	Recovered []Notice `json:"recovered,omitempty"`
	// MoreBroke and MoreRecovered are how many were left out.
	MoreBroke     int `json:"moreBroke,omitempty"`
	MoreRecovered int `json:"moreRecovered,omitempty"`
}

// What a [Batch] holds at most: the more breaks at one time, the less is anybody told
// of each, and the more it matters that something is told at all.
const (
	maxNotices = 60
	// maxBatch is of its JSON, in bytes.
	maxBatch = 250_000
)

// bound leaves out what is too much, from the ends, and counts it.
func (b *Batch) bound() {
	b.keep(maxNotices)
	for most := maxNotices; most > 1 && jsonSize(b) > maxBatch; {
		most /= 2
		b.keep(most)
	}
}

// keep keeps the first notices, and the first of those under each.
func (b *Batch) keep(most int) {
	b.Broke, b.MoreBroke = b.Broke[:min(len(b.Broke), most)], b.MoreBroke+max(0, len(b.Broke)-most)
	b.Recovered, b.MoreRecovered = b.Recovered[:min(len(b.Recovered), most)], b.MoreRecovered+max(0, len(b.Recovered)-most)
	for i := range b.Broke {
		n := &b.Broke[i]
		n.Finding.Under, n.More = n.Finding.Under[:min(len(n.Finding.Under), most)], n.More+max(0, len(n.Finding.Under)-most)
	}
}

// jsonSize is how many bytes something of texts, times and numbers takes.
func jsonSize(v any) int {
	// That can always be encoded.
	text, _ := json.Marshal(v)
	return len(text)
}

// Bounds of a [State]: how many findings are watched, and their JSON together, in
// bytes. What is beyond that is watched once there is room.
const (
	maxWatched     = 1000
	maxWatchedText = 300_000
)

// Next looks at what was found. It returns the state from then on, what is to be
// announced, or nil, and when to look again at the latest because time alone may
// change something; zero for never.
//
// What broke is announced once it was there for long enough, and its recovery is
// always announced after it. What comes and goes meanwhile stays one announcement.
// What follows from another finding is announced under that one; if that recovers
// and it does not, it is announced by itself once that is certain. While nothing can
// be known of a finding, it neither recovers nor is announced, and its age goes on.
func (s State) Next(res Result, rule Rule, now time.Time) (State, *Batch, time.Time) {
	l := look{rule: rule, now: now.UTC(), res: &res, next: State{Watched: maps.Clone(s.Watched)}, there: map[string]sight{}}
	if l.next.Watched == nil {
		l.next.Watched = map[string]Watched{}
	}
	for i := range res.Findings {
		l.see(&res.Findings[i], "")
	}
	l.away()
	l.admit()
	l.announce()
	sortNotices(l.batch.Broke)
	sortNotices(l.batch.Recovered)
	l.batch.bound()
	if len(l.batch.Broke)+len(l.batch.Recovered) == 0 {
		return l.next, nil, l.again
	}
	return l.next, &l.batch, l.again
}

// look is one look.
type look struct {
	rule Rule
	now  time.Time
	res  *Result
	next State
	// there is what is there, by ID; order has the IDs in the order of the result.
	there map[string]sight
	order []string
	batch Batch
	again time.Time
}

// sight is a finding that is there, and the ID of the one that it is announced
// under, or empty.
type sight struct {
	*Finding
	root string
}

// see notes a finding and those under it. What only is notable announces nothing, so
// what follows from it stands for itself.
func (l *look) see(f *Finding, root string) {
	if l.rule.about(f) {
		if _, twice := l.there[f.ID]; !twice {
			l.there[f.ID] = sight{f, root}
			l.order = append(l.order, f.ID)
		}
		if root == "" && f.Alerts() {
			root = f.ID
		}
	}
	for i := range f.Under {
		l.see(&f.Under[i], root)
	}
}

// away deals with what was watched and is not there.
func (l *look) away() {
	for id, w := range l.next.Watched {
		s, there := l.there[id]
		if there && (s.Alerts() || !w.Announced.IsZero()) {
			continue
		}
		switch {
		case there:
			// It is no more than notable, and was not announced: as good as away.
			l.gone(id, w)
		case !l.rule.about(&w.Finding):
			// The rule is about something else now.
			delete(l.next.Watched, id)
		case l.res.covers(&w.Finding):
			// What was gone before it was announced has had its break.
			if !w.Announced.IsZero() {
				w.GoneSince = time.Time{}
				l.next.Watched[id] = w
			}
		case !l.res.Asked.About(&w.Finding):
			// Nobody looks at it any more.
			delete(l.next.Watched, id)
		default:
			l.gone(id, w)
		}
	}
}

// gone deals with what is certainly away.
func (l *look) gone(id string, w Watched) {
	if w.GoneSince.IsZero() {
		w.GoneSince = l.now
	}
	settled := w.GoneSince.Add(l.rule.Settle)
	switch {
	case w.Announced.IsZero():
		// It is remembered for as long as coming back would count as coming back.
		w.Grouped = false
		if l.now.Before(w.GoneSince.Add(l.rule.After)) {
			l.next.Watched[id] = w
		} else {
			delete(l.next.Watched, id)
		}
		return
	case l.now.Before(settled):
		l.lookAt(settled)
	default:
		l.batch.Recovered = append(l.batch.Recovered, Notice{Finding: w.Finding, Began: w.first(), Ended: w.GoneSince})
		w.Announced, w.GoneSince = time.Time{}, l.now
	}
	l.next.Watched[id] = w
}

// admit watches what is there.
func (l *look) admit() {
	size := 0
	for _, w := range l.next.Watched {
		size += w.size()
	}
	for _, id := range l.order {
		f := l.there[id].Finding
		w, watched := l.next.Watched[id]
		switch {
		case w.Announced.IsZero() && !f.Alerts():
			continue
		case !watched:
			w = Watched{FirstSeen: l.now}
		case w.Announced.IsZero() && !w.GoneSince.IsZero():
			w.FirstSeen, w.Anew = l.now, l.now
		}
		w.Finding, w.GoneSince = *f, time.Time{}
		w.Finding.Under, w.Finding.New = nil, false
		w.Finding.Text = clip(w.Finding.Text, maxText/2)
		if !watched {
			if size += w.size(); len(l.next.Watched) >= maxWatched || size > maxWatchedText {
				delete(l.there, id)
				size -= w.size()
				continue
			}
		}
		l.next.Watched[id] = w
	}
	l.order = slices.DeleteFunc(l.order, func(id string) bool {
		_, watched := l.next.Watched[id]
		return !watched
	})
}

// size is about how many bytes it takes, its key included.
func (w *Watched) size() int { return jsonSize(w) + len(w.Finding.ID) }

// announce announces what was there for long enough.
func (l *look) announce() {
	for _, id := range l.order {
		w, s := l.next.Watched[id], l.there[id]
		if s.Finding == nil || !w.Announced.IsZero() || !s.Alerts() {
			continue
		}
		root, under := l.next.Watched[s.root]
		if under && !root.Announced.IsZero() {
			// Roots come before what is under them, so this is known here.
			w.Grouped = true
			l.next.Watched[id] = w
			continue
		}
		if w.Grouped {
			w.Grouped, w.Anew = false, l.now
			l.next.Watched[id] = w
		}
		due := w.began().Add(l.rule.After)
		switch {
		case l.now.Before(due):
			l.lookAt(due)
		case under:
			// It waits for the one that it follows from.
		default:
			w.Announced = l.now
			l.next.Watched[id] = w
			l.batch.Broke = append(l.batch.Broke, Notice{Finding: l.whole(s.Finding), Began: w.first()})
		}
	}
}

// whole is a finding with those under it that are announced along with it: those
// that the rule is about and that were not announced before.
func (l *look) whole(f *Finding) Finding {
	out := *f
	out.Under, out.New = nil, false
	for _, u := range flat(f.Under) {
		w, watched := l.next.Watched[u.ID]
		if l.rule.about(&u) && u.Alerts() && (!watched || w.Announced.IsZero()) {
			u.Under, u.New = nil, false
			out.Under = append(out.Under, u)
		}
	}
	return out
}

func (l *look) lookAt(t time.Time) {
	if t.After(l.now) && (l.again.IsZero() || t.Before(l.again)) {
		l.again = t
	}
}

// sortNotices orders as a digest does: by section, severity, when it began, and ID.
func sortNotices(all []Notice) {
	slices.SortFunc(all, func(a, b Notice) int {
		return cmp.Or(
			cmp.Compare(a.Finding.Section.place(), b.Finding.Section.place()),
			cmp.Compare(a.Finding.Severity.rank(), b.Finding.Severity.rank()),
			a.Began.Compare(b.Began), strings.Compare(a.Finding.ID, b.Finding.ID),
		)
	})
}
