//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/slack/slacktest"
	"signalbox/test/realserver"
)

// TestDigestStory lets a tier fail and recover on the real cluster: Slack hears of both
// at once, and of all that stands then by the clock, with a picture, and so does an
// issue of the real Gitea and whoever asks on the machine.
func TestDigestStory(t *testing.T) {
	withoutFlux(t)
	var told, urgent string
	st := newSlackStageWith(t, func(st *slackStage) string {
		source(t, st.tier.namespace, "nobody", st.tip(t))
		told = st.slack.AddChannel(slacktest.Public, st.alice, slacktest.UserID)
		urgent = st.slack.AddChannel(slacktest.Public, st.alice, slacktest.UserID)
		return fmt.Sprintf(`digests:
  - {name: minutely, schedule: "* * * * *", sections: [flux, gate], to: [{slack: %s}, {issue: %s}]}
alerts:
  - {name: urgent, sections: [flux], after: 0s, settle: 10s, to: [{slack: %s}]}
`, told, st.repo, urgent)
	})
	tier := "Kustomization " + st.tier.String()
	says := func(channel string, texts ...string) slacktest.Message {
		t.Helper()
		var found slacktest.Message
		eventually(t, 2*patience, fmt.Sprintf("%s is told %q", channel, texts), func() error {
			var all []string
			for _, m := range st.slack.Messages(channel, "", st.alice) {
				if saysAll(m, texts) == nil {
					found = m
					return nil
				}
				all = append(all, m.Text)
			}
			return fmt.Errorf("it is told %q", all)
		})
		return found
	}
	says(urgent, tier)
	says(told, "minutely", tier)
	eventually(t, patience, "a picture is shown", func() error {
		if files := st.slack.Uploads(); len(files) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	gitea := client(t, st.repo, st.repo.Alice)
	var issue *sdk.Issue
	eventually(t, patience, "there is an issue", func() error {
		issues, _, err := gitea.ListRepoIssues(st.repo.Owner, st.repo.Name, sdk.ListIssueOption{Type: sdk.IssueTypeIssue})
		if err == nil && len(issues) != 1 {
			err = fmt.Errorf("there are %d", len(issues))
		}
		if err == nil {
			issue = issues[0]
		}
		return err
	})
	if !strings.Contains(plain(issue.Body), st.tier.String()) || issue.Poster.UserName != st.repo.Bot.Name {
		t.Errorf("the issue of %s says\n%s", issue.Poster.UserName, issue.Body)
	}

	st.tier.ready(st.tip(t))
	says(urgent, "Recovered", tier)
	out, err := exec.CommandContext(t.Context(), program, "digest", "--now", "--config", st.bot.config).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "minutely") {
		t.Errorf("bot digest: %v\n%s", err, out)
	}
	t.Logf("bot digest --now:\n%s", out)
	// One issue, in its place.
	eventually(t, 2*patience, "the issue says what recovered", func() error {
		issues, _, err := gitea.ListRepoIssues(st.repo.Owner, st.repo.Name, sdk.ListIssueOption{Type: sdk.IssueTypeIssue, State: sdk.StateAll})
		switch {
		case err != nil:
			return err
		case len(issues) != 1:
			return fmt.Errorf("there are %d", len(issues))
		case issues[0].Body == issue.Body:
			return fmt.Errorf("it says the same")
		}
		return nil
	})
}

// source makes a GitRepository that has a commit of main, in the place of Flux.
func source(t *testing.T, namespace, name, sha string) {
	t.Helper()
	manifest := fmt.Appendf(nil, `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: %s, namespace: %s}
spec: {interval: 1h, url: "https://gitea.example.org/ops/home-gitops.git", suspend: true}
`, name, namespace)
	ctx := t.Context()
	if err := world.Kube.Apply(ctx, manifest); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := world.Kube.Delete(ctx, manifest); err != nil {
			t.Error(err)
		}
	})
	o, err := world.Kube.Get(ctx, realserver.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: namespace, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	o.Object["status"] = map[string]any{
		"observedGeneration": o.GetGeneration(),
		"artifact": map[string]any{
			"revision": "main@sha1:" + sha, "digest": "sha256:" + strings.Repeat("0", 64), "path": "x", "url": "http://source.example.org/x", "lastUpdateTime": now,
		},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact",
			"observedGeneration": o.GetGeneration(), "lastTransitionTime": now,
		}},
	}
	resource := schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	if _, err := world.Kube.Dynamic().Resource(resource).Namespace(namespace).UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
