package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func containsField(problems []string, field string) bool {
	return slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, field) })
}

func TestWeb(t *testing.T) {
	token := strings.Repeat("t", 32)
	env := map[string]string{"SIGNALBOX_OAUTH_SECRET": "an oauth secret", "SIGNALBOX_API_TOKEN": token}
	c, problems := loadChat(t, `web: {url: "https://signalbox.example.org/box", signIn: {clientID: abc}, operators: [alice]}
`, env)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := c.Web
	if w.URL.String() != "https://signalbox.example.org/box/" || w.ClientID != "abc" || w.Secret.Reveal() != "an oauth secret" || w.APIToken.Reveal() != token ||
		w.Public || !slices.Equal(w.Operators, []string{"alice"}) {
		t.Errorf("got %+v", w)
	}
	if c, problems := loadChat(t, "", nil); len(problems) > 0 || c.Web.URL != nil || !c.Web.APIToken.Empty() {
		t.Errorf("pages that nobody asked for: %v, %+v", problems, c)
	}
}

func TestWebProblems(t *testing.T) {
	tests := map[string]struct {
		text, want string
		env        map[string]string
	}{
		"no address":       {`web: {public: true}`, "web.url: is missing", nil},
		"nobody gets in":   {`web: {url: "https://signalbox.example.org/"}`, "web: lets nobody in (give signIn, or public: true", nil},
		"no client":        {`web: {url: "https://signalbox.example.org/", signIn: {}}`, "web.signIn.clientID: is missing", map[string]string{"SIGNALBOX_OAUTH_SECRET": "x"}},
		"no secret":        {`web: {url: "https://signalbox.example.org/", signIn: {clientID: abc}}`, "SIGNALBOX_OAUTH_SECRET: is not set", nil},
		"a password in it": {`web: {url: "https://alice:pw@signalbox.example.org/", public: true}`, "web.url: holds a user or password", nil},
		"no login":         {`web: {url: "https://signalbox.example.org/", public: true, operators: ["@alice"]}`, `web.operators[0]: "@alice" is no login`, nil},
		"a short token":    {``, "SIGNALBOX_API_TOKEN: is shorter than 32 bytes", map[string]string{"SIGNALBOX_API_TOKEN": "short"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{}
			maps.Copy(env, tt.env)
			_, problems := loadChat(t, tt.text+"\n", env)
			if len(problems) != 1 || !strings.Contains(problems[0], tt.want) || strings.Contains(problems[0], "pw@") {
				t.Errorf("got %q, want one with %q", problems, tt.want)
			}
		})
	}
}
