package giteatest

import (
	"testing"
)

func TestMergeText(t *testing.T) {
	const base = "1\n2\n3\n4\n5\n6\n"
	for _, tt := range []struct {
		name         string
		ours, theirs string
		want         string
		conflict     bool
	}{
		{name: "theirs alone", ours: base, theirs: "1\nx\n3\n4\n5\n6\n", want: "1\nx\n3\n4\n5\n6\n"},
		{name: "ours alone", ours: "2\n3\n4\n5\n6\n", theirs: base, want: "2\n3\n4\n5\n6\n"},
		{name: "apart", ours: "1\nx\n3\n4\n5\n6\n", theirs: "1\n2\n3\n4\n5\ny\n", want: "1\nx\n3\n4\n5\ny\n"},
		{name: "the same", ours: "1\nx\n3\n4\n5\n6\n", theirs: "1\nx\n3\n4\n5\n6\n", want: "1\nx\n3\n4\n5\n6\n"},
		{name: "added and removed", ours: "0\n" + base, theirs: "1\n2\n3\n4\n", want: "0\n1\n2\n3\n4\n"},
		{name: "one line twice", ours: "1\nx\n3\n4\n5\n6\n", theirs: "1\ny\n3\n4\n5\n6\n", conflict: true},
		{name: "neighbours", ours: "1\nx\n3\n4\n5\n6\n", theirs: "1\n2\ny\n4\n5\n6\n", conflict: true},
		{name: "changed and removed", ours: "1\nx\n3\n4\n5\n6\n", theirs: "", conflict: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, sides := range [][2]string{{tt.ours, tt.theirs}, {tt.theirs, tt.ours}} {
				got, ok := mergeText(base, sides[0], sides[1])
				if ok == tt.conflict || ok && got != tt.want {
					t.Errorf("merged %v to %q, want %q", ok, got, tt.want)
				}
			}
		})
	}
}

func TestListsOfARuleFollowARename(t *testing.T) {
	m := newModel()
	s := &Server{model: m}
	for _, login := range []string{"alice", "bob"} {
		if _, _, err := s.CreateUser(t.Context(), login); err != nil {
			t.Fatal(err)
		}
	}
	owner, err := s.model.account("alice")
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{id: 1, owner: owner, name: "home", rules: []*rule{{Name: "main", MergeLimited: true, MergeUsers: []string{"alice"}}}}
	s.model.repos = append(s.model.repos, r)
	if err := s.RenameUser(t.Context(), "alice", "alicia"); err != nil {
		t.Fatal(err)
	}
	if !s.model.mayMerge(r, "main", owner) {
		t.Error("who was in the list is not, after a rename")
	}
	if err := s.RenameUser(t.Context(), "alicia", "BOB"); err == nil {
		t.Error("a name was taken twice")
	}
}
