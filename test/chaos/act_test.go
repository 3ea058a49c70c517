//go:build e2e

package chaos

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/test/realserver"
)

// maxPulls is how many pull requests a run has at most.
const maxPulls = 4

// act lets somebody do something, by chance. What cannot be done just now is left out.
func (s *stage) act() {
	if len(s.pulls) < 2 || len(s.pulls) < maxPulls && s.random.IntN(12) == 0 {
		s.open()
		return
	}
	p := pick(s.random, s.pulls...)
	switch n := s.random.IntN(100); {
	case n < 24:
		s.did("%s", s.fault())
	case n < 32:
		s.pushAnother(p)
	case n < 35:
		s.moveMain()
	case n < 40:
		s.rebase(p)
	case n < 70:
		s.say(p, pick(s.random, Alice, Alice, Bob, Carol, Mallory), s.command())
	case n < 82:
		s.review(p)
	case n < 85:
		s.dismiss(p)
	case n < 89:
		s.retarget(p)
	case n < 95:
		s.setTier(pick(s.random, "ready", "ready", "failing", "gone"))
	case n < 98:
		s.forge(p)
	default:
		s.deleteComment(p)
	}
}

func (s *stage) command() string {
	return pick(s.random, "/approve", "/approve", "/approve", "/approve cancel", "/hold because of the weather", "/unhold", "/unhold",
		"/approve-override because it burns", "/approve-override cancel")
}

// deed notes what was done to a pull request, as it is now but for what the deed says.
func (p *pullRequest) deed(d Deed) {
	if len(p.Deeds) > 0 {
		now := p.now()
		if d.Head == "" {
			d.Head, d.Diff = now.Head, now.Diff
		}
		if d.Base == "" {
			d.Base = now.Base
		}
	}
	p.Deeds = append(p.Deeds, d)
}

func (s *stage) open() {
	ctx := s.t.Context()
	s.next++
	p := &pullRequest{branch: fmt.Sprintf("change-%d", s.next), path: "strict/a.yaml"}
	if p.Kept = s.next%2 == 0; p.Kept {
		p.path = "kept/a.yaml"
	}
	p.path = fmt.Sprintf("%s%d.yaml", p.path[:len(p.path)-len("a.yaml")], s.next)
	p.text = "a: 1\n"
	check(s.t, s.clone.Fetch(ctx))
	check(s.t, s.clone.Branch(ctx, p.branch, "origin/main"))
	head := must[string](s.t)(s.clone.Commit(ctx, realserver.Change{Message: "Change " + p.path, Write: map[string]string{p.path: p.text}}))
	check(s.t, s.clone.Push(ctx, p.branch))
	pr, _, err := s.people[Bob].CreatePullRequest(s.repo.Owner, s.repo.Name, sdk.CreatePullRequestOption{Head: p.branch, Base: "main", Title: "Change " + p.path})
	check(s.t, err)
	p.number = pr.Index
	p.deed(Deed{What: Push, By: Bob, Head: head, Diff: p.text, Base: "main"})
	s.pulls = append(s.pulls, p)
	s.did("#%d is opened at %.8s, %s", p.number, head, p.path)
}

func (s *stage) pushAnother(p *pullRequest) {
	ctx := s.t.Context()
	check(s.t, s.clone.Checkout(ctx, p.branch))
	// Now and then it is as it was before.
	text := pick(s.random, "a: 1\n", "a: 2\n", "a: 3\n")
	if text == p.text {
		text = "a: 4\n"
	}
	p.text = text
	head := must[string](s.t)(s.clone.Commit(ctx, realserver.Change{Message: "Change it again", Write: map[string]string{p.path: text}}))
	check(s.t, s.clone.ForcePush(ctx, p.branch))
	p.deed(Deed{What: Push, By: Bob, Head: head, Diff: text})
	s.did("#%d: pushed %.8s", p.number, head)
}

// moveMain changes what pull requests go into, beside what they change.
func (s *stage) moveMain() {
	s.next++
	_, _, err := s.people[Alice].CreateFile(s.repo.Owner, s.repo.Name, fmt.Sprintf("docs/%d.md", s.next), sdk.CreateFileOptions{
		FileOptions: sdk.FileOptions{Message: "Write more", BranchName: "main"},
		Content:     base64.StdEncoding.EncodeToString([]byte("More.\n")),
	})
	check(s.t, err)
	s.did("main moves")
}

func (s *stage) rebase(p *pullRequest) {
	ctx := s.t.Context()
	check(s.t, s.clone.Fetch(ctx))
	check(s.t, s.clone.Checkout(ctx, p.branch))
	check(s.t, s.clone.Rebase(ctx, "origin/main"))
	head := must[string](s.t)(s.clone.Head(ctx))
	if head == p.now().Head {
		return
	}
	check(s.t, s.clone.ForcePush(ctx, p.branch))
	diff := p.text
	if p.now().Base != "main" {
		// Into another branch it takes along what is new on main.
		diff += head
	}
	p.deed(Deed{What: Push, By: Bob, Head: head, Diff: diff})
	s.did("#%d: rebased to %.8s", p.number, head)
}

func (s *stage) say(p *pullRequest, who, line string) {
	c, _, err := s.people[who].CreateIssueComment(s.repo.Owner, s.repo.Name, p.number, sdk.CreateIssueCommentOption{Body: line})
	check(s.t, err)
	p.deed(Deed{What: Say, By: who, ID: c.ID, Line: line})
	s.did("#%d: %s says %s (comment %d)", p.number, who, line, c.ID)
}

func (s *stage) review(p *pullRequest) {
	who, what, state := pick(s.random, Alice, Carol, Mallory), Approve, sdk.ReviewStateApproved
	if who != Mallory && s.random.IntN(4) == 0 {
		what, state = Reject, sdk.ReviewStateRequestChanges
	}
	r, _, err := s.people[who].CreatePullReview(s.repo.Owner, s.repo.Name, p.number, sdk.CreatePullReviewOptions{
		State: state, Body: "I have looked at it.", CommitID: p.now().Head,
	})
	check(s.t, err)
	p.reviews = append(p.reviews, r.ID)
	p.deed(Deed{What: what, By: who, ID: r.ID})
	s.did("#%d: %s reviews %.8s: %s (review %d)", p.number, who, p.now().Head, what, r.ID)
}

func (s *stage) dismiss(p *pullRequest) {
	if len(p.reviews) == 0 {
		return
	}
	i := s.random.IntN(len(p.reviews))
	id := p.reviews[i]
	p.reviews = slices.Delete(p.reviews, i, i+1)
	_, err := s.people[Alice].DismissPullReview(s.repo.Owner, s.repo.Name, p.number, id, sdk.DismissPullReviewOptions{Message: "It is old."})
	check(s.t, err)
	p.deed(Deed{What: Dismiss, By: Alice, ID: id})
	s.did("#%d: review %d is dismissed", p.number, id)
}

func (s *stage) retarget(p *pullRequest) {
	base := map[string]string{"main": "staging", "staging": "main"}[p.now().Base]
	_, _, err := s.people[Bob].EditPullRequest(s.repo.Owner, s.repo.Name, p.number, sdk.EditPullRequestOption{Base: base})
	check(s.t, err)
	// Into the other branch it is another change, if main moved between them.
	p.deed(Deed{What: Retarget, By: Bob, Base: base})
	s.did("#%d: goes into %s now", p.number, base)
}

// forge posts a status in the name of signalbox, as everybody may who writes.
func (s *stage) forge(p *pullRequest) {
	now := p.now()
	_, _, err := s.people[Bob].CreateStatus(s.repo.Owner, s.repo.Name, now.Head, sdk.CreateStatusOption{
		Context: approvalContext(now.Base), State: sdk.StatusSuccess, Description: "trust me",
	})
	check(s.t, err)
	s.did("#%d: bob posts a success for %.8s in the name of signalbox", p.number, now.Head)
}

// deleteComment takes away what signalbox has said.
func (s *stage) deleteComment(p *pullRequest) {
	comments, err := s.comments(p)
	check(s.t, err)
	if len(comments) == 0 {
		return
	}
	_, err = s.people[Alice].DeleteIssueComment(s.repo.Owner, s.repo.Name, comments[0].ID)
	check(s.t, err)
	s.did("#%d: the comment of signalbox is deleted", p.number)
}

var kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

// setTier does what Flux would: it says how an object is, or takes it away.
func (s *stage) setTier(to string) {
	if to == s.tier {
		return
	}
	ctx, cancel := s.patient()
	defer cancel()
	tiers := world.Kube.Dynamic().Resource(kustomizations).Namespace(s.repo.Namespace)
	if to == "gone" {
		if err := tiers.Delete(ctx, "tier", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
		s.tier = to
		s.did("the tier is gone")
		return
	}
	check(s.t, world.Kube.Apply(ctx, fmt.Appendf(nil, `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: tier, namespace: %s}
spec: {interval: 1h, prune: false, sourceRef: {kind: GitRepository, name: nobody}}
`, s.repo.Namespace)))
	o := must[*unstructured.Unstructured](s.t)(tiers.Get(ctx, "tier", metav1.GetOptions{}))
	ready := map[string]string{"ready": "True", "failing": "False"}[to]
	reason := map[string]string{"ready": "ReconciliationSucceeded", "failing": "ReconciliationFailed"}[to]
	o.Object["status"] = map[string]any{
		"observedGeneration": o.GetGeneration(), "lastAppliedRevision": "main@sha1:f21e89d9d20c4f2b9a6d1e7e5a5f4c3b2a190817",
		"conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "reason": reason, "message": "it is " + to,
			"observedGeneration": o.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}
	if _, err := tiers.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(errors.Join(errors.New("say how the tier is"), err))
	}
	s.tier = to
	s.did("the tier is %s", to)
}
