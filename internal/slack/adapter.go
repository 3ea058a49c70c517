package slack

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	slackapi "github.com/slack-go/slack"

	"signalbox/internal/chat"
	"signalbox/internal/secret"
)

// Config configures an [Adapter].
type Config struct {
	// BotToken ("xoxb-...") is what signalbox speaks with. It is needed.
	BotToken secret.Value
	// AppToken ("xapp-...", with the scope connections:write) is for Socket Mode.
	AppToken secret.Value
	// SigningSecret is for HTTP. Without it, [Adapter.Handler] refuses everything.
	SigningSecret secret.Value
	// APIURL is the root of Slack's Web API. Empty means "https://slack.com/api/".
	APIURL string
	// Timeout bounds each call of the Web API. Zero means 10 s.
	Timeout time.Duration
	// Recheck is the time between two looks whether Slack takes the tokens. Zero
	// means 3 min.
	Recheck time.Duration
	// Clock gives the time of what carries none. Nil means [time.Now].
	Clock func() time.Time
}

const (
	defaultTimeout = 10 * time.Second
	defaultRecheck = 3 * time.Minute
	// remembered is how many causes and conversations are kept in memory.
	remembered = 4096
	// stripes is how many causes can be posted at the same time.
	stripes = 64
)

// Adapter is signalbox on Slack. Make it with [New]. It may be used by many
// goroutines.
type Adapter struct {
	config   Config
	api      *slackapi.Client
	receiver chat.Receiver
	log      *slog.Logger
	metrics  *metrics
	health   *health

	posted *lru.Cache[key, string]
	// direct are the conversations with people, by the id of the person.
	direct *lru.Cache[string, string]
	seed   maphash.Seed
	turn   [stripes]chan struct{}

	mu       sync.Mutex
	identity *identity
	known    chan struct{}
	// unread are the kinds of conversation whose history may not be read, which was
	// logged already.
	unread map[string]bool
}

var _ chat.Poster = (*Adapter)(nil)

// identity is who signalbox is on Slack.
type identity struct {
	user, bot, team, enterprise string
	// url is the root of the workspace, such as "https://example.slack.com/".
	url string
}

// New makes an adapter, without asking Slack anything. A nil logger discards, a nil
// registerer keeps the metrics private.
func New(config Config, receiver chat.Receiver, logger *slog.Logger, registerer prometheus.Registerer) (*Adapter, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if receiver == nil {
		return nil, errors.New("slack: a receiver is missing")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(registerer)
	if err != nil {
		return nil, fmt.Errorf("slack: %w", err)
	}
	a := &Adapter{
		config: config, receiver: receiver, log: logger, metrics: m, health: newHealth(logger, m.up, !config.AppToken.Empty()),
		seed: maphash.MakeSeed(), known: make(chan struct{}), unread: map[string]bool{},
	}
	for i := range a.turn {
		a.turn[i] = make(chan struct{}, 1)
	}
	// They fail for a size below one.
	a.posted, _ = lru.New[key, string](remembered)
	a.direct, _ = lru.New[string, string](remembered)
	a.api = slackapi.New(config.BotToken.Reveal(),
		slackapi.OptionAppLevelToken(config.AppToken.Reveal()),
		slackapi.OptionAPIURL(config.APIURL),
		slackapi.OptionHTTPClient(newHTTPClient(config.Timeout)),
		slackapi.OptionLog(log.New(io.Discard, "", 0)))
	return a, nil
}

// check says what is missing, and fills in the defaults.
func (c *Config) check() error {
	var problems []error
	switch {
	case c.BotToken.Empty():
		problems = append(problems, errors.New("slack: the bot token is missing: it is shown under \"OAuth & Permissions\" after the app is installed"))
	case !strings.HasPrefix(c.BotToken.Reveal(), "xoxb-"):
		problems = append(problems, errors.New("slack: the bot token does not begin with \"xoxb-\": take the one under \"OAuth & Permissions\""))
	}
	switch {
	case c.AppToken.Empty() && c.SigningSecret.Empty():
		problems = append(problems, errors.New("slack: give an app-level token for Socket Mode, or a signing secret for HTTP; both are under \"Basic Information\""))
	case !c.AppToken.Empty() && !strings.HasPrefix(c.AppToken.Reveal(), "xapp-"):
		problems = append(problems, errors.New("slack: the app-level token does not begin with \"xapp-\": make one under \"Basic Information\" with the scope connections:write"))
	}
	if c.APIURL == "" {
		c.APIURL = slackapi.APIURL
	}
	if u, err := url.Parse(c.APIURL); err != nil || u.Host == "" || u.User != nil || !strings.HasSuffix(c.APIURL, "/") {
		problems = append(problems, errors.New("slack: the URL of the API is not one such as \"https://slack.com/api/\", with a slash at its end"))
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Recheck <= 0 {
		c.Recheck = defaultRecheck
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return errors.Join(problems...)
}

// me returns who signalbox is, and asks Slack if that is not known yet.
func (a *Adapter) me(ctx context.Context) (identity, error) {
	if id, ok := a.whoAmI(); ok {
		return id, nil
	}
	return a.identify(ctx)
}

// whoAmI returns who signalbox is, if that is known.
func (a *Adapter) whoAmI() (identity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity == nil {
		return identity{}, false
	}
	return *a.identity, true
}

// identify asks Slack who signalbox is, which also tells whether the token is good.
func (a *Adapter) identify(ctx context.Context) (identity, error) {
	var resp *slackapi.AuthTestResponse
	err := a.call(ctx, "auth.test", func(ctx context.Context) (err error) {
		resp, err = a.api.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return identity{}, err
	}
	id := identity{user: resp.UserID, bot: resp.BotID, team: resp.TeamID, enterprise: resp.EnterpriseID, url: resp.URL}
	if id.user == "" || id.team == "" {
		return identity{}, errors.New("auth.test: the answer names no user or no workspace")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity == nil {
		close(a.known)
	}
	a.identity = &id
	return id, nil
}
