//go:build e2e

package replica

import (
	"testing"
	"time"
)

// TestSeveralReplicas: two and three replicas do everything once, and none is the leader.
func TestSeveralReplicas(t *testing.T) {
	for name, n := range map[string]int{"two": 2, "three": 3} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, options{replicas: n})
			l := st.begin(300 * time.Millisecond)
			st.pass(10 * time.Second)
			l.end()
			st.settles(l)
		})
	}
}

// TestRollingRestart: replicas are replaced one after the other.
func TestRollingRestart(t *testing.T) {
	st := newStage(t, options{replicas: 3})
	l := st.begin(pace)
	for _, r := range st.replicas {
		st.outage(l, "restart of "+r.name, func() { st.must(r.Restart(t.Context())) })
	}
	l.end()
	st.settles(l)
}

// TestKilledReplica: each replica is killed in the middle of its work.
func TestKilledReplica(t *testing.T) {
	st := newStage(t, options{replicas: 3})
	l := st.begin(pace)
	for _, r := range st.replicas {
		st.outage(l, r.name+" is killed", r.Kill)
		st.must(r.Restart(t.Context()))
	}
	l.end()
	st.settles(l)
}

// TestKilledServer: each server of NATS is killed, the one that leads the events first. A digest comes every
// minute, and each one once.
func TestKilledServer(t *testing.T) {
	st := newStage(t, options{replicas: 3, more: `digests:
  - {name: minutely, schedule: "* * * * *", sections: [gate], chart: false, to: [{issue: alice/home-gitops}]}
`})
	l := st.begin(pace)
	leader, err := st.nats.Leader(t.Context(), "EVENTS")
	st.must(err)
	nodes := append(st.nats.Nodes(), leader)
	for i := range nodes {
		n := nodes[len(nodes)-1-i]
		if i > 0 && n == leader {
			continue
		}
		what := n.Name + " is killed"
		if n == leader {
			what += ", which leads EVENTS"
		}
		st.outage(l, what, n.Kill)
		st.must(n.Restart(t.Context()))
		took := st.eventually(patience, n.Name+" has caught up", func() error { return n.Ready(t.Context()) })
		t.Logf("%-40s after %5.1fs", n.Name+" has caught up", took.Seconds())
	}
	l.end()
	st.allReady("all replicas are ready")
	st.settles(l)
	st.digestsCameOnce()
}

// TestReplicaCutOff: one replica does not reach NATS any more. It takes nothing and says nothing until it
// does again.
func TestReplicaCutOff(t *testing.T) {
	st := newStage(t, options{replicas: 3})
	l := st.begin(pace)
	r := st.replicas[0]
	cut := time.Now()
	st.outage(l, r.name+" is cut off", func() {
		for _, link := range r.links {
			link.Hang()
		}
	})
	if err := r.ready(t.Context()); err == nil {
		t.Error("a replica without NATS is ready")
	}
	if code := st.front.again(r.URL); code != 503 {
		t.Errorf("a replica without NATS answers a webhook with %d", code)
	}
	// What it had begun before may end a moment later.
	if hits := r.hits(cut.Add(time.Second)); len(hits) > 0 {
		t.Errorf("it changed %q", hits)
	}
	st.outage(l, r.name+" is back", func() {
		for _, link := range r.links {
			st.must(link.Pass())
		}
	})
	st.allReady("all replicas are ready")
	l.end()
	st.settles(l)
}

// TestServerCutOff: the server of NATS that leads the events does not reach the others any more, while
// replicas are connected to it.
func TestServerCutOff(t *testing.T) {
	st := newStage(t, options{replicas: 3})
	l := st.begin(pace)
	leader, err := st.nats.Leader(t.Context(), "EVENTS")
	st.must(err)
	st.outage(l, leader.Name+" is cut off", func() { st.nats.CutOff(leader) })
	st.allReady("all replicas have gone elsewhere")
	st.outage(l, leader.Name+" is back", func() { st.must(st.nats.Rejoin(leader)) })
	st.eventually(2*patience, leader.Name+" has caught up", func() error { return leader.Ready(t.Context()) })
	l.end()
	st.settles(l)
}

// pace is the pause between two pull requests while something fails.
const pace = 600 * time.Millisecond
