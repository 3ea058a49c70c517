package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/config"
)

const chatBase = `gitea: {url: "https://gitea.example.org/", webhook: {manage: false}}
repositories: [{name: ops/home}]
bus: {embedded: {dir: data}}
`

func loadChat(t *testing.T, text string, env map[string]string) (*config.Config, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(chatBase+text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"SIGNALBOX_GITEA_TOKEN": "a token", "SIGNALBOX_WEBHOOK_SECRET": "a secret that is long enough"}
	maps.Copy(all, env)
	c, _, problems := config.Load(config.Source{Path: path, Env: func(name string) (string, bool) { v, ok := all[name]; return v, ok }})
	var out []string
	for _, p := range problems {
		out = append(out, strings.ReplaceAll(p.Error(), path, "c.yaml"))
	}
	return c, out
}

func TestChat(t *testing.T) {
	c, problems := loadChat(t, `chat:
  slack: {}
  matrix: {homeserver: "https://matrix.example.org", rooms: ["#ops:example.org"], encryption: {dir: keys}}
  people:
    - {gitea: alice, slack: U0123456, matrix: ["@alice:example.org"]}
  subscriptions:
    - {slack: C0123456, repository: Ops/home, paths: ["clusters/**"], sensitive: true}
    - {matrix: "!abc:example.org", repository: ops/home}
`, map[string]string{
		"SIGNALBOX_SLACK_BOT_TOKEN": "xoxb-1", "SIGNALBOX_SLACK_APP_TOKEN": "xapp-1",
		"SIGNALBOX_MATRIX_TOKEN": "syt_1", "SIGNALBOX_MATRIX_PICKLE_KEY": "a key",
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if s := c.Chat.Slack; s.BotToken.Reveal() != "xoxb-1" || s.AppToken.Reveal() != "xapp-1" || !s.SigningSecret.Empty() {
		t.Error("the secrets of Slack are others")
	}
	if m := c.Chat.Matrix; m.Homeserver.Host != "matrix.example.org" || m.Token.Reveal() != "syt_1" || m.PickleKey.Reveal() != "a key" || m.EncryptionDir == "" {
		t.Errorf("Matrix is %+v", m)
	}
	people := []config.ChatPerson{
		{User: chat.User{Platform: chat.Slack, ID: "U0123456"}, Login: "alice"},
		{User: chat.User{Platform: chat.Matrix, ID: "@alice:example.org"}, Login: "alice"},
	}
	if diff := cmp.Diff(people, c.Chat.People); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	subscriptions := []config.Subscription{
		{Room: chat.Room{Platform: chat.Slack, ID: "C0123456"}, Repository: "Ops/home", Paths: []string{"clusters/**"}, Sensitive: true},
		{Room: chat.Room{Platform: chat.Matrix, ID: "!abc:example.org"}, Repository: "ops/home"},
	}
	if diff := cmp.Diff(subscriptions, c.Chat.Subscriptions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChatProblems(t *testing.T) {
	_, problems := loadChat(t, `chat:
  slack: {mode: http}
  matrix: {homeserver: matrix.example.org, rooms: [ops], encryption: {}}
  people:
    - {gitea: "@alice", slack: alice}
    - {gitea: bob}
    - {gitea: carol, matrix: ["@carol:example.org", "@carol:example.org"]}
  subscriptions:
    - {repository: ops/home}
    - {slack: "#ops", repository: ops/other, paths: [/x]}
    - {matrix: "#ops:example.org", repository: ops/home}
`, nil)
	want := []string{
		`c.yaml:6: chat.matrix.encryption.dir: is missing (name a folder that outlives the process)`,
		`c.yaml:6: chat.matrix.homeserver: "matrix.example.org" is not the address of a homeserver (write it like https://matrix.example.org)`,
		`c.yaml:6: chat.matrix.rooms[0]: "ops" names no room (write its id or alias, such as #ops:example.org)`,
		`c.yaml:8: chat.people[0].gitea: "@alice" is no login (write the name of the account in Gitea)`,
		`c.yaml:8: chat.people[0].slack[0]: "alice" is no account (write the member id, such as U0123456, and not the name)`,
		`c.yaml:9: chat.people[1]: names no account of a chat (give slack, matrix or both)`,
		`c.yaml:10: chat.people[2].matrix[1]: "@carol:example.org" is given twice (one account is one person)`,
		`c.yaml:12: chat.subscriptions[0]: needs one place (give slack or matrix)`,
		`c.yaml:13: chat.subscriptions[1].paths[0]: "/x" is no glob of paths (write it as in a policy, such as clusters/**)`,
		`c.yaml:13: chat.subscriptions[1].repository: "ops/other" is no repository of this configuration`,
		`c.yaml:13: chat.subscriptions[1].slack: "#ops" is no channel (write its id, such as C0123456, and not its name)`,
		`c.yaml:14: chat.subscriptions[2].matrix: "#ops:example.org" is no room (write its id, such as !abc:example.org)`,
		`environment: SIGNALBOX_SLACK_BOT_TOKEN: is not set (set it, or SIGNALBOX_SLACK_BOT_TOKEN_FILE to the path of a file, to the bot token of the Slack app, which begins with xoxb-)`,
		`environment: SIGNALBOX_SLACK_SIGNING_SECRET: is not set (set it, or SIGNALBOX_SLACK_SIGNING_SECRET_FILE to the path of a file, to the signing secret of the Slack app)`,
		`environment: SIGNALBOX_MATRIX_TOKEN: is not set (set it, or SIGNALBOX_MATRIX_TOKEN_FILE to the path of a file, to the access token of signalbox's account on the homeserver)`,
		`environment: SIGNALBOX_MATRIX_PICKLE_KEY: is not set (set it, or SIGNALBOX_MATRIX_PICKLE_KEY_FILE to the path of a file, to the key that the keys of encrypted rooms are kept under, such as the output of: openssl rand -hex 32)`,
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
