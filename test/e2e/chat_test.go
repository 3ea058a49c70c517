//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"signalbox/internal/chat"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
	"signalbox/internal/slack/slacktest"
	"signalbox/test/realserver/seed"
)

// chatPolicy lets alice approve, and signalbox merge.
func chatPolicy(namespace string) string {
	return `version: 1
preconditions:
  - {name: the tier is Ready, flux: {kustomization: ` + namespace + `/tier}}
approvals:
  - {name: owners, from: {users: [alice]}}
merge: {enabled: true}
`
}

// slackStage is a stage with a workspace, in which alice and bob are known and a
// channel is subscribed.
type slackStage struct {
	*stage
	tier                tier
	slack               *slacktest.Server
	channel             string
	alice, bob, mallory string
}

func newSlackStage(t *testing.T) *slackStage { return newSlackStageWith(t, nil) }

// newSlackStageWith adds to the configuration.
func newSlackStageWith(t *testing.T, more func(*slackStage) string) *slackStage {
	t.Helper()
	name := world.Name(t)
	workspace, err := slacktest.New(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems := workspace.Problems(); len(problems) > 0 {
			t.Errorf("Slack would complain: %v", problems)
		}
		if err := workspace.Close(); err != nil {
			t.Error(err)
		}
	})
	st := &slackStage{stage: plantStage(t, seed.Options{Policy: chatPolicy(name + "-k")}), slack: workspace}
	st.alice, st.bob, st.mallory = workspace.AddUser("alice"), workspace.AddUser("bob"), workspace.AddUser("mallory")
	st.channel = workspace.AddChannel(slacktest.Public, st.alice, st.bob, st.mallory, slacktest.UserID)
	st.tier = newTier(t, name+"-k", "tier")
	st.tier.failing(st.tip(t), `no matches for kind "StorageProfile"`)
	added := ""
	if more != nil {
		added = more(st)
	}
	st.bot = newBot(t, st.repo, settings{extra: added + fmt.Sprintf(`chat:
  slack: {mode: socket, api: %q}
  people:
    - {gitea: %s, slack: %s}
    - {gitea: %s, slack: %s}
  subscriptions:
    - {slack: %s, repository: %s}
`, workspace.APIURL(), st.repo.Alice.Name, st.alice, st.repo.Bob.Name, st.bob, st.channel, st.repo)})
	st.bot.env = append(st.bot.env, "SIGNALBOX_SLACK_BOT_TOKEN="+slacktest.BotToken, "SIGNALBOX_SLACK_APP_TOKEN="+slacktest.AppToken)
	st.bot.start()
	return st
}

// card waits until the channel has one card, which says all of some texts.
func (st *slackStage) card(t *testing.T, texts ...string) slacktest.Message {
	t.Helper()
	var card slacktest.Message
	eventually(t, patience, fmt.Sprintf("the card says %q", texts), func() error {
		all := st.slack.Messages(st.channel, "", st.alice)
		var cards []slacktest.Message
		for _, m := range all {
			if m.BotID != "" {
				cards = append(cards, m)
			}
		}
		if len(cards) != 1 {
			return fmt.Errorf("there are %d cards", len(cards))
		}
		card = cards[0]
		return saysAll(card, texts)
	})
	return card
}

// thread waits until the newest answer in a thread says all of some texts.
func (st *slackStage) thread(t *testing.T, ts string, texts ...string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the thread says %q", texts), func() error {
		all := st.slack.Messages(st.channel, ts, st.alice)
		for _, m := range all {
			if m.BotID != "" && m.TS != ts && saysAll(m, texts) == nil {
				return nil
			}
		}
		return fmt.Errorf("it has %d messages: %+v", len(all), all)
	})
}

// readCard takes the time that somebody takes to read a card. What is said before
// that may be about what it said before; see [handlers.Glance].
func readCard(t *testing.T) {
	t.Helper()
	since := time.Now()
	eventually(t, patience, "the card is read", func() error {
		if took := time.Since(since); took <= handlers.Glance {
			return fmt.Errorf("it is looked at for %s", took)
		}
		return nil
	})
}

func saysAll(m slacktest.Message, texts []string) error {
	for _, text := range texts {
		if !strings.Contains(m.Text+string(m.Blocks), text) {
			return fmt.Errorf("it says %s", m.Text)
		}
	}
	return nil
}

// TestSlackStory drives a pull request from Slack, up to its merge: cards that
// stay true, a button, a command in a thread, and who may not.
func TestSlackStory(t *testing.T) {
	withoutFlux(t)
	st := newSlackStage(t)
	pr := st.open(t, "a", write("apps/a.yaml", "a: 1\n"))
	pr.shows(patience, "pending", "pending")
	card := st.card(t, "Take a into main", "no matches for kind", "Approve")

	st.tier.ready(st.tip(t))
	start := time.Now()
	posted := card.TS
	card = st.card(t, "Waiting for 1 approval rule")
	t.Logf("a flip in the cluster shows on the card after %s", time.Since(start))
	if card.TS != posted {
		t.Error("the card was posted anew for a flip")
	}

	head := pr.pull().Head.Sha
	value := chat.ButtonValue(pull.Ref{RepoID: pr.pull().Base.Repository.ID, Number: pr.number}, head)
	if !json.Valid(card.Blocks) || !strings.Contains(string(card.Blocks), value) {
		t.Fatalf("the card has no button for %s:\n%s", value, card.Blocks)
	}
	st.slack.Click(st.channel, card.TS, st.mallory, "signalbox:approve", value)
	st.thread(t, card.TS, "Nobody knows whose")
	st.slack.Click(st.channel, card.TS, st.alice, "signalbox:approve", value)
	pr.shows(patience, "success", "success", "Approved by alice")
	st.thread(t, card.TS, "done", head[:10], "Take a into main")
	st.thread(t, card.TS, "is clear to merge")
	pr.replies("alice said")

	say := func(user, text string) {
		t.Helper()
		if _, err := st.slack.Say(st.channel, card.TS, user, "<@"+slacktest.UserID+"> "+text); err != nil {
			t.Fatal(err)
		}
	}
	say(st.bob, "hold the disk is full")
	pr.shows(patience, "success", "pending", "Held by bob")
	st.card(t, "Held by bob")
	say(st.bob, "unhold")
	pr.shows(patience, "success", "success")

	// A push while the button of the former head is on its way.
	sha := st.push(t, "a", "", write("apps/a.yaml", "a: 2\n"))
	pr.shows(patience, "success", "pending")
	st.card(t, sha[:10])
	st.slack.Click(st.channel, card.TS, st.alice, "signalbox:approve", value)
	st.thread(t, card.TS, "it was about "+head[:10], sha[:10])

	// Killed in the middle, and back: nothing is posted twice.
	st.bot.kill()
	st.bot.start()
	readCard(t)
	say(st.alice, "approve "+sha[:10])
	pr.shows(patience, "success", "success")
	say(st.bob, "merge")
	eventually(t, patience, "it is merged", func() error {
		if !pr.pull().HasMerged {
			return fmt.Errorf("it is %s", pr.pull().State)
		}
		return nil
	})
	merged := st.card(t, "Merged")
	if strings.Contains(string(merged.Blocks), "signalbox:approve") {
		t.Error("the card of a merged pull request still offers to approve it")
	}
}
