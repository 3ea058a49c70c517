package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"signalbox/internal/overview"
)

// maxDeadLetters bounds the dead letters of a page.
const maxDeadLetters = 100

// healthPage is what the page of health shows.
type healthPage struct {
	overview.Health
	Parts    []partRow
	Clusters []*clusterState
	Letters  []overview.DeadLetter
	Total    int
	// Told says that the viewer sees what is in the dead letters: they may be of any
	// repository.
	Told bool
	// Unread says that the dead letters could not be read.
	Unread   bool
	Operator bool
	Form     string
	// Did tells what became of a dead letter, or is empty.
	Did     string
	DidSign sign
}

// partRow is a part as it is shown.
type partRow struct {
	overview.Part
	Sign sign
}

// Behind is how much there is before all consumers.
func (p healthPage) Behind() int {
	n := 0
	for _, l := range p.Lag {
		n += l.Waiting + l.InHand
	}
	return n
}

// health shows how signalbox stands.
func (s *Server) health(w http.ResponseWriter, v *visit) error {
	data := healthPage{Health: s.Health.Health(v.Context()), Operator: v.viewer.Operator, Form: v.viewer.Form}
	for _, p := range data.Health.Parts {
		data.Parts = append(data.Parts, partRow{p, partSign(p.State)})
	}
	// What is the matter comes first.
	slices.SortStableFunc(data.Parts, func(a, b partRow) int { return partRank(a.State) - partRank(b.State) })
	for _, name := range s.Clusters {
		data.Clusters = append(data.Clusters, s.clusterNow(name))
	}
	var err error
	if data.Letters, data.Total, err = s.Health.DeadLetters(v.Context(), maxDeadLetters); err != nil {
		s.Log.WarnContext(v.Context(), "cannot read the dead letters", "error", err)
		data.Unread = true
	}
	if data.Told = v.sight.everything; !data.Told {
		data.Letters = nil
	}
	if id, err := strconv.ParseUint(v.URL.Query().Get("letter"), 10, 64); err == nil && v.viewer.Operator {
		data.Did, data.DidSign = didOf(v.URL.Query().Get("did"), id)
	}
	return s.show(w, v, page{Template: "health", Title: "Health", Nav: "/health", Live: "all", Data: data})
}

func partRank(s overview.State) int {
	return slices.Index([]overview.State{overview.Failing, overview.Unknown, overview.OK}, s)
}

// partSign shows a state; one that is not known is unknown.
func partSign(s overview.State) sign {
	switch s {
	case overview.OK:
		return sign{"clear", "✓", "ok"}
	case overview.Failing:
		return sign{"blocked", "✕", "failing"}
	default:
		return sign{"undecided", "?", "unknown"}
	}
}

// What became of a dead letter, as the address says it.
const (
	didRetry = "retried"
	didDrop  = "dropped"
	didGone  = "gone"
)

func didOf(did string, id uint64) (string, sign) {
	switch did {
	case didRetry:
		return fmt.Sprintf("Dead letter %d was handed out again. If it fails again, it comes back with a new number.", id), signClear
	case didDrop:
		return fmt.Sprintf("Dead letter %d was dropped.", id), signClear
	case didGone:
		return fmt.Sprintf("Dead letter %d is not there any more: somebody else retried or dropped it. Nothing was done.", id), signWaiting
	default:
		return "", sign{}
	}
}

func (s *Server) retryDeadLetter(w http.ResponseWriter, v *visit) error {
	return s.deadLetter(w, v, didRetry, s.Health.Retry)
}

func (s *Server) dropDeadLetter(w http.ResponseWriter, v *visit) error {
	return s.deadLetter(w, v, didDrop, s.Health.Drop)
}

// deadLetter does something with a dead letter, and leads back to the page.
func (s *Server) deadLetter(w http.ResponseWriter, v *visit, did string, do func(context.Context, uint64) error) error {
	if err := s.checkForm(w, v); err != nil {
		return err
	}
	id, err := strconv.ParseUint(v.PostForm.Get("letter"), 10, 64)
	if err != nil {
		return &problem{Code: http.StatusBadRequest, Title: "That names no dead letter", Text: "Nothing was done. Open the page anew, and try again.", Retry: "/health"}
	}
	switch err := do(v.Context(), id); {
	case errors.Is(err, ErrNoDeadLetter):
		did = didGone
	case err != nil:
		return fmt.Errorf("dead letter %d cannot be %s: %w", id, did, err)
	default:
		s.Log.InfoContext(v.Context(), "an operator acted on a dead letter", "letter", id, "did", did, "person", v.viewer.Person.Login)
	}
	query := url.Values{"did": {did}, "letter": {strconv.FormatUint(id, 10)}}
	http.Redirect(w, v.Request, s.path("/health?"+query.Encode()), http.StatusSeeOther)
	return nil
}
