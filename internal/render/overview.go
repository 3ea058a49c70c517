package render

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// someOf joins the first of some names, and counts the rest.
func someOf(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Listed is one pull request of a list.
type Listed struct {
	Pull pull.Pull
	// Verdict is nil where there is none yet.
	Verdict *policy.Verdict
}

// listRows bounds the pull requests of each state that a list shows.
const listRows = 20

// PullList lists open pull requests by how they stand, in their order. Of is what
// they are of, such as a repository, or empty.
func PullList(of string, pulls []Listed) Talk {
	if of != "" {
		of = " of " + of
	}
	if len(pulls) == 0 {
		return Talk{Paragraph{Plain("There are no open pull requests" + of + ".")}}
	}
	groups := map[policy.GateState]Items{}
	for _, l := range pulls {
		state, why := policy.Undecided, "not looked at yet"
		if l.Verdict != nil {
			state, why = l.Verdict.State(), firstReason(l.Verdict)
		}
		if _, known := gateSign[state]; !known {
			state = policy.Undecided
		}
		groups[state] = append(groups[state], Item{Text: Line{
			Link(fullName(l.Pull), l.Pull.URL), Plain(" " + l.Pull.Title + " · "), Code(short(l.Pull.Head.SHA)), Plain(" · " + why),
		}})
	}
	t := Talk{Paragraph{Strong(count(len(pulls), "open pull request") + of)}}
	for _, g := range []struct {
		state policy.GateState
		name  string
	}{{policy.Clear, "clear"}, {policy.Waiting, "waiting"}, {policy.Blocked, "blocked"}, {policy.Undecided, "not decided"}} {
		if items := groups[g.state]; len(items) > 0 {
			t = append(t, Paragraph{Plain(gateSign[g.state] + " "), Strong(fmt.Sprintf("%d %s", len(items), g.name))}, atMost(items, listRows, "pull request"))
		}
	}
	return t
}

// firstReason is the reason of the gate that decides.
func firstReason(v *policy.Verdict) string {
	if v.Preconditions.State == v.State() && v.State() != policy.Clear {
		return v.Preconditions.Reason
	}
	return v.Approval.Reason
}

// HealthOf is how signalbox itself stands.
type HealthOf struct {
	Clusters []ClusterHealth
	Counts   []Count
}

// ClusterHealth is whether a cluster is heard from.
type ClusterHealth struct {
	Name  string
	Heard bool
	// Since is when it came into this state, or was last heard; zero if not known.
	Since time.Time
	// Problem is what is wrong beside, such as a right that is missing, or empty.
	Problem string
}

// Count is a number with what it counts, in the plural.
type Count struct {
	N    int
	What string
}

// Health says which clusters are heard from, and counts.
func Health(h HealthOf) Talk {
	silent := 0
	var items Items
	for _, c := range h.Clusters {
		sign, text := "🟢", "is heard from"
		if !c.Heard {
			sign, text = "🔴", "is silent"
			silent++
		}
		if !c.Since.IsZero() {
			text += " since " + stamp(c.Since)
		}
		if c.Problem != "" {
			text += " – " + c.Problem
		}
		items = append(items, Item{Sign: sign, Text: Line{Strong(c.Name), Plain(" " + text)}})
	}
	head := Paragraph{Plain("🟢 "), Strong("All clusters are heard from")}
	switch {
	case len(h.Clusters) == 0:
		head = Paragraph{Plain("⚪ "), Strong("No cluster is configured")}
	case silent > 0:
		head = Paragraph{Plain("🔴 "), Strong(capital(isAre(silent, "cluster")) + " silent")}
	}
	t := Talk{head}
	if len(items) > 0 {
		t = append(t, items)
	}
	var fields Fields
	for _, c := range h.Counts {
		fields = append(fields, Field{capital(c.What), Line{Plain(fmt.Sprint(c.N))}})
	}
	if len(fields) > 0 {
		t = append(t, fields)
	}
	return t
}

// LinkHow tells how to link an account of a chat: by writing a line on a pull
// request before a time.
func LinkHow(line string, until time.Time) Talk {
	return Talk{
		Paragraph{Plain("To show which account in Gitea is yours, write this as a comment on any pull request that signalbox looks after, from that account:")},
		Listing(line),
		Small{Plain("It works once, until " + stamp(until) + ". Show it to nobody before. Whoever writes it is taken for you here.")},
	}
}

// LinkedTo says that an account of a chat is a person's in Gitea.
func LinkedTo(user chat.User, person pull.Person) Talk {
	return Talk{Paragraph{Plain("✅ "), Code(user.ID), Plain(" is "), Strong(person.Login), Plain(" in Gitea now. What you decide here counts as theirs. To end that, say "), Code("link cancel"), Plain(" in the chat, or write "), Code("/link cancel"), Plain(" on a pull request.")}}
}

// LinksEnded says which accounts of chats are a person's no longer.
func LinksEnded(users []string) Talk {
	p := Paragraph{Plain("Linked to you no longer:")}
	for _, u := range users {
		p = append(p, Plain(" "), Code(u))
	}
	return Talk{p}
}

// Unlinked says that an account of a chat is nobody's in Gitea any more.
func Unlinked(user chat.User) Talk {
	return Talk{Paragraph{Plain("✅ "), Code(user.ID), Plain(" is linked to no account in Gitea any more, and can only read here.")}}
}

// NotLinked says that an account of a chat may only read.
func NotLinked(user chat.User) Talk {
	return Talk{Paragraph{Plain("❌ Nobody knows whose "), Code(user.ID), Plain(" is in Gitea, so it can only read. Say "), Code("link"), Plain(" to change that.")}}
}

// SubscriptionOf is what a room is shown.
type SubscriptionOf struct {
	Repo      string
	Paths     []string
	Sensitive bool
}

// line says what a subscription is about.
func (s SubscriptionOf) line() Line {
	l := Line{Plain("pull requests of "), Strong(s.Repo)}
	if len(s.Paths) > 0 {
		l = append(l, Plain(" that change "))
		for i, p := range s.Paths {
			if i > 0 {
				l = append(l, Plain(", "))
			}
			l = append(l, Code(p))
		}
	}
	if s.Sensitive {
		l = append(l, Plain(", if somebody has to approve them"))
	}
	return l
}

// Subscribed says what a room is shown from now on.
func Subscribed(s SubscriptionOf) Talk {
	return Talk{Paragraph(append(append(Line{Plain("✅ This room is shown ")}, s.line()...), Plain(".")))}
}

// Unsubscribed says what a room is shown no longer.
func Unsubscribed(repo string) Talk {
	return Talk{Paragraph{Plain("✅ This room is shown no more pull requests of "), Strong(repo), Plain(".")}}
}

// Subscriptions lists what a room is shown.
func Subscriptions(all []SubscriptionOf) Talk {
	if len(all) == 0 {
		return Talk{Paragraph{Plain("This room is shown no pull requests. "), Code("subscribe REPO"), Plain(" changes that.")}}
	}
	var items Items
	for _, s := range all {
		items = append(items, Item{Text: s.line()})
	}
	return Talk{Paragraph{Plain("This room is shown:")}, items}
}
