package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/command"
)

// understood renders what ParseChat gives.
func understood(c command.ChatCommand, p *command.ChatProblem) string {
	parts := []string{string(c.Name)}
	if !c.Target.Zero() {
		parts = append(parts, "about="+c.Target.String())
	}
	if c.Target.URL != "" {
		parts = append(parts, "url="+c.Target.URL)
	}
	if args, ok := strings.CutPrefix(said(command.Found{Commands: []command.Command{c.Command}}), string(c.Name)+" "); ok && c.Name != "" {
		parts = append(parts, args)
	}
	if len(c.Paths) > 0 {
		parts = append(parts, "paths="+strings.Join(c.Paths, ","))
	}
	if c.Sensitive {
		parts = append(parts, "sensitive")
	}
	if p != nil {
		parts = append(parts, "PROBLEM "+p.Text)
		if p.Suggest != "" {
			parts = append(parts, "did you mean "+string(p.Suggest))
		}
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

const (
	noPull = " names no pull request: write it like home-gitops#12, ops/home-gitops#12, or as its address"
	noRepo = " names no repository: write it like home-gitops, ops/home-gitops, or as its address"
	isPull = " names a pull request, and this is about a repository: write it like home-gitops, ops/home-gitops, or as its address"
)

func TestParseChat(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"by name", "approve home-gitops#12", "approve about=home-gitops#12"},
		{"by owner and name, with a SHA", "approve ops/home-gitops#12 5C0FFEE", "approve about=ops/home-gitops#12 sha=5c0ffee"},
		{"by number", "approve #12", "approve about=#12"},
		{"as Gitea writes it too", "approve ops/home-gitops!12", "approve about=ops/home-gitops#12"},
		{"by address", "approve https://gitea.example.org/ops/home-gitops/pulls/12", "approve about=ops/home-gitops#12 url=https://gitea.example.org/ops/home-gitops/pulls/12"},
		{"by the address of one of its pages", "hold HTTPS://Gitea.example.org/git/ops/home-gitops/pulls/12/files?x=1#issuecomment-7 wait", "hold about=ops/home-gitops#12 url=https://gitea.example.org/git/ops/home-gitops/pulls/12 text=wait"},
		{"what the conversation is about", "approve", "approve"},
		{"that, with a SHA", "approve 5c0ffee", "approve sha=5c0ffee"},
		{"taken back", "approve #12 cancel", "approve about=#12 cancel"},
		{"a slash and capital letters", "/Approve Home-GitOps#12", "approve about=Home-GitOps#12"},
		{"much white space", " approve \t home-gitops#12\n5c0ffee ", "approve about=home-gitops#12 sha=5c0ffee"},
		{"copied with what cannot be seen", "approve ops/home-gitops#\u206012", "approve about=ops/home-gitops#12"},
		{"thanks", "approve #12 thanks!", `approve about=#12 PROBLEM after approve comes nothing, "cancel", or the SHA of the head with at least 7 digits`},
		{"without the sign", "approve home-gitops 12", `approve PROBLEM after approve comes nothing, "cancel", or the SHA of the head with at least 7 digits`},
		{"a number that is none", "approve home-gitops#012", `approve PROBLEM "home-gitops#012"` + noPull},
		{"a number that is too large", "approve x#9999999999999999999", `approve PROBLEM "x#9999999999999999999"` + noPull},
		{"with a comma", "approve home-gitops#12,", `approve PROBLEM "home-gitops#12,"` + noPull},
		{"too many parts", "approve a/b/c#12", `approve PROBLEM "a/b/c#12"` + noPull},
		{"an address of a repository", "approve https://gitea.example.org/ops/home-gitops", `approve PROBLEM "https://gitea.example.org/ops/home-gitops"` + noPull},
		{"an address with a password", "approve https://a:b@gitea.example.org/ops/x/pulls/1", `approve PROBLEM the address` + noPull},
		{"an address of a folder above", "approve https://gitea.example.org/../../pulls/1", `approve PROBLEM "https://gitea.example.org/../../pulls/1"` + noRepo},
		{"an override", "approve-override #12 the disk is full, see #13", "approve-override about=#12 text=the disk is full, see #13"},
		{"an override without a reason", "approve-override #12", "approve-override about=#12 PROBLEM an override needs a reason: approve-override REASON"},
		{"a hold with a reason, in a thread", "hold until Monday", "hold text=until Monday"},
		{"a hold for a language", "hold C# is broken", "hold text=C# is broken"},
		{"a merge taken back", "merge home-gitops#12 cancel", "merge about=home-gitops#12 cancel"},
		{"a merge now", "merge now", `merge PROBLEM after merge comes nothing or "cancel"`},
		{"unhold", "unhold #12", "unhold about=#12"},
		{"recheck", "recheck #12", "recheck about=#12"},
		{"preconditions", "preconditions #12", "preconditions about=#12"},
		{"preconditions of a repository", "preconditions home-gitops", "preconditions PROBLEM nothing comes after preconditions"},
		{"a freeze of a repository", "freeze home-gitops 2h etcd is being restored", "freeze about=home-gitops lasts=2h0m0s text=etcd is being restored"},
		{"a freeze by a pull request", "freeze ops/home-gitops#12 until 2026-12-01T08:00Z", "freeze about=ops/home-gitops#12 until=2026-12-01T08:00:00Z"},
		{"a freeze in a thread", "freeze 2h etcd", "freeze lasts=2h0m0s text=etcd"},
		{"a freeze in a thread until", "freeze until 2026-12-01T08:00Z", "freeze until=2026-12-01T08:00:00Z"},
		{"a freeze of a repository with the name of a time", "freeze ops/2h 3h", "freeze about=ops/2h lasts=3h0m0s"},
		{"unfreeze a repository", "unfreeze https://gitea.example.org/ops/home-gitops", "unfreeze about=ops/home-gitops url=https://gitea.example.org/ops/home-gitops"},
		{"unfreeze", "unfreeze", "unfreeze"},
		{"unfreeze a path", "unfreeze a/b/c", `unfreeze PROBLEM "a/b/c"` + noRepo},
		{"status", "status #12", "status about=#12"},
		{"who", "WHO home-gitops#12", "who about=home-gitops#12"},
		{"list all", "list", "list"},
		{"list one", "list ops/home-gitops", "list about=ops/home-gitops"},
		{"list a pull request", "list #12", `list PROBLEM "#12"` + isPull},
		{"health", "health", "health"},
		{"health of something", "health prod", "health PROBLEM nothing comes after health"},
		{"subscribe", "subscribe ops/home-gitops", "subscribe about=ops/home-gitops"},
		{"subscribe to paths", "subscribe home-gitops clusters/** {apps,infra}/** Sensitive", "subscribe about=home-gitops paths=clusters/**,{apps,infra}/** sensitive"},
		{"subscribe to nothing", "subscribe", "subscribe PROBLEM it does not name a repository: write it like home-gitops, ops/home-gitops, or as its address"},
		{"subscribe to a pull request", "subscribe x#1", `subscribe PROBLEM "x#1"` + isPull},
		{"subscribe to the folder above", "subscribe ..", `subscribe PROBLEM ".."` + noRepo},
		{"subscribe to a bad glob", "subscribe x a{b", `subscribe about=x PROBLEM "a{b" is not a valid glob: check its brackets and braces`},
		{"subscribe from the root", "subscribe x /clusters", `subscribe about=x PROBLEM "/clusters" begins with a slash or dot: paths begin at the top of the repository, as in clusters/**`},
		{"subscribe to too much", "subscribe x" + strings.Repeat(" a", 21), "subscribe about=x paths=" + strings.TrimSuffix(strings.Repeat("a,", 20), ",") + " PROBLEM it names more than 20 paths"},
		{"unsubscribe", "unsubscribe home-gitops", "unsubscribe about=home-gitops"},
		{"unsubscribe from a part", "unsubscribe home-gitops apps/**", "unsubscribe about=home-gitops PROBLEM nothing comes after unsubscribe"},
		{"link", "link", "link"},
		{"link taken back", "link cancel", "link cancel"},
		{"a code where it does not belong", "link ABCDEFGH", `link PROBLEM after link comes nothing or "cancel"`},
		{"help", "help", "help"},
		{"nothing", " ", "help"},
		{"a slash alone", "/", "help"},
		{"a slash and more", "/ approve", `PROBLEM "" is no command`},
		{"near", "aprove #12", `PROBLEM "aprove" is no command did you mean approve`},
		{"near a short one", "lst", `PROBLEM "lst" is no command did you mean list`},
		{"far", "deploy now", `PROBLEM "deploy" is no command`},
		{"far and long", strings.Repeat("x", 5000), `PROBLEM "` + strings.Repeat("x", 80) + `…" is no command`},
		{"not valid text", "hold #1 \xff", "PROBLEM this is not valid text"},
		{"a long reason", "hold #1 " + strings.Repeat("x", 1001), "hold about=#1 PROBLEM the reason is longer than 1000 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, understood(command.ParseChat(tt.in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestChatLine keeps the line of a command as it is on the pull request: there
// it is read again.
func TestChatLine(t *testing.T) {
	for in, want := range map[string]string{
		"approve home-gitops#12 5C0FFEE":       "/approve 5C0FFEE",
		"Hold":                                 "/hold",
		"/freeze home-gitops 2h etcd  is down": "/freeze 2h etcd is down",
		"merge #12 cancel":                     "/merge cancel",
	} {
		c, problem := command.ParseChat(in)
		if problem != nil || c.Line != want {
			t.Errorf("%q is the line %q (%v), want %q", in, c.Line, problem, want)
		}
		if diff := cmp.Diff([]command.Command{c.Command}, command.Find(c.Line).Commands); diff != "" {
			t.Errorf("%q is another command on the pull request (-chat +pull):\n%s", in, diff)
		}
	}
}

func TestChatUsages(t *testing.T) {
	_, problem := command.ParseChat("freeze home-gitops")
	want := []string{"freeze REPO DURATION [REASON]", "freeze REPO until TIME [REASON]"}
	if diff := cmp.Diff(want, problem.Usages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLinkCode(t *testing.T) {
	const problem = "link PROBLEM after /link comes the code that signalbox gave you in chat, or \"cancel\""
	for in, want := range map[string]string{
		"/link abcdefgh23456727": "link text=ABCDEFGH23456727", "/link": problem, "/link me please": problem, "/link abc": problem, "/link cancel": "link cancel",
	} {
		if diff := cmp.Diff(want, said(command.Find(in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
	if f := command.Find("/status\n/subscribe ops/x\n/health"); len(f.Commands) > 0 {
		t.Errorf("commands of chat were found on a pull request: %v", f.Commands)
	}
}

func FuzzParseChat(f *testing.F) {
	for _, s := range []string{
		"approve home-gitops#12", "approve https://gitea.example.org/ops/home-gitops/pulls/12 5c0ffee", "freeze x 2h y", "subscribe ops/x a/** sensitive", "", "/", "aprove",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, problem := command.ParseChat(in)
		if problem != nil {
			if problem.Text == "" || strings.Contains(problem.Text, "\n") {
				t.Errorf("the problem is %q", problem.Text)
			}
			return
		}
		if c.Name == "" || c.Problem != "" || strings.ContainsAny(c.Line, "\n\r") || c.Target.Number < 0 || c.Target.Owner != "" && c.Target.Repo == "" {
			t.Errorf("%q is understood as %+v", in, c)
		}
		if c.Target.URL != "" || c.Target.Zero() {
			return
		}
		again, problem := command.ParseChat(string(c.Name) + " " + c.Target.String() + strings.TrimPrefix(c.Line, "/"+string(c.Name)))
		if problem != nil || again.Target != c.Target || again.Command != c.Command {
			t.Errorf("%q is understood as %+v, and written again as %+v (%v)", in, c, again, problem)
		}
	})
}
