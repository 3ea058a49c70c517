//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// storyPolicy is the seeded policy without a time to settle, so that the story
// can be told in a minute.
func storyPolicy(namespace string) string {
	return `version: 1
targets:
  - {cluster: prod, paths: ["clusters/prod/**", "clusters/base/**", "platform*/**", "apps/**"]}
preconditions:
  - name: platform-config is Ready
    paths: ["platform-config*/**", "clusters/**"]
    flux: {kustomization: ` + namespace + `/platform-config, contains: base}
approvals:
  - name: platform owners
    paths: ["clusters/**", ".gitea/**"]
    from: {teams: [ops], users: [alice]}
    survive: identical-diff
`
}

// refusing is met when Flux refuses a Kustomization with a message.
func refusing(text string) realserver.Condition {
	return func(o *unstructured.Unstructured) (bool, string) {
		c, _ := realserver.StatusCondition(o, "Ready")
		return c.Status == "False" && strings.Contains(c.Message, text), c.Message
	}
}

// TestStory is the story that signalbox was made for: see the README.
func TestStory(t *testing.T) {
	ctx := t.Context()
	lap := laps(t)
	name := world.Name(t)
	repo := plant(t, seed.Options{Owner: name, Namespace: name, Policy: storyPolicy(name)})
	if err := repo.RemoveStorageProfiles(ctx); err != nil {
		t.Fatal(err)
	}
	if err := world.Flux.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	bootstrap(t, repo)
	if _, err := world.Kube.Wait(ctx, repo.Kustomization("platform-config"), refusing("no matches for kind")); err != nil {
		t.Fatal(err)
	}
	lap("Flux refuses platform-config")

	b := newBot(t, repo, settings{})
	b.start()
	lap("signalbox is ready")
	pr, clone, err := repo.OpenMove(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t, repo, pr.Index)
	s, took := p.shows(10*time.Second, "pending", "pending",
		"Kustomization "+name+"/platform-config on prod is not Ready", `no matches for kind "StorageProfile"`, "since 20",
		"Needs 1 approval by alice or carol")
	t.Logf("both statuses and the comment after %s\n%s", took.Round(time.Millisecond), s)
	if s.preconditions.Creator != repo.Bot.Name {
		t.Errorf("the status is by %q", s.preconditions.Creator)
	}
	lap("pull request: pending, pending")

	if err := repo.InstallStorageProfiles(ctx); err != nil {
		t.Fatal(err)
	}
	p.shows(60*time.Second, "success", "pending", "platform-config on prod is Ready at")
	lap("kind installed: success, pending")

	review(t, repo, repo.Carol, pr.Index, sdk.ReviewStateApproved)
	p.shows(10*time.Second, "success", "success", "Approved by carol", "Clear to merge")
	lap("carol approves: success, success")

	before, err := p.look()
	if err != nil {
		t.Fatal(err)
	}
	flips := watchFlips(t, p, 25*time.Second)
	if flips > 0 {
		t.Errorf("the statuses were posted %d times while Flux only passed through Progressing", flips)
	}
	after, err := p.look()
	if err != nil {
		t.Fatal(err)
	}
	if !before.comments[0].Updated.Equal(after.comments[0].Updated) {
		t.Error("the comment was edited while nothing changed")
	}
	lap("nothing flaps in 25 s")

	if _, err := clone.Commit(ctx, realserver.Change{Message: "Say more", Write: map[string]string{"clusters/base/note.yaml": "# more\n"}}); err != nil {
		t.Fatal(err)
	}
	if err := clone.Push(ctx, seed.MoveBranch); err != nil {
		t.Fatal(err)
	}
	p.shows(10*time.Second, "success", "pending", "carol: was given on", "the diff is another")
	lap("bob pushes: the approval is void")

	breakSource(t, repo)
	p.shows(60*time.Second, "pending", "pending", "platform-config on prod")
	lap("the tier is broken: pending, pending")

	if out, code := b.run("check", "--config", b.config, repo.String()+"#1"); code != 1 || !strings.Contains(out, "Waiting for 1 precondition and 1 approval rule") {
		t.Errorf("bot check ended with %d:\n%s", code, out)
	}
	if err := b.stop(); err != nil {
		t.Errorf("signalbox ended with %v", err)
	}
	for _, secret := range []string{webhookSecret, strings.TrimPrefix(b.env[0], "SIGNALBOX_GITEA_TOKEN=")} {
		if strings.Contains(b.log(), secret) {
			t.Error("the log holds a secret")
		}
	}
}

// breakSource makes Flux fail on platform-config: alice pushes a manifest of a
// kind that nobody knows.
func breakSource(t *testing.T, repo *seed.Repository) {
	t.Helper()
	ctx := t.Context()
	clone, err := repo.Clone(ctx, repo.Alice, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clone.Commit(ctx, realserver.Change{Message: "Break it", Write: map[string]string{
		"platform-config/kustomization.yaml": "resources: [no-such-file.yaml]\n",
	}}); err != nil {
		t.Fatal(err)
	}
	if err := clone.Push(ctx, "main"); err != nil {
		t.Fatal(err)
	}
}

func review(t *testing.T, repo *seed.Repository, by realserver.User, number int64, state sdk.ReviewStateType) *sdk.PullReview {
	t.Helper()
	r, _, err := client(t, repo, by).CreatePullReview(repo.Owner, repo.Name, number, sdk.CreatePullReviewOptions{State: state, Body: "I looked at it"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// watchFlips counts how often the newest statuses change within a time.
func watchFlips(t *testing.T, p *page, d time.Duration) int {
	t.Helper()
	last, err := p.look()
	if err != nil {
		t.Fatal(err)
	}
	flips := 0
	for end := time.Now().Add(d); time.Now().Before(end); {
		s, err := p.look()
		if err != nil {
			t.Fatal(err)
		}
		if s.preconditions != last.preconditions || s.approval != last.approval {
			flips++
			t.Logf("changed to\n%s", s)
		}
		last = s
	}
	return flips
}

// laps returns a function that logs how long each step took.
func laps(t *testing.T) func(string) {
	last := time.Now()
	return func(what string) {
		t.Logf("%-40s %6.2fs", what, time.Since(last).Seconds())
		last = time.Now()
	}
}
