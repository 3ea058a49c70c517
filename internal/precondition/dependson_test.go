package precondition_test

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/fact"
	"signalbox/internal/precondition"
)

// pull41 puts pull request 41 of the same repository, changed by edit.
func pull41(edit func(*fact.Pull)) func(*world) {
	return func(w *world) {
		p := fact.Pull{
			Repo: "ops/home-gitops", RepoID: 7, Number: 41, Title: "Install CDI", State: fact.PullMerged, Base: "main",
			MergeCommit: mergeSHA, MergedAt: since, URL: "https://gitea.example.org/ops/home-gitops/pulls/41",
		}
		if edit != nil {
			edit(&p)
		}
		w.put(fact.Fact{Key: fact.PullKey("ops", "home-gitops", 41), Pull: &p})
	}
}

func (w *world) kustomization(cluster, name, applied string) {
	w.put(fact.Fact{
		Key:  fact.Kube(cluster, "Kustomization", "flux-system", name),
		Flux: &fact.Flux{Ready: fact.Condition{Status: fact.True}, Applied: applied},
	})
}

func TestDependsOn(t *testing.T) {
	const merged, applied = `dependsOn: {}`, `dependsOn: {applied: true}`
	body := func(text string, more ...func(*world)) func(*world) {
		return func(w *world) {
			w.body = text
			for _, m := range more {
				m(w)
			}
		}
	}
	ask := func(at string) precondition.Ask { return precondition.Ask{Applied: at, Needed: mergeSHA} }
	contains := func(at string, a precondition.Answer) func(*world) {
		return func(w *world) { w.answers[ask(at)] = a }
	}
	kustomization := func(name, applied string) func(*world) {
		return func(w *world) { w.kustomization("prod", name, applied) }
	}
	open := pull41(func(p *fact.Pull) { p.State, p.MergeCommit = fact.PullOpen, "" })
	runCases(t, nil, []kindCase{
		{name: "nothing named", text: merged, world: body("Bump CDI.\n"), want: precondition.Met, reason: "the description names no dependency"},
		{name: "merged", text: merged, world: body("Depends-On: #41", pull41(nil)), want: precondition.Met, reason: "pull request #41 (Install CDI) is merged"},
		{name: "open", text: merged, world: body("Words.\n\ndepends-on: ops/home-gitops#41\n", open), want: precondition.Unmet, reason: "pull request #41 (Install CDI) is not merged yet"},
		{
			name: "closed", text: merged, want: precondition.Unmet,
			world:  body("Depends-On: https://gitea.example.org/ops/home-gitops/pulls/41", pull41(func(p *fact.Pull) { p.State = fact.PullClosed })),
			reason: "pull request #41 (Install CDI) was closed without being merged",
		},
		{name: "in code and comments", text: merged, world: body("```\nDepends-On: #41\n```\n\n<!-- Depends-On: #41 -->\n\n> Depends-On: #41\n\n<!-- over\nDepends-On: #41\nlines --> x\n", open), want: precondition.Met, reason: "the description names no dependency"},
		{name: "in the middle of a sentence", text: merged, world: body("It depends on #41, says bob. Depends-On: #41", open), want: precondition.Met, reason: "the description names no dependency"},
		{name: "prose that begins so", text: merged, world: body("depends on the weather", open), want: precondition.Met, reason: "the description names no dependency"},
		{name: "in a list", text: merged, world: body("- [ ] Depends-On: #41", open), want: precondition.Unmet, reason: "pull request #41 (Install CDI) is not merged yet"},
		{name: "in bold, as a heading", text: merged, world: body("## **Depends-On:** #41", open), want: precondition.Unmet, reason: "pull request #41 (Install CDI) is not merged yet"},
		{name: "in details", text: merged, world: body("<details>\nDepends-On: #41\n</details>", open), want: precondition.Unmet, reason: "pull request #41 (Install CDI) is not merged yet"},
		{
			name: "on the next line", text: merged, want: precondition.Unmet, world: body("Depends-On:\n#41", open),
			reason: `the description depends on "Depends-On:", which names no pull request here; write #41, owner/name#41 or its address`,
		},
		{
			name: "an address in other letter case", text: merged, want: precondition.Unmet,
			world: body("Depends-On: https://gitea.example.org/Ops/Home-GitOps/pulls/41/", open), reason: "pull request #41 (Install CDI) is not merged yet",
		},
		{
			name: "no reference", text: merged, want: precondition.Unmet, world: body("Depends-On: 41"),
			reason: `the description depends on "41", which names no pull request here; write #41, owner/name#41 or its address`,
		},
		{
			name: "another Gitea", text: merged, want: precondition.Unmet, world: body("Depends-On: https://gitea.example.com/ops/home-gitops/pulls/41", open),
			reason: `the description depends on "https://gitea.example.com/ops/home-gitops/pulls/41", which names no pull request here; write #41, owner/name#41 or its address`,
		},
		{
			name: "unknown", text: merged, want: precondition.Unknown,
			world: body("Depends-On: ops/other#3", func(w *world) {
				w.put(fact.Fact{Key: fact.PullKey("ops", "other", 3), Problem: "Gitea has none"})
			}),
			reason: "pull request ops/other#3 cannot be read since 2026-09-07 02:44 UTC: Gitea has none",
		},
		{name: "not read yet", text: merged, world: body("Depends-On: #41"), want: precondition.Unknown, reason: "pull request #41 has not been read yet"},
		{
			name: "applied by all that follow", text: applied, want: precondition.Met,
			world: body("Depends-On: #41", pull41(nil),
				kustomization("apps", "main@sha1:"+mergeSHA), kustomization("infra", "main@sha1:"+nextSHA), contains(nextSHA, precondition.Contained),
				kustomization("elsewhere", "main@sha1:"+otherSHA), contains(otherSHA, precondition.Foreign),
				kustomization("next", "next@sha1:"+baseSHA), kustomization("chart", "1.2.3")),
			reason: "pull request #41 is merged, and applied on prod by all 2 Kustomizations",
		},
		{
			name: "not applied by one", text: applied, want: precondition.Unmet,
			world: body("Depends-On: #41", pull41(nil),
				kustomization("apps", "main@sha1:"+mergeSHA), kustomization("infra", "main@sha1:"+nextSHA), contains(nextSHA, precondition.NotContained)),
			reason: "pull request #41 is merged, but not applied on prod yet by flux-system/infra",
		},
		{
			name: "one that has never applied anything", text: applied, want: precondition.Unmet,
			world: body("Depends-On: #41", pull41(nil), kustomization("apps", "main@sha1:"+mergeSHA), func(w *world) {
				w.put(fact.Fact{Key: fact.Kube("prod", "Kustomization", "flux-system", "new"), Flux: &fact.Flux{Source: &fact.Ref{Kind: "GitRepository", Namespace: "flux-system", Name: "home"}}})
				w.put(fact.Fact{Key: fact.Kube("prod", "GitRepository", "flux-system", "home"), Flux: &fact.Flux{Applied: "main@sha1:" + mergeSHA}})
			}),
			reason: "pull request #41 is merged, but not applied on prod yet by flux-system/new",
		},
		{
			name: "one that has never applied anything, of a source that is not known", text: applied, want: precondition.Unknown,
			world:  body("Depends-On: #41", pull41(nil), kustomization("apps", "main@sha1:"+mergeSHA), kustomization("new", "")),
			reason: "it is not known whether flux-system/new on prod has applied bbbbbbbbbb (pull request #41)",
		},
		{
			name: "nobody follows", text: applied, want: precondition.Unknown, world: body("Depends-On: #41", pull41(nil)),
			reason: "no Kustomization on prod follows main of ops/home-gitops, so nobody can tell whether pull request #41 is applied",
		},
		{
			name: "not known yet", text: applied, want: precondition.Unknown,
			world:  body("Depends-On: #41", pull41(nil), kustomization("infra", "main@sha1:"+nextSHA)),
			reason: "it is not known whether flux-system/infra on prod has applied bbbbbbbbbb (pull request #41)",
		},
		{
			name: "no merge commit", text: applied, want: precondition.Unknown, world: body("Depends-On: #41", pull41(func(p *fact.Pull) { p.MergeCommit = "" })),
			reason: "pull request #41 (Install CDI) is merged, but Gitea does not tell by which commit",
		},
		{
			name: "one Kustomization alone", text: `dependsOn: {applied: true, kustomization: flux-system/apps}`, want: precondition.Met,
			world:  body("Depends-On: #41", pull41(nil), kustomization("apps", "main@sha1:"+mergeSHA), kustomization("infra", "main@sha1:"+nextSHA)),
			reason: "Kustomization flux-system/apps on prod has applied bbbbbbbbbb (pull request #41)",
		},
		{
			name: "one Kustomization that is not there", text: `dependsOn: {applied: true, kustomization: flux-system/apps}`, want: precondition.Unmet,
			world:  body("Depends-On: #41", pull41(nil)),
			reason: "Kustomization flux-system/apps does not exist on prod",
		},
	})
	problemCases(t, map[string][]string{
		`dependsOn: {kustomization: apps}`: {
			`p.yaml:1: dependsOn.kustomization: "apps" does not name an object (write "namespace/name")`,
			`p.yaml:1: dependsOn.kustomization: is asked about only if dependencies must be applied (write applied: true too)`,
		},
	})
}

func TestDependsOnItself(t *testing.T) {
	w := newWorld()
	put := func(owner, name string, number int64, body string) {
		w.put(fact.Fact{Key: fact.PullKey(owner, name, number), Pull: &fact.Pull{
			Repo: owner + "/" + name, Number: number, Title: "x", State: fact.PullOpen, Body: body,
		}})
	}
	put("ops", "home-gitops", 12, "")
	put("ops", "home-gitops", 41, "Depends-On: ops/other#3")
	put("ops", "other", 3, "Depends-On: OPS/Home-GitOps#12")
	for body, want := range map[string]string{
		"Depends-On: #12": "this pull request depends on itself: #12 depends on #12",
		"Depends-On: #41": "this pull request depends on itself: #12 depends on #41 depends on ops/other#3 depends on #12",
	} {
		w.body = body
		checks, _ := w.evaluate(t, `dependsOn: {}`)
		if last := checks[len(checks)-1]; last.State != precondition.Unmet || last.Reason != want {
			t.Errorf("%s: %s: %s, want %s", body, last.State, last.Reason, want)
		}
	}
}

// TestDependsOnAsksOfTheRightRepository: what another repository merged is asked
// of that one.
func TestDependsOnAsksOfTheRightRepository(t *testing.T) {
	w := newWorld()
	w.body = "Depends-On: ops/other#3"
	w.put(fact.Fact{Key: fact.PullKey("ops", "other", 3), Pull: &fact.Pull{Repo: "ops/other", RepoID: 8, Number: 3, State: fact.PullMerged, Base: "main", MergeCommit: mergeSHA}})
	w.kustomization("prod", "infra", "main@sha1:"+nextSHA)
	_, e := w.evaluate(t, `dependsOn: {applied: true}`)
	equal(t, []precondition.Ask{{Repo: "ops/other", Applied: nextSHA, Needed: mergeSHA}}, e.Asks())
}

// TestDependsOnIsQuick: what anybody may write costs little, whatever it is.
func TestDependsOnIsQuick(t *testing.T) {
	for name, body := range map[string]string{
		"quotes": strings.Repeat("> ", 1<<20), "links": strings.Repeat("[a](", 1<<18), "comments": strings.Repeat("<!--", 1<<18) + strings.Repeat("-->", 1<<18),
		"fences": strings.Repeat("```\n", 1<<18), "lists": strings.Repeat("- ", 1<<20), "words": "Depends-On: " + strings.Repeat("a,", 1<<18),
	} {
		w := newWorld()
		w.body = body
		if checks, _ := w.evaluate(t, "dependsOn: {}"); len(checks) == 0 || len(checks) > 21 {
			t.Errorf("%s: %d findings", name, len(checks))
		}
	}
}

// TestDependsOnIsBounded: a description may name many pull requests, and they
// may depend on many more.
func TestDependsOnIsBounded(t *testing.T) {
	w := newWorld()
	body := ""
	for i := range 100 {
		body += fmt.Sprintf("Depends-On: #%d\n", i+100)
	}
	w.body = body
	for i := range 100 {
		text := ""
		for j := range 100 {
			text += fmt.Sprintf("Depends-On: ops/r%d#%d\n", i, j+1)
		}
		w.put(fact.Fact{Key: fact.PullKey("ops", "home-gitops", int64(i+100)), Pull: &fact.Pull{Repo: "ops/home-gitops", RepoID: 7, Number: int64(i + 100), State: fact.PullOpen, Body: text}})
	}
	checks, e := w.evaluate(t, `dependsOn: {}`)
	if len(checks) != 21 || checks[20].Reason != "the description names more than 20 dependencies, which are the most" {
		t.Errorf("there are %d findings, want 20 and that there are more", len(checks))
	}
	if n := len(e.Wishes()); n != 50 {
		t.Errorf("there are %d wishes, want 50", n)
	}
}

// FuzzDependsOn: whatever a description says, the findings are few, and a line
// that plainly names an open pull request is never overlooked.
func FuzzDependsOn(f *testing.F) {
	for _, body := range []string{"Depends-On: #41", "- depends on: ops/other#3, #4", "```\nDepends-On: #1\n```", "<!-- Depends-On: #1 -->", "Depends-On:", "a <!-- b\n--> Depends-On: !7"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld()
		pull41(func(p *fact.Pull) { p.State = fact.PullOpen })(w)
		w.body = "Depends-On: #41\n\n" + body
		checks, _ := w.evaluate(t, "dependsOn: {}")
		if len(checks) == 0 || len(checks) > 22 {
			t.Fatalf("%d findings", len(checks))
		}
		if c := checks[0]; c.State == precondition.Met {
			t.Fatalf("the first dependency is %s: %s", c.State, c.Reason)
		}
	})
}
