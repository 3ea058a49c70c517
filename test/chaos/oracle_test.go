package chaos

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOracle: the rules as people read them in the documents.
func TestOracle(t *testing.T) {
	push := func(head, diff string) Deed { return Deed{What: Push, By: Bob, Head: head, Diff: diff} }
	say := func(id int64, who, line string) Deed { return Deed{What: Say, By: who, ID: id, Line: line} }
	review := func(id int64, who string, what What) Deed { return Deed{What: what, By: who, ID: id} }
	tests := []struct {
		name     string
		kept     bool
		deeds    []Deed
		outcomes map[int64]string
		want     string
	}{
		{"nobody", false, []Deed{push("a", "1")}, nil, "pending"},
		{"an approver", false, []Deed{push("a", "1"), review(1, Alice, Approve)}, nil, "success"},
		{"a stranger", false, []Deed{push("a", "1"), review(1, Mallory, Approve)}, nil, "pending"},
		{"pushed since", false, []Deed{push("a", "1"), review(1, Alice, Approve), push("b", "1")}, nil, "pending"},
		{"pushed since, the same", true, []Deed{push("a", "1"), review(1, Alice, Approve), push("b", "1")}, nil, "success pending"},
		{"pushed since, another", true, []Deed{push("a", "1"), review(1, Alice, Approve), push("b", "2")}, nil, "pending"},
		{"there and back", false, []Deed{push("a", "1"), review(1, Alice, Approve), {What: Retarget, Base: "x"}, {What: Retarget, Base: "main"}}, nil, "pending"},
		{"dismissed", false, []Deed{push("a", "1"), review(1, Alice, Approve), review(1, Alice, Dismiss)}, nil, "pending"},
		{"asks for changes", false, []Deed{push("a", "1"), review(1, Alice, Approve), review(2, Carol, Reject)}, nil, "failure"},
		{"asks for changes, and approves", false, []Deed{push("a", "1"), review(1, Carol, Reject), review(2, Carol, Approve)}, nil, "success"},
		{"asks for changes, and says approve", false, []Deed{push("a", "1"), review(1, Carol, Reject), say(2, Carol, "/approve")}, map[int64]string{2: "approve"}, "success"},
		{"says approve, and asks for changes", false, []Deed{push("a", "1"), say(1, Carol, "/approve"), review(2, Carol, Reject)}, map[int64]string{1: "approve"}, "failure"},
		{"says approve, asks, is dismissed", false, []Deed{push("a", "1"), say(1, Carol, "/approve"), review(2, Carol, Reject), review(2, Alice, Dismiss)}, map[int64]string{1: "approve"}, "pending"},
		{"takes it back", false, []Deed{push("a", "1"), review(1, Carol, Approve), say(2, Carol, "/approve cancel")}, map[int64]string{2: "approve-cancel"}, "pending"},
		{"held", false, []Deed{push("a", "1"), review(1, Carol, Approve), say(2, Bob, "/hold because x")}, map[int64]string{2: "hold"}, "pending"},
		{"held and lifted", false, []Deed{push("a", "1"), review(1, Carol, Approve), say(2, Bob, "/hold because x"), say(3, Alice, "/unhold")}, map[int64]string{2: "hold", 3: "unhold"}, "success"},
		{"lifts only their own", false, []Deed{push("a", "1"), review(1, Carol, Approve), say(2, Carol, "/hold because x"), say(3, Bob, "/hold because x"), say(4, Bob, "/unhold")}, map[int64]string{2: "hold", 3: "hold", 4: "unhold"}, "pending"},
		{"overridden", false, []Deed{push("a", "1"), say(1, Alice, "/approve-override because x")}, map[int64]string{1: "override"}, "success pending"},
		{"overridden before the push", true, []Deed{push("a", "1"), say(1, Alice, "/approve-override because x"), push("b", "1")}, map[int64]string{1: "override"}, "pending"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Oracle{Kept: tt.kept}
			for _, d := range tt.deeds {
				if n := len(o.Deeds); n > 0 && d.Head == "" {
					d.Head, d.Diff = o.Deeds[n-1].Head, o.Deeds[n-1].Diff
				}
				o.Deeds = append(o.Deeds, d)
			}
			outcomes := map[int64]Outcome{}
			for i, d := range o.Deeds {
				if d.What != Say {
					continue
				}
				outcomes[d.ID] = Outcome{Kind: tt.outcomes[d.ID], Head: d.Head}
				if want := o.Admissible(i, outcomes); !strings.Contains(strings.Join(want, " "), tt.outcomes[d.ID]) {
					t.Errorf("%s by %s became %s, and may be %v", d.Line, d.By, tt.outcomes[d.ID], want)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(o.States(outcomes), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOracleForbids: what nobody may is not admitted.
func TestOracleForbids(t *testing.T) {
	for who, lines := range map[string][]string{
		Mallory: {"/approve", "/approve cancel", "/hold because x", "/unhold", "/approve-override because x", "/approve-override cancel"},
		Bob:     {"/approve", "/approve cancel", "/approve-override because x", "/unhold"},
		Carol:   {"/approve-override because x", "/approve-override cancel"},
	} {
		for _, line := range lines {
			o := Oracle{Deeds: []Deed{{What: Push, By: Bob, Head: "a"}, {What: Say, By: who, ID: 1, Line: line, Head: "a"}}}
			if got := o.Admissible(1, nil); len(got) != 1 || got[0] != "refused" {
				t.Errorf("%s by %s may become %v", line, who, got)
			}
			if o.Ever() {
				t.Errorf("%s by %s could clear the approval", line, who)
			}
		}
	}
	o := Oracle{Deeds: []Deed{{What: Push, Head: "a"}, {What: Say, By: Alice, ID: 1, Line: "/approve", Head: "a"}}}
	if o.Bound(1, Outcome{Kind: "approve", Head: "b"}) || !o.Bound(1, Outcome{Kind: "approve", Head: "a"}) {
		t.Error("an approval may be bound to another head than the one that was there")
	}
}

// TestRelay: while it is rough, webhooks are lost and doubled, and arrive as they were.
func TestRelay(t *testing.T) {
	var came atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "hook" || r.URL.Path != "/hooks/gitea" || r.Header.Get("X-Gitea-Event") != "push" {
			t.Errorf("%s %q came: %v", r.URL.Path, body, err)
		}
		came.Add(1)
	}))
	defer target.Close()
	relay, err := NewRelay(7)
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	relay.Aim(target.URL + "/")
	post := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, relay.URL+"hooks/gitea", strings.NewReader("hook"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gitea-Event", "push")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	for range 10 {
		if code := post(); code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
	}
	if came.Load() != 10 || relay.Lost() != 0 {
		t.Errorf("%d of 10 came while it was calm, %d lost", came.Load(), relay.Lost())
	}
	relay.Rough(true)
	for range 100 {
		post()
	}
	if lost := relay.Lost(); lost < 10 || lost > 60 {
		t.Errorf("%d of 100 were lost", lost)
	}
}
