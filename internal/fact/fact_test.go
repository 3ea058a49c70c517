package fact_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/fact"
)

// natsKey is what NATS accepts as the key of a key-value bucket.
var natsKey = regexp.MustCompile(`^[-/_=\.a-zA-Z0-9]+$`)

func TestKeysAreDistinctAndReadable(t *testing.T) {
	keys := []fact.Key{
		fact.Kube("prod", "Kustomization", "flux-system", "apps"),
		fact.Kube("prod", "Kustomization", "flux", "system.apps"),
		fact.Kube("prod", "Kustomization", "flux.system", "apps"),
		fact.Kube("prod.eu", "Kustomization", "flux-system", "apps"),
		fact.Kube("prod", "Kustomization", "", "apps"),
		fact.Kube("prod", "Kustomization", "=", "apps"),
		fact.Kube("dev", "Kustomization", "flux-system", "apps"),
		fact.Kube("prod", "ClusterRole", "", "system:node"),
		fact.ClusterKey("prod"),
		fact.ClusterKey("größe"),
	}
	seen := map[string]fact.Key{}
	for _, k := range keys {
		s := k.String()
		if other, dup := seen[s]; dup {
			t.Errorf("%+v and %+v share %q", k, other, s)
		}
		seen[s] = k
		if !natsKey.MatchString(s) {
			t.Errorf("%q is not a key that NATS accepts", s)
		}
		back, err := fact.ParseKey(s)
		if err != nil {
			t.Errorf("ParseKey(%q): %v", s, err)
		}
		if diff := cmp.Diff(k, back); diff != "" {
			t.Errorf("key changed (-want +got):\n%s", diff)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(fact.Kube("prod", "Kustomization", "flux-system", "a.b").String())
	f.Add("a.b.c.=.=2")
	f.Add("=41.b.c.d.e")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := fact.ParseKey(s)
		if err == nil && k.String() != s {
			t.Errorf("ParseKey(%q) = %+v, which is written %q", s, k, k.String())
		}
	})
}

func TestParseRevision(t *testing.T) {
	const sha = "b8e362c206e3d0cbb7ed22ced771a0056455a2fb"
	tests := []struct {
		in   string
		want fact.Revision
	}{
		{"main@sha1:" + sha, fact.Revision{Branch: "main", Commit: sha}},
		{"refs/heads/main@sha1:" + sha, fact.Revision{Branch: "main", Commit: sha}},
		{"feature/x@y@sha1:" + sha, fact.Revision{Branch: "feature/x@y", Commit: sha}},
		{"sha1:" + sha, fact.Revision{Commit: sha}},
		{"main/" + sha, fact.Revision{Branch: "main", Commit: sha}},
		{"feature/x/" + sha, fact.Revision{Branch: "feature/x", Commit: sha}},
		{"HEAD/" + sha, fact.Revision{Commit: sha}},
		{"B8E362C206E3D0CBB7ED22CED771A0056455A2FB", fact.Revision{Commit: sha}},
		{"latest@sha256:f7f6d7e5a3bd0dc8a9b6f2e5c4d3b2a1f7f6d7e5a3bd0dc8a9b6f2e5c4d3b2a1", fact.Revision{Branch: "latest"}},
		{"main@sha1:zzz", fact.Revision{Branch: "main"}},
		{"6.3.1", fact.Revision{Branch: "6.3.1"}},
		{"", fact.Revision{}},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fact.ParseRevision(tt.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewer(t *testing.T) {
	f := func(uid, version string) fact.Fact { return fact.Fact{UID: uid, Version: version} }
	tests := []struct {
		name     string
		new, old fact.Fact
		want     bool
	}{
		{"larger", f("a", "11"), f("a", "9"), true},
		{"smaller", f("a", "9"), f("a", "11"), false},
		{"equal", f("a", "9"), f("a", "9"), true},
		{"more digits than an int64", f("a", "99999999999999999999"), f("a", "100000000000000000000"), false},
		{"another object", f("b", "9"), f("a", "11"), true},
		{"no version before", f("a", "9"), f("", ""), true},
		{"no version now", f("", ""), f("a", "9"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.new.Newer(tt.old); got != tt.want {
				t.Errorf("Newer = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSame(t *testing.T) {
	now := time.Date(2026, 9, 6, 22, 0, 0, 0, time.UTC)
	a := fact.Fact{UID: "u", Version: "1", SeenAt: now, Since: now, Flux: &fact.Flux{Applied: "x"}}
	b := a
	b.Version, b.SeenAt = "2", now.Add(time.Hour)
	b.Since = now.In(time.FixedZone("x", 3600))
	b.Flux = &fact.Flux{Applied: "x"}
	if !a.Same(b) {
		t.Error("another version and time of reading made a difference")
	}
	b.Flux = &fact.Flux{Applied: "y"}
	if a.Same(b) {
		t.Error("another applied revision made no difference")
	}
}
