package slack_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	slackapi "github.com/slack-go/slack"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/slack/slacktest"
)

// manifest reads the manifest that people paste.
func manifest(t *testing.T) slackapi.Manifest {
	t.Helper()
	text, err := os.ReadFile("../../deploy/slack/manifest.yaml")
	must(t, err)
	var m slackapi.Manifest
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&m))
	return m
}

// TestManifest does everything that signalbox does on Slack, and compares the
// scopes that it took with those of the manifest: none is missing, none too many.
func TestManifest(t *testing.T) {
	m := manifest(t)
	w := newWorkspace(t, slacktest.Options{Scopes: m.OAuthConfig.Scopes.Bot, Events: m.Settings.EventSubscriptions.BotEvents}, false)
	got := newInbox()
	a, err := w.run(t.Context(), got, nil)
	must(t, err)

	alice := w.people[conformance.Alice]
	for _, kind := range []slacktest.Kind{slacktest.Public, slacktest.Private} {
		room := chat.Room{Platform: chat.Slack, ID: w.AddChannel(kind, alice, slacktest.UserID)}
		id, err := a.Post(t.Context(), room, "", "test/card", w.Body("a card", ""))
		must(t, err)
		must(t, a.Edit(t.Context(), room, id, "test/edit", w.Body("changed", "")))
		must(t, a.Attach(t.Context(), room, id, "test/card", picture(t)))
		_, err = w.Server.Say(room.ID, "", alice, self+"status")
		must(t, err)
		got.next(t)
	}
	must(t, a.Whisper(t.Context(), chat.Room{Platform: chat.Slack, ID: w.AddChannel(slacktest.Public, alice)}, "", w.User(conformance.Alice), "test/whisper", w.Body("alone", "")))
	_, err = w.Server.Say(w.OpenIM(alice), "", alice, "status")
	must(t, err)
	got.next(t)
	w.Command(w.OpenIM(alice), alice, "status")
	got.next(t)

	scopes := slices.Sorted(slices.Values(m.OAuthConfig.Scopes.Bot))
	if diff := cmp.Diff(scopes, w.UsedScopes()); diff != "" {
		t.Errorf("the scopes (-manifest +used):\n%s", diff)
	}
	document, err := os.ReadFile("../../docs/slack.md")
	must(t, err)
	for _, scope := range scopes {
		if !strings.Contains(string(document), "`"+scope+"`") {
			t.Errorf("docs/slack.md does not say what %s is for", scope)
		}
	}
	if len(m.OAuthConfig.Scopes.User) > 0 {
		t.Error("the manifest wants scopes of people")
	}
	if !m.Settings.SocketModeEnabled || !m.Settings.Interactivity.IsEnabled || len(m.Features.SlashCommands) != 1 || m.Features.SlashCommands[0].Command != "/signalbox" {
		t.Error("the manifest lacks Socket Mode, interactivity or the slash command")
	}
}
