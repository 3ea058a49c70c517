package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"signalbox/internal/yamlfile"
)

func (l *loader) gitea(f *File, g *Gitea) {
	at := yamlfile.Path{"gitea"}
	urlAt := at.At("url")
	if f.Gitea.URL == "" {
		l.missing(urlAt, "write it like https://gitea.example.org/", EnvGiteaURL)
	} else if u := l.address(urlAt, f.Gitea.URL); u != nil {
		g.URL = u
		if path := strings.TrimRight(u.Path, "/"); strings.HasSuffix(path, "/api/v1") {
			l.problem(urlAt, "is the address of the API", "leave out /api/v1: write the address as a person opens it")
		}
		if u.Scheme == "http" && !loopback(u) {
			l.warn(urlAt, "is not encrypted: whoever sees the traffic can take the token", "use https")
		}
	}
	g.Timeout = l.duration(at.At("timeout"), f.Gitea.Timeout, bounds{15 * time.Second, time.Second, 2 * time.Minute})
	g.Budget = defaultBudget
	if f.Gitea.Budget != nil {
		if g.Budget = *f.Gitea.Budget; g.Budget < 1 {
			l.problem(at.At("budget"), fmt.Sprintf("%d is not 1 or more", g.Budget), fmt.Sprintf("the default is %d", defaultBudget))
		}
	}
	l.webhook(&f.Gitea.Webhook, g)
}

// defaultBudget is several times what some twenty open pull requests need.
const defaultBudget = 5000

func (l *loader) webhook(f *WebhookFile, g *Gitea) {
	at := yamlfile.Path{"gitea", "webhook", "url"}
	g.Webhook.Manage = f.Manage == nil || *f.Manage
	if f.URL == "" {
		if g.Webhook.Manage && l.purpose != Check {
			l.missing(at, "write the address of signalbox as Gitea reaches it", EnvWebhookURL)
		}
		return
	}
	u := l.address(at, f.URL)
	if u == nil {
		return
	}
	g.Webhook.URL = u
	switch {
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/"+ReceiverPath):
		l.problem(at, "is the address of the receiver", "leave out /"+ReceiverPath+": signalbox adds it")
	case loopback(u) && g.URL != nil && !loopback(g.URL):
		l.warn(at, "is an address of Gitea's own machine, and Gitea is not on this one", "write the address at which Gitea reaches signalbox")
	case u.Scheme == "http" && !loopback(u):
		l.warn(at, "is not encrypted: whoever sees the traffic can read what Gitea tells", "use https")
	}
}

// address reads an http or https URL and gives it a slash at its end. It never
// shows the text, which may hold a password.
func (l *loader) address(at yamlfile.Path, text string) *url.URL {
	u, err := url.Parse(text)
	hint := "write it like https://example.org/git/"
	switch {
	case err != nil:
		l.problem(at, "is no URL", hint)
	case u.Scheme != "http" && u.Scheme != "https":
		l.problem(at, "does not start with https:// or http://", hint)
	case u.Hostname() == "":
		l.problem(at, "names no host", hint)
	case u.User != nil:
		l.problem(at, "holds a user or password", "remove what stands before the @; what is secret comes from the environment")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		l.problem(at, "holds a ? or #", "end it with its path")
	default:
		return u.JoinPath("/")
	}
	return nil
}

// loopback reports whether a URL names the machine that opens it.
func loopback(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (l *loader) bus(f *BusFile) Bus {
	at := yamlfile.Path{"bus"}
	var b Bus
	if f.Embedded != nil {
		b.Embedded = l.embedded(at.At("embedded"), f.Embedded)
	}
	if f.NATS != nil {
		b.NATS = l.nats(at.At("nats"), f.NATS)
	}
	switch {
	case f.Embedded != nil && f.NATS != nil:
		hint := "keep one of them"
		if name := l.variable(at.At("embedded", "dir")); name != "" {
			hint = "remove one of them; embedded comes from " + name
		}
		l.problem(at, "has both embedded and nats", hint)
	case f.NATS == nil && l.purpose.agent():
		l.problem(at.At("nats"), "is missing", "give the NATS of signalbox, to which the agent tells what it sees")
	case f.Embedded == nil && f.NATS == nil && l.purpose != Check:
		l.missing(at, "name a folder for the data of the embedded bus, or the URLs of an external one", EnvDataDir)
	}
	return b
}

func (l *loader) embedded(at yamlfile.Path, f *EmbeddedFile) *Embedded {
	if f.Dir == "" {
		l.missing(at.At("dir"), "name a folder that outlives the process", EnvDataDir)
	}
	e := &Embedded{Dir: l.path(at.At("dir"), f.Dir)}
	if f.Sync != nil {
		e.SyncInterval = time.Duration(*f.Sync)
	}
	return e
}

func (l *loader) nats(at yamlfile.Path, f *NATSFile) *NATS {
	if len(f.URLs) == 0 {
		l.problem(at.At("urls"), "is missing", "write at least one, such as nats://nats.example.org:4222")
	}
	for i, text := range f.URLs {
		l.natsURL(at.At("urls", i), text)
	}
	if f.Credentials != "" && f.NKey != "" {
		l.problem(at, "has both credentials and nkey", "give at most one")
	}
	tls := at.At("tls")
	if (f.TLS.Cert == "") != (f.TLS.Key == "") {
		l.problem(tls, "has one of cert and key", "give both or neither")
	}
	n := &NATS{
		URLs:            f.URLs,
		CredentialsFile: l.file(at.At("credentials"), f.Credentials),
		NKeyFile:        l.file(at.At("nkey"), f.NKey),
		CAFile:          l.file(tls.At("ca"), f.TLS.CA),
		CertFile:        l.file(tls.At("cert"), f.TLS.Cert),
		KeyFile:         l.file(tls.At("key"), f.TLS.Key),
	}
	switch {
	case l.purpose.agent(): // It makes no streams.
	case f.Replicas == nil && len(f.URLs) > 1:
		l.warn(at, "names several servers, and new streams would be on one of them only", "give replicas: 3")
	case f.Replicas == nil:
	case !slices.Contains([]int{1, 3, 5}, *f.Replicas):
		l.problem(at.At("replicas"), fmt.Sprintf("%d is not 1, 3 or 5", *f.Replicas), "an even number survives no more than the odd one below it")
	default:
		n.Replicas = *f.Replicas
	}
	return n
}

// natsURL never shows the text, which may hold a password.
func (l *loader) natsURL(at yamlfile.Path, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme):
		l.problem(at, "is no URL of a NATS server", "write it like nats://nats.example.org:4222")
	case u.User != nil:
		l.problem(at, "holds a user or password", "remove what stands before the @; give credentials, nkey or tls")
	}
}
