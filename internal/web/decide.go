package web

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/policy"
)

const (
	// maxReason bounds a reason, in bytes; a command has a little more.
	maxReason = 900
	// commandRate and commandBurst bound the commands of one person, a second.
	commandRate  = 0.5
	commandBurst = 20
)

// forms are what a viewer can decide on the page of a pull request. A form is left
// out where it is plain that it would be refused; the rules decide all the same.
type forms struct {
	// Head is the commit that decisions are about.
	Head string
	// Approve offers an approval, and TakeBack to take one back. NoApprove says why
	// there is neither.
	Approve, TakeBack bool
	NoApprove         string
	Hold, Unhold      bool
	// Merge offers to ask for a merge, and MergeCancel to end that. NoMerge says why
	// there is neither.
	Merge, MergeCancel bool
	NoMerge            string
	// Override offers to pass what is open; NoOverride says why not.
	Override   bool
	NoOverride string
	Open       int
}

// formsOf says what a viewer can decide; nil for who has not signed in, and where
// signalbox decides nothing.
func formsOf(v viewer, p *pullView) *forms {
	if v.anonymous() || p.Observed {
		return nil
	}
	f := &forms{Head: p.Pull.Head.SHA, Hold: true, Unhold: len(p.Verdict.Holds) > 0, MergeCancel: p.Verdict.Merge != nil}
	if !p.Current {
		why := "signalbox has not looked at " + short(f.Head) + " yet."
		f.NoApprove, f.NoMerge, f.NoOverride = why, why, why
		return f
	}
	author := p.Pull.Author.Is(v.Person)
	f.approval(v, p, author)
	switch {
	case f.MergeCancel:
	case f.Unhold:
		f.NoMerge = "It is held, so it cannot be merged."
	default:
		f.Merge = true
	}
	f.Open = len(p.Verdict.OpenRules())
	switch {
	case f.Open == 0:
		f.NoOverride = "Nothing is open that could be overridden."
	case author:
		f.NoOverride = "You wrote this change, so others have to override."
	default:
		f.Override = true
	}
	return f
}

// approval says whether the viewer can approve, or take that back.
func (f *forms) approval(v viewer, p *pullView, author bool) {
	var can []string
	unknown := false
	for _, a := range p.Approvals {
		if slices.ContainsFunc(a.By, func(b policy.Approval) bool { return b.Person.Is(v.Person) }) {
			f.TakeBack = true
		}
		unknown = unknown || a.State == policy.Unknown
		for _, login := range a.CanApprove {
			if !slices.Contains(can, login) {
				can = append(can, login)
			}
		}
	}
	mine := slices.ContainsFunc(can, func(l string) bool { return strings.EqualFold(l, v.Person.Login) })
	switch {
	case author:
		f.NoApprove = "You wrote this change, so others have to approve it."
	case len(p.Approvals) == 0:
		f.NoApprove = "No rule asks for an approval of this change."
	case mine || unknown && !f.TakeBack:
		f.Approve = true
	case f.TakeBack:
	case len(can) == 0:
		f.NoApprove = "You are not among those who may approve this change."
	default:
		f.NoApprove = fmt.Sprintf("You are not among those who can approve: %s.", either(can))
	}
}

// commanders bounds how fast people give commands.
type commanders struct {
	byPerson *lru.Cache[int64, *rate.Limiter]
}

func newCommanders() *commanders {
	// The only error is of a size that is not positive.
	c, _ := lru.New[int64, *rate.Limiter](10_000)
	return &commanders{c}
}

func (c *commanders) allow(v *visit) bool {
	fresh := rate.NewLimiter(commandRate, commandBurst)
	limiter, known, _ := c.byPerson.PeekOrAdd(v.viewer.Person.ID, fresh)
	if !known {
		limiter = fresh
	}
	return limiter.AllowN(v.now, 1)
}

// fullCommit is the name of a commit, whole.
var fullCommit = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// lineOf makes the line of a command of what a form asks for.
func lineOf(do, reason string) (string, error) {
	switch do {
	case "approve", "hold", "unhold", "merge", "recheck", "override":
	case "approve-cancel":
		return string(command.Approve) + " " + command.Cancel, nil
	case "merge-cancel":
		return string(command.Merge) + " " + command.Cancel, nil
	default:
		return "", &problem{Code: http.StatusBadRequest, Title: "Nothing was done", Text: "signalbox does not know what was asked for. Open the page anew, and try again."}
	}
	reason = clean(reason)
	switch {
	case len(reason) > maxReason:
		return "", &problem{Code: http.StatusBadRequest, Title: "Nothing was done", Text: fmt.Sprintf("The reason is longer than %d bytes. Go back and make it shorter.", maxReason)}
	case do == "hold":
		return strings.TrimSpace(string(command.Hold) + " " + reason), nil
	case do == "override" && reason == "":
		return "", &problem{Code: http.StatusBadRequest, Title: "Nothing was done", Text: "Who overrides says why. Go back and give a reason."}
	case do == "override" && strings.EqualFold(reason, command.Cancel):
		return "", &problem{Code: http.StatusBadRequest, Title: "Nothing was done", Text: "That is no reason: as a command it would end an override."}
	case do == "override":
		return string(command.Override) + " " + reason, nil
	}
	return do, nil
}

// command takes what a form of the page of a pull request asks for, and leads back
// to the page, which shows what became of it.
func (s *Server) command(w http.ResponseWriter, v *visit) error {
	if err := s.checkForm(w, v); err != nil {
		return err
	}
	repo, ref, standing, open, err := s.target(v)
	switch {
	case err != nil:
		return err
	case !open:
		return &problem{Code: http.StatusConflict, Title: "Nothing was done", Text: "The pull request is not open any more."}
	case standing.Observed:
		return &problem{Code: http.StatusConflict, Title: "Nothing was done", Text: "signalbox only observes this repository, and decides nothing there."}
	}
	head := v.PostForm.Get("head")
	if !fullCommit.MatchString(head) {
		return &problem{Code: http.StatusBadRequest, Title: "Nothing was done", Text: "The form does not say which commit it is about. Open the page anew, and try again."}
	}
	line, err := lineOf(v.PostForm.Get("do"), v.PostForm.Get("reason"))
	if err != nil {
		return err
	}
	if !s.commanders.allow(v) {
		w.Header().Set("Retry-After", "10")
		return &problem{Code: http.StatusTooManyRequests, Title: "Nothing was done", Text: "That were many commands in a short time. Try again in a few seconds."}
	}
	cause := newCause()
	if err := s.Commands.Give(v.Context(), Command{Cause: cause, By: v.viewer.Person, Ref: ref, Line: line, Head: head}); err != nil {
		s.Log.ErrorContext(v.Context(), "command not taken", "repo", repo.String(), "pull", repo.Numbered(ref.Number), "error", err)
		return &problem{Code: http.StatusServiceUnavailable, Title: "Nothing was done", Text: "signalbox could not take the command: its bus does not answer. Go back and try again in a moment."}
	}
	http.Redirect(w, v.Request, s.path(pullPath(repo, ref.Number))+"?said="+url.QueryEscape(cause), http.StatusSeeOther)
	return nil
}

// newCause names a command for good.
func newCause() string {
	b := make([]byte, 16)
	// It never fails; see package rand.
	_, _ = rand.Read(b)
	return "web/" + hex.EncodeToString(b)
}

var causeForm = regexp.MustCompile(`^web/[0-9a-f]{32}$`)

// said is what became of a command that was given on the page.
type said struct {
	// Pending says that it is not carried out yet.
	Pending bool
	Sign    sign
	Text    string
}

// saidOf looks up what became of a command; nil where none is asked about.
func saidOf(cause string, entries decision.Ledger) *said {
	if !causeForm.MatchString(cause) {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.ID, cause+"/") {
			continue
		}
		words, _ := wordsOf(e.Kind)
		switch e.Kind {
		case decision.Refused:
			return &said{Sign: signBlocked, Text: "Not carried out: " + e.Reason}
		case decision.Answered:
			return &said{Sign: signClear, Text: "signalbox looked again."}
		case decision.Merge:
			return &said{Sign: signClear, Text: "signalbox merges this as soon as it is clear. A push, a hold or a cancellation ends that."}
		}
		return &said{Sign: signClear, Text: "Carried out: " + e.By.Login + " " + words + "."}
	}
	return &said{Pending: true, Sign: signWaiting, Text: "Your command was taken, and is carried out in a moment."}
}
