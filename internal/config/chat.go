package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"signalbox/internal/chat"
	"signalbox/internal/secret"
	"signalbox/internal/yamlfile"
)

// Chat is where people talk to signalbox beside Gitea. The zero value is nowhere.
type Chat struct {
	// Slack and Matrix are nil where they are not used.
	Slack         *Slack
	Matrix        *Matrix
	People        []ChatPerson
	Subscriptions []Subscription
}

// ChatPerson says who in Gitea an account of a chat is.
type ChatPerson struct {
	User  chat.User
	Login string
}

// Slack is the connection to Slack. AppToken is set for Socket Mode, else
// SigningSecret.
type Slack struct {
	BotToken, AppToken, SigningSecret secret.Value
	// APIURL is empty for Slack's own.
	APIURL string
}

// Matrix is the connection to Matrix.
type Matrix struct {
	Homeserver *url.URL
	Token      secret.Value
	Rooms      []string
	// EncryptionDir is empty without encryption.
	EncryptionDir string
	PickleKey     secret.Value
}

// Subscription shows the open pull requests of a repository in a room.
type Subscription struct {
	Room       chat.Room
	Repository string
	Paths      []string
	Sensitive  bool
}

// Variables of the environment for chats; each also exists with [fileSuffix].
const (
	EnvSlackBotToken      = "SIGNALBOX_SLACK_BOT_TOKEN"
	EnvSlackAppToken      = "SIGNALBOX_SLACK_APP_TOKEN"
	EnvSlackSigningSecret = "SIGNALBOX_SLACK_SIGNING_SECRET"
	EnvMatrixToken        = "SIGNALBOX_MATRIX_TOKEN"
	EnvMatrixPickleKey    = "SIGNALBOX_MATRIX_PICKLE_KEY"
)

// Modes of [SlackFile].
const (
	slackSocket = "socket"
	slackHTTP   = "http"
)

func (l *loader) chat(f *File) Chat {
	var c Chat
	at := yamlfile.Path{"chat"}
	if f.Chat.Slack != nil {
		c.Slack = l.slack(at.At("slack"), f.Chat.Slack)
	}
	if f.Chat.Matrix != nil {
		c.Matrix = l.matrix(at.At("matrix"), f.Chat.Matrix)
	}
	c.People = l.people(at.At("people"), f.Chat.People)
	c.Subscriptions = l.subscriptions(at.At("subscriptions"), f)
	return c
}

func (l *loader) slack(at yamlfile.Path, f *SlackFile) *Slack {
	s := &Slack{APIURL: f.API}
	if u, err := url.Parse(f.API); f.API != "" && (err != nil || u.Host == "" || u.User != nil || !strings.HasSuffix(u.Path, "/")) {
		l.problem(at.At("api"), fmt.Sprintf("%q is not the root of an API", f.API), "write it like https://slack-gov.com/api/, or leave it out")
	}
	mode := f.Mode
	if mode == "" {
		mode = slackSocket
	}
	if mode != slackSocket && mode != slackHTTP {
		l.problem(at.At("mode"), fmt.Sprintf("%q is not known", mode), yamlfile.Suggest(mode, []string{slackSocket, slackHTTP}))
		return s
	}
	if l.purpose != Run {
		return s
	}
	s.BotToken = l.secret(EnvSlackBotToken, "the bot token of the Slack app, which begins with xoxb-")
	if mode == slackSocket {
		s.AppToken = l.secret(EnvSlackAppToken, "the app-level token of the Slack app, which begins with xapp-")
	} else {
		s.SigningSecret = l.secret(EnvSlackSigningSecret, "the signing secret of the Slack app")
	}
	return s
}

func (l *loader) matrix(at yamlfile.Path, f *MatrixFile) *Matrix {
	m := &Matrix{Rooms: f.Rooms}
	u, err := url.Parse(f.Homeserver)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		l.problem(at.At("homeserver"), fmt.Sprintf("%q is not the address of a homeserver", f.Homeserver), "write it like https://matrix.example.org")
	}
	m.Homeserver = u
	for i, room := range f.Rooms {
		alias := strings.HasPrefix(room, "#") && strings.Contains(room, ":")
		if !alias && !strings.HasPrefix(room, "!") {
			l.problem(at.At("rooms", i), fmt.Sprintf("%q names no room", room), "write its id or alias, such as #ops:example.org")
		}
	}
	if f.Encryption != nil {
		if f.Encryption.Dir == "" {
			l.problem(at.At("encryption", "dir"), "is missing", "name a folder that outlives the process")
		}
		m.EncryptionDir = l.path(at.At("encryption", "dir"), f.Encryption.Dir)
	}
	if l.purpose != Run {
		return m
	}
	m.Token = l.secret(EnvMatrixToken, "the access token of signalbox's account on the homeserver")
	if f.Encryption != nil {
		m.PickleKey = l.secret(EnvMatrixPickleKey, "the key that the keys of encrypted rooms are kept under, such as the output of: openssl rand -hex 32")
	}
	return m
}

var (
	slackMember  = regexp.MustCompile(`^[UW][A-Z0-9]{5,}$`)
	slackChannel = regexp.MustCompile(`^[CGD][A-Z0-9]{5,}$`)
	matrixUser   = regexp.MustCompile(`^@[^\s:]+:\S+$`)
	matrixRoom   = regexp.MustCompile(`^!\S+$`)
)

func (l *loader) people(at yamlfile.Path, list []ChatPersonFile) []ChatPerson {
	var people []ChatPerson
	for i, p := range list {
		at := at.At(i)
		if !namePattern.MatchString(p.Gitea) {
			l.problem(at.At("gitea"), fmt.Sprintf("%q is no login", p.Gitea), "write the name of the account in Gitea")
		}
		if len(p.Slack)+len(p.Matrix) == 0 {
			l.problem(at, "names no account of a chat", "give slack, matrix or both")
		}
		add := func(at yamlfile.Path, platform chat.Platform, id string, form *regexp.Regexp, hint string) {
			user := chat.User{Platform: platform, ID: id}
			switch {
			case !form.MatchString(id):
				l.problem(at, fmt.Sprintf("%q is no account", id), hint)
			case slices.ContainsFunc(people, func(p ChatPerson) bool { return p.User == user }):
				l.problem(at, fmt.Sprintf("%q is given twice", id), "one account is one person")
			}
			people = append(people, ChatPerson{user, p.Gitea})
		}
		for j, id := range p.Slack {
			add(at.At("slack", j), chat.Slack, id, slackMember, "write the member id, such as U0123456, and not the name")
		}
		for j, id := range p.Matrix {
			add(at.At("matrix", j), chat.Matrix, id, matrixUser, "write the user id, such as @alice:example.org")
		}
	}
	return people
}

func (l *loader) subscriptions(at yamlfile.Path, f *File) []Subscription {
	var out []Subscription
	for i, s := range f.Chat.Subscriptions {
		at := at.At(i)
		o := Subscription{
			Repository: s.Repository, Paths: s.Paths, Sensitive: s.Sensitive,
			Room: l.room(at, f, s.Slack, s.Matrix, "give slack or matrix"),
		}
		l.knownRepository(at.At("repository"), f, s.Repository)
		for j, glob := range s.Paths {
			if glob == "" || strings.HasPrefix(glob, "/") || !doublestar.ValidatePattern(glob) {
				l.problem(at.At("paths", j), fmt.Sprintf("%q is no glob of paths", glob), "write it as in a policy, such as clusters/**")
			}
		}
		out = append(out, o)
	}
	return out
}
