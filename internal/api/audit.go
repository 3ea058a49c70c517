package api

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
)

func (s *server) registerAudit(api huma.API) {
	register(api, huma.Operation{
		OperationID: "list-audit", Path: "/audit", Tags: []string{tagAudit},
		Summary:     "List who decided what, where, when and why",
		Description: "The ledger: every approval, override, hold, freeze and merge, and every command that was refused. Nothing is ever changed in it or taken out. A repository or a person that was renamed is found by every name that the ledger knows of it. To follow it, ask for order=oldest and after= the sequence of the last entry that you have.",
	}, s.listAudit)
}

// AuditQuery says which entries are wanted.
type AuditQuery struct {
	Repo   string   `query:"repo" maxLength:"256" example:"ops/home-gitops" doc:"Only what was decided in this repository: owner/name, in any letter case."`
	Number int64    `query:"number" minimum:"1" doc:"Only what was decided on this pull request; needs repo."`
	Person string   `query:"person" maxLength:"256" example:"alice" doc:"Only what this person decided, by login in any letter case or by numeric id."`
	Kind   []string `query:"kind" enum:"approve,approve-cancel,override,override-cancel,hold,unhold,freeze,unfreeze,merge,merge-cancel,merged,merge-failed,link,unlink,refused,answered,edited" maxItems:"17" doc:"Only these kinds, separated by commas."`
	Since  string   `query:"since" format:"date-time" example:"2026-09-01T00:00:00Z" doc:"Only from this time on."`
	Until  string   `query:"until" format:"date-time" example:"2026-10-01T00:00:00Z" doc:"Only before this time."`
	After  uint64   `query:"after" doc:"Only entries with a higher sequence than this."`
	Order  string   `query:"order" enum:"newest,oldest" default:"newest" doc:"Which entries come first."`
	Paging
}

func (s *server) listAudit(_ context.Context, q *AuditQuery) (Page[Decision], error) {
	if q.Number != 0 && q.Repo == "" {
		return Page[Decision]{}, invalid("query.number", strconv.FormatInt(q.Number, 10), "names a pull request of no repository; give repo as well")
	}
	since, err := moment("since", q.Since)
	if err != nil {
		return Page[Decision]{}, err
	}
	until, err := moment("until", q.Until)
	if err != nil {
		return Page[Decision]{}, err
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return Page[Decision]{}, invalid("query.until", q.Until, "is not after since; no entry can match")
	}
	order := "audit-" + q.Order
	at, err := place(order, q.Cursor, 1)
	if err != nil {
		return Page[Decision]{}, err
	}
	var from uint64
	if at != nil {
		if from, err = strconv.ParseUint(at[0], 10, 64); err != nil {
			return Page[Decision]{}, badCursor(q.Cursor)
		}
	}
	all := s.Decisions.All()
	filter := decision.Filter{
		Repo: q.Repo, Number: q.Number, Person: q.Person, Since: since, Until: until,
	}
	for _, kind := range q.Kind {
		filter.Kinds = append(filter.Kinds, decision.Kind(kind))
	}
	wanted := filter.Wanted(all)
	total := 0
	var rest []*decision.Entry
	for i := range all {
		e := &all[i]
		if e.Seq <= q.After || !wanted(e) {
			continue
		}
		total++
		if at == nil || (q.Order == "oldest" && e.Seq > from) || (q.Order == "newest" && e.Seq < from) {
			rest = append(rest, e)
		}
	}
	if q.Order == "newest" {
		slices.Reverse(rest)
	}
	return paged(rest, total, q.Paging, newDecision, func(e *decision.Entry) string {
		return cursor(order, strconv.FormatUint(e.Seq, 10))
	}), nil
}

// Decision is one entry of the ledger.
type Decision struct {
	Sequence   uint64     `json:"sequence,omitempty" example:"118" doc:"Its place in the ledger, from 1; it only grows. It is missing where the entry is told with a pull request."`
	ID         string     `json:"id" example:"comment/1017/0" doc:"Names the cause; there is one entry for an id."`
	Kind       string     `json:"kind" enum:"approve,approve-cancel,override,override-cancel,hold,unhold,freeze,unfreeze,merge,merge-cancel,merged,merge-failed,link,unlink,refused,answered,edited" doc:"link and unlink tie an account of a chat to a person. refused is a command that was not carried out, answered one that only asked, edited that somebody edited another's comment; these decide nothing."`
	At         time.Time  `json:"at" doc:"When the person acted, by the clock of the place."`
	By         Person     `json:"by"`
	Repository Repository `json:"repository"`
	Number     int64      `json:"number" example:"12"`
	Base       string     `json:"base" example:"main"`
	Head       string     `json:"head" example:"5c0ffee51ab1e5c0ffee51ab1e5c0ffee51ab1e5"`
	Place      string     `json:"place" example:"comment" doc:"Where the person said it."`
	URL        string     `json:"url,omitempty" doc:"Leads there."`
	User       string     `json:"user,omitempty" example:"slack/U012AB3CD" doc:"The account of a chat."`
	Command    string     `json:"command,omitempty" example:"/hold until the backup is done" doc:"The line as it was written."`
	Reason     string     `json:"reason,omitempty" doc:"What the person gave, or why a command was refused."`
	Passes     []string   `json:"passes,omitempty" doc:"The rules that an override passes."`
	Until      time.Time  `json:"until,omitzero" doc:"When an override or a freeze ends by itself."`
	Lifts      []string   `json:"lifts,omitempty" doc:"The ids of the holds or freezes that this ends."`
}

func newDecision(e *decision.Entry) Decision {
	return Decision{
		Sequence: e.Seq, ID: clip(e.ID), Kind: string(e.Kind), At: utc(e.At), By: newPerson(e.By),
		Repository: newRepository(e.Repo), Number: e.Number, Base: clip(e.Base), Head: clip(e.Head),
		Place: clip(e.Place), URL: clip(e.URL), User: clip(e.User), Command: clip(e.Command), Reason: clip(e.Reason),
		Passes: clipped(e.Passes), Until: utc(e.Until), Lifts: clipped(e.Lifts),
	}
}

// inForce are the decisions that a verdict tells of.
func inForce(v *policy.Verdict) []Decision {
	out := []Decision{}
	for _, entries := range [][]decision.Entry{v.Holds, v.Overrides, v.Freezes} {
		for i := range entries {
			out = append(out, newDecision(&entries[i]))
		}
	}
	if v.Merge != nil {
		out = append(out, newDecision(v.Merge))
	}
	return out
}
