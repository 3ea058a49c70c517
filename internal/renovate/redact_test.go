package renovate

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                                            "plain",
		"  two\nlines\t":                                   "two lines",
		"\x1b[31mred\x1b[0m\u202e\ufeff":                   "red",
		"https://user:secret@host/x":                       "https://***@host/x",
		"https://secret@host/x":                            "https://***@host/x",
		"git clone https://x-access-token:s3cr3t@host":     "git clone https://***@host",
		"x-access-token:s3cr3t@host":                       "x-access-token:***",
		"token: ***":                                       "token: ***",
		"RENOVATE_TOKEN=s3cr3t rest":                       "RENOVATE_TOKEN=*** rest",
		`{"password":"s3cr3t","a":1}`:                      `{"password":"***","a":1}`,
		"Authorization: Bearer abcdefghijkl":               "Authorization: *** ***",
		"?access_token=s3cr3t&page=1":                      "?access_token=***&page=1",
		"ghp_abcdefghijklmnop":                             "***",
		"at 0123456789abcdef0123456789abcdef01234567":      "at ***",
		"commit a9be1f7":                                   "commit a9be1f7",
		"You must configure a Gitea personal access token": "You must configure a Gitea personal access token",
		"bad \xff bytes":                                   "bad  bytes",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	long := clean(strings.Repeat("é", maxText))
	if len(long) > maxText || !strings.HasSuffix(long, "é…") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
	// A credential is not cut in two, so that its half would not be known as one.
	cut := clean(strings.Repeat("x ", 590) + "https://user:secretsecretsecret@host")
	if strings.Contains(cut, "secret") {
		t.Error(cut)
	}
}
