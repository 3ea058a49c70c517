//go:build e2e

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"signalbox/internal/decision"
)

func preconditionsContext(base string) string { return "signalbox / preconditions (" + base + ")" }
func approvalContext(base string) string      { return "signalbox / approval (" + base + ")" }

// shown is what a pull request shows.
type shown struct {
	Head, Base              string
	Preconditions, Approval string
	By                      string
	Comments                int
}

// comments returns what signalbox says on a pull request, beside answers.
func (s *stage) comments(p *pullRequest) ([]*sdk.Comment, error) {
	var out []*sdk.Comment
	for page := 1; ; page++ {
		list, _, err := s.people[Bob].ListIssueComments(s.repo.Owner, s.repo.Name, p.number, sdk.ListIssueCommentOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if c.Poster.UserName == s.repo.Bot.Name && !strings.HasPrefix(c.Body, "<!-- signalbox reply ") {
				out = append(out, c)
			}
		}
		if len(list) < 50 {
			return out, nil
		}
	}
}

func (s *stage) look(p *pullRequest) (shown, error) {
	pr, _, err := s.people[Bob].GetPullRequest(s.repo.Owner, s.repo.Name, p.number)
	if err != nil {
		return shown{}, err
	}
	out := shown{Head: pr.Head.Sha, Base: pr.Base.Ref}
	newest := map[string]*sdk.Status{}
	for page := 1; ; page++ {
		list, _, err := s.people[Bob].ListStatuses(s.repo.Owner, s.repo.Name, out.Head, sdk.ListStatusesOption{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return shown{}, err
		}
		for _, st := range list {
			if newest[st.Context] == nil || st.ID > newest[st.Context].ID {
				newest[st.Context] = st
			}
		}
		if len(list) < 50 {
			break
		}
	}
	if st := newest[preconditionsContext(out.Base)]; st != nil {
		out.Preconditions = string(st.State)
	}
	if st := newest[approvalContext(out.Base)]; st != nil {
		out.Approval, out.By = string(st.State), st.Creator.UserName
	}
	comments, err := s.comments(p)
	out.Comments = len(comments)
	return out, err
}

// never checks of one pull request what must not be shown at any time, also while all
// is in trouble.
func (s *stage) never() {
	p := pick(s.random, s.pulls...)
	got, err := s.look(p)
	check(s.t, err)
	if now := p.now(); got.Head == now.Head && got.Base == now.Base && got.Approval == "success" && got.By == s.repo.Bot.Name && !p.Ever() {
		s.t.Errorf("#%d: %.8s is shown as approved, and nobody who may has approved it", p.number, got.Head)
	}
}

// settle waits until all that is shown is true, and stays, and nothing waits.
func (s *stage) settle() {
	s.calm()
	deadline := time.Now().Add(3 * time.Minute)
	var before []shown
	same := 0
	for {
		now, err := s.wrong()
		if err == nil {
			err = s.quiet()
		}
		if err == nil && cmp.Equal(before, now) {
			same++
		} else {
			same = 0
		}
		before = now
		// Longer than it takes to look at everything again.
		if same >= 6 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("what is shown does not become true: %v", err)
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatal(s.t.Context().Err())
		case <-time.After(time.Second):
		}
	}
	s.fresh(before)
	s.did("settled")
}

// wrong returns what is shown, and all that is not as it must be in the end.
func (s *stage) wrong() ([]shown, error) {
	ledger, err := s.ledger()
	if err != nil {
		return nil, err
	}
	var all []shown
	var errs []error
	for _, p := range s.pulls {
		outcomes, err := s.outcomes(p, ledger)
		errs = append(errs, err)
		got, err := s.look(p)
		if err != nil {
			return nil, err
		}
		all = append(all, got)
		now := p.now()
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("#%d: %s", p.number, fmt.Sprintf(format, args...)))
		}
		if got.Head != now.Head || got.Base != now.Base {
			wrong("is %.8s into %s, and should be %.8s into %s", got.Head, got.Base, now.Head, now.Base)
		}
		if got.Comments != 1 {
			wrong("has %d comments of signalbox", got.Comments)
		}
		if want := p.States(outcomes); !slices.Contains(want, got.Approval) || got.By != s.repo.Bot.Name {
			wrong("the approval is %s by %s, want %s", got.Approval, got.By, strings.Join(want, " or "))
		}
		met := got.Preconditions == "success"
		if met != (s.tier == "ready") && (!met || !p.Overridden(outcomes)) {
			wrong("the preconditions are %s while the tier is %s", got.Preconditions, s.tier)
		}
	}
	return all, errors.Join(errs...)
}

// ledger reads all entries of signalbox.
func (s *stage) ledger() ([]decision.Line, error) {
	resp, err := s.admin("/v1/decisions")
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var out []decision.Line
	for lines := json.NewDecoder(resp.Body); ; {
		var l decision.Line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	ids := map[string]bool{}
	for _, l := range out {
		if ids[l.ID] {
			s.t.Errorf("the ledger has %s twice", l.ID)
		}
		ids[l.ID] = true
	}
	for id := range s.known {
		if !ids[id] {
			s.t.Errorf("the ledger has lost %s", id)
		}
	}
	s.known = ids
	return out, nil
}

// outcomes are how the commands on a pull request were taken: each exactly once, and as
// it may be.
func (s *stage) outcomes(p *pullRequest, ledger []decision.Line) (map[int64]Outcome, error) {
	out := map[int64]Outcome{}
	var errs []error
	for i, d := range p.Deeds {
		if d.What != Say {
			continue
		}
		prefix := fmt.Sprintf("comment/%d/", d.ID)
		var of []decision.Line
		for _, l := range ledger {
			if strings.HasPrefix(l.ID, prefix) {
				of = append(of, l)
			}
		}
		if len(of) != 1 {
			errs = append(errs, fmt.Errorf("#%d: %s by %s (comment %d) has %d entries", p.number, d.Line, d.By, d.ID, len(of)))
			continue
		}
		got := Outcome{Kind: string(of[0].Kind), Head: of[0].Head}
		if want := p.Admissible(i, out); !slices.Contains(want, got.Kind) || !p.Bound(i, got) || !strings.EqualFold(of[0].By.Login, d.By) {
			s.t.Errorf("#%d: %s by %s on %.8s (comment %d) became %s by %s on %.8s (%s), want %s",
				p.number, d.Line, d.By, d.Head, d.ID, got.Kind, of[0].By.Login, got.Head, of[0].Reason, strings.Join(want, " or "))
		}
		out[d.ID] = got
	}
	return out, errors.Join(errs...)
}

var waiting = regexp.MustCompile(`(?m)^signalbox_bus_consumer_(?:pending|unacked)\{consumer="([^"]*)"\} ([0-9.e+]+)$`)

// quiet is nil when nothing waits on the bus and nothing was put aside.
func (s *stage) quiet() error {
	resp, err := s.admin("/v1/dead")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var dead struct {
		Total  int
		Reason string
	}
	if err := json.NewDecoder(resp.Body).Decode(&dead); err != nil {
		return err
	}
	if dead.Total > 0 {
		s.t.Errorf("%d messages were put aside: %s", dead.Total, dead.Reason)
	}
	metrics, err := http.Get(s.bot.URL + "metrics")
	if err != nil {
		return err
	}
	defer func() { _ = metrics.Body.Close() }()
	text, err := io.ReadAll(metrics.Body)
	if err != nil {
		return err
	}
	found := waiting.FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		return errors.New("the metrics do not tell what waits")
	}
	for _, m := range found {
		// Every few seconds there is work, because everything is looked at again.
		if n, err := strconv.ParseFloat(m[2], 64); err != nil || n > 0 && m[1] != "work" {
			return fmt.Errorf("%s waits for %s", m[2], m[1])
		}
	}
	return nil
}

var gate = regexp.MustCompile(`(?m)^\s+(preconditions|approval)\s+(clear|waiting|blocked|undecided)\b`)

// fresh compares what is shown with what the program says that looks at it afresh.
func (s *stage) fresh(all []shown) {
	states := map[string]string{"clear": "success", "waiting": "pending", "blocked": "failure", "undecided": "error"}
	for i, p := range s.pulls {
		cmd := exec.CommandContext(s.t.Context(), program, "check", "--config", s.bot.Config, fmt.Sprintf("%s#%d", s.repo, p.number))
		cmd.Env, cmd.Dir = s.bot.Environment(), s.dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
		got := map[string]string{}
		for _, m := range gate.FindAllStringSubmatch(string(out), -1) {
			got[m[1]] = states[m[2]]
		}
		if got["preconditions"] != all[i].Preconditions || got["approval"] != all[i].Approval {
			s.t.Errorf("#%d shows %+v, and bot check says:\n%s", p.number, all[i], out)
		}
	}
}
