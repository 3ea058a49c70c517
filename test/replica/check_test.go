//go:build e2e

package replica

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/gitea"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// settles waits until every pull request shows what it should, and then checks that everything came once.
// What signalbox was told of needs nobody else; for the rest one replica is started anew, which looks at
// every open pull request as the reconciler does.
func (st *stage) settles(l *load) {
	st.t.Helper()
	var told, untold []*change
	for _, c := range l.all() {
		if st.front.told(c.number) {
			told = append(told, c)
		} else {
			untold = append(untold, c)
		}
	}
	took := st.allShow("every pull request of which signalbox was told", told)
	if len(untold) > 0 {
		st.must(st.replicas[0].Restart(st.t.Context()))
		st.allShow("every other pull request", untold)
	}
	st.t.Logf("%d pull requests, of %d of which not everything was told, show what is true %s after the load ended",
		len(l.all()), len(untold), took.Round(100*time.Millisecond))
	st.idle()
	for _, c := range l.all() {
		// It may have been true on the way alone.
		if err := st.shows(c); err != nil {
			st.t.Errorf("#%d (%s) shows what is not true any more: %v", c.number, c.kind.name, err)
		}
	}
	st.once(l)
	st.tookAll()
}

// allShow waits until all pull requests show what they should.
func (st *stage) allShow(what string, left []*change) time.Duration {
	st.t.Helper()
	return st.eventually(2*patience, what+" shows what is true", func() error {
		var first error
		left = slices.DeleteFunc(left, func(c *change) bool {
			err := st.shows(c)
			if err != nil && first == nil {
				first = fmt.Errorf("%d are left, the first is #%d (%s): %w", len(left), c.number, c.kind.name, err)
			}
			return err == nil
		})
		return first
	})
}

// shows is nil when a pull request shows what it should, in one comment.
func (st *stage) shows(c *change) error {
	ctx := st.t.Context()
	p, err := st.eyes.Pull(ctx, st.repo, c.number)
	if err != nil {
		return err
	}
	if c.kind.name == "merged" {
		if p.State != pull.Merged {
			return fmt.Errorf("it is %s", p.State)
		}
		return nil
	}
	statuses, err := st.eyes.Statuses(ctx, st.repo, p.Head.SHA)
	if err != nil {
		return err
	}
	got := map[string]string{}
	for _, s := range statuses {
		got[s.Context] = s.State
	}
	want := map[string]string{render.PreconditionsContext("main"): c.kind.preconditions, render.ApprovalContext("main"): c.kind.approval}
	if c.kind.preconditions == "" {
		want[render.PreconditionsContext("main")] = "success" // The tier is left ready.
	}
	for name, state := range want {
		if got[name] != state {
			return fmt.Errorf("%s is %q, want %q", name, got[name], state)
		}
	}
	return st.comments(c)
}

// comments is nil when there is one comment of signalbox, beside its replies.
func (st *stage) comments(c *change) error {
	all, err := st.eyes.Comments(st.t.Context(), st.repo, c.number)
	if err != nil {
		return err
	}
	n := 0
	for _, comment := range all {
		if comment.Author.Login == "signalbox" && !strings.HasPrefix(comment.Body, "<!-- signalbox reply") {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("there are %d comments of signalbox", n)
	}
	return nil
}

// once checks that every effect came once.
func (st *stage) once(l *load) {
	st.t.Helper()
	ledger := st.ledger()
	for _, c := range l.all() {
		p, err := st.eyes.Pull(st.t.Context(), st.repo, c.number)
		st.must(err)
		byContext, err := st.effect.statuses(p.Head.SHA)
		st.must(err)
		for name, list := range byContext {
			if n := repeats(list); n > 0 {
				st.t.Errorf("#%d (%s): %d times %s said what it had said: %+v", c.number, c.kind.name, n, name, list)
			}
		}
		if n := st.made(c.number); n != 1 {
			st.t.Errorf("#%d (%s): %d comments were made", c.number, c.kind.name, n)
		}
		merges := len(st.effect.matching(http.MethodPost, fmt.Sprintf(".*/pulls/%d/merge", c.number)))
		if want := count(c.kind.entries, decision.Merged); merges != want {
			st.t.Errorf("#%d (%s): %d times it was asked for a merge, want %d", c.number, c.kind.name, merges, want)
		}
		var got []decision.Kind
		for _, e := range ledger {
			if e.Number == c.number {
				got = append(got, e.Kind)
			}
		}
		if !slices.Equal(got, c.kind.entries) {
			st.t.Errorf("#%d (%s): the ledger has %v, want %v", c.number, c.kind.name, got, c.kind.entries)
		}
	}
	st.must(st.hooked())
}

// digestsCameOnce waits for a digest, and checks that there is one issue of it and that each report was
// written there once.
func (st *stage) digestsCameOnce() {
	st.t.Helper()
	st.eventually(2*patience, "a digest has come", func() error {
		if len(st.effect.matching(http.MethodPost, ".*/home-gitops/issues")) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	writes := append(st.effect.matching(http.MethodPost, ".*/home-gitops/issues"), st.effect.matching(http.MethodPatch, ".*/home-gitops/issues/[0-9]+")...)
	if n := len(st.effect.matching(http.MethodPost, ".*/home-gitops/issues")); n != 1 {
		st.t.Errorf("%d issues were made", n)
	}
	for i := 1; i < len(writes); i++ {
		if bytes.Equal(writes[i].body, writes[i-1].body) {
			st.t.Errorf("the digest of %s was written twice", writes[i].at)
		}
	}
	if reports := st.kept("KV_reports"); len(writes) > reports {
		st.t.Errorf("%d reports were written %d times", reports, len(writes))
	}
	st.t.Logf("%d digests came", len(writes))
}

// made counts the comments that were made on a pull request, beside replies.
func (st *stage) made(number int64) int {
	n := 0
	for _, e := range st.effect.matching(http.MethodPost, fmt.Sprintf(".*/issues/%d/comments", number)) {
		if !bytes.Contains(e.body, []byte("signalbox reply")) {
			n++
		}
	}
	return n
}

func count(list []decision.Kind, k decision.Kind) (n int) {
	for _, x := range list {
		if x == k {
			n++
		}
	}
	return n
}

// ledger reads what people decided, as an operator would.
func (st *stage) ledger() decision.Ledger {
	st.t.Helper()
	cmd := exec.CommandContext(st.t.Context(), program, "audit", "--config", st.replicas[0].Config, "-o", "jsonl")
	cmd.Env = append(os.Environ(), "SIGNALBOX_GITEA_TOKEN="+st.token, "SIGNALBOX_WEBHOOK_SECRET="+webhookSecret)
	out, err := cmd.Output()
	st.must(err)
	var all decision.Ledger
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var e decision.Entry
		st.must(json.Unmarshal(lines.Bytes(), &e))
		all = append(all, e)
	}
	st.must(lines.Err())
	return all
}

// tookAll checks that each event of a delivery that was answered with 2xx is on the bus, once.
func (st *stage) tookAll() {
	st.t.Helper()
	// First what was delivered, then what is stored: something may come in between.
	deliveries := st.front.deliveries()
	stored := st.events()
	taken, lost := 0, 0
	for _, s := range deliveries {
		found, err := gitea.Decode(s.header, s.body, s.at)
		st.must(err)
		if len(found) == 0 {
			continue // Of no interest.
		}
		if n := stored[found[0].ID]; n > 1 || n == 0 && s.taken() {
			st.t.Errorf("event %s, answered with %v, is %d times on the bus", found[0].ID, s.codes, n)
		}
		if s.taken() {
			taken++
		} else {
			lost++
		}
	}
	st.t.Logf("%d deliveries were taken, %d were not", taken, lost)
}
