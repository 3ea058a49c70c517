//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// TestReplicas: two replicas on a cluster of NATS do on the real Gitea what one does, each thing once, also
// while one of them or a server of NATS is gone. Package replica has more of them, on a stand-in for Gitea.
func TestReplicas(t *testing.T) {
	st := plantStage(t, seed.Options{Policy: decisionPolicy})
	nats, err := realserver.StartNATS(t.Context(), realserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Stop)
	var urls []string
	for _, n := range nats.Nodes() {
		urls = append(urls, "nats://"+n.Addr())
	}
	tap := newTap(t)
	shared := settings{gitea: tap.URL(), bus: fmt.Sprintf("{nats: {urls: [%s], nkey: %q, replicas: 3}}", strings.Join(urls, ", "), nats.Seed())}
	// All is told to one of them, and each of them sees to it.
	one := newBot(t, st.repo, shared)
	one.start()
	shared.noWebhook = true
	other := newBot(t, st.repo, shared)
	other.start()
	bob, carol := st.repo.Bob, st.repo.Carol

	began := time.Now()
	p := st.open(t, "shared", write("clusters/shared.yaml", "a: 1\n"))
	s, took := p.shows(patience, "success", "pending")
	t.Logf("true after %s", took)

	other.kill()
	p.gets(p.say(carol, "/approve"), "+1")
	_, took = p.shows(patience, "success", "success", "Approved by carol")
	t.Logf("one replica is gone: true after %s", took)
	other.start()

	leader, err := nats.Leader(t.Context(), "WORK")
	if err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	asked := time.Now()
	p.say(bob, "/merge")
	p.merged(s.head)
	t.Logf("the server that leads the work is gone: merged after %s", time.Since(asked))
	p.replies("Merged " + s.head[:10] + " as bob asked.")
	if err := leader.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	q := st.open(t, "after", write("docs/after.md", "A.\n"))
	q.shows(patience, "success", "success")
	if n := p.mergesAsked(tap, began); n != 1 {
		t.Errorf("%d requests to merge", n)
	}
	if n := strings.Count(strings.Join(p.replies(), "\n"), "Merged "); n != 1 {
		t.Errorf("told %d times that it is merged", n)
	}
	if out, code := one.run("audit", fmt.Sprintf("%s#%d", st.repo, p.number), "--config", one.config, "-o", "jsonl"); code != 0 || strings.Count(out, "\n") != 3 {
		t.Errorf("the ledger should have an approval, the wish to merge and the merge, and has (%d)\n%s", code, out)
	}
	made := slices.DeleteFunc(tap.Requests(), func(r realserver.Request) bool {
		return r.Method != http.MethodPost || !strings.HasSuffix(r.Path, fmt.Sprintf("/issues/%d/comments", q.number))
	})
	if len(made) != 1 {
		t.Errorf("%d comments were made on #%d: %v", len(made), q.number, made)
	}
}
