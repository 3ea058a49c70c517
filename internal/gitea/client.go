package gitea

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// Config configures a [Client].
type Config struct {
	// URL is the address of Gitea as a person opens it, with the sub-path if it
	// has one: "https://example.org/git/".
	URL string
	// Token belongs to the bot's account. Its scopes: write:repository,
	// write:issue, read:organization, read:user.
	Token secret.Value
	// UserAgent is sent with every request; empty means "signalbox".
	UserAgent string
	// Timeout bounds each attempt, from connecting to the last byte of the
	// answer. Zero means 30 seconds.
	Timeout time.Duration
	// Attempts is how often a request is sent at most. Zero means 4.
	Attempts int
	// Pause is about the time before the second attempt; it grows from there.
	// Zero means 250 milliseconds.
	Pause time.Duration
	// Budget is how many requests an hour are thought to be enough, for the metrics
	// alone: nothing is held back. Zero means that there is no such number.
	Budget int
	// MergeWait is how long [Client.Merge] looks whether Gitea cannot merge a
	// pull request, or not yet. Zero means 10 seconds.
	MergeWait time.Duration
	// Transport carries the requests. Nil means a transport of its own that
	// honours the proxy variables of the environment.
	Transport http.RoundTripper
}

// Client calls the API of one Gitea with one account. Make it with [New].
type Client struct {
	root      string
	token     secret.Value
	userAgent string
	http      *http.Client
	log       *slog.Logger
	mergeWait time.Duration

	ancestry *lru.Cache[ancestryKey, bool]
	asking   singleflight.Group
	finished *lru.Cache[finishedKey, jobList]
	renovate *lru.Cache[renovateKey, renovateMemory]
	borneOut *lru.Cache[statusKey, int64]
}

// New makes a client. It makes no call: whether Gitea is up and the token is
// good shows with the first one. A nil logger discards, a nil registerer keeps
// the metrics private.
func New(config Config, logger *slog.Logger, registerer prometheus.Registerer) (*Client, error) {
	root, err := parseRoot(config.URL)
	if err != nil {
		return nil, err
	}
	if config.Token.Empty() {
		return nil, errors.New("gitea client: the token is empty")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(registerer, config.Budget)
	if err != nil {
		return nil, fmt.Errorf("gitea client: %w", err)
	}
	ancestry, err := lru.New[ancestryKey, bool](ancestrySize)
	if err != nil {
		return nil, fmt.Errorf("gitea client: %w", err)
	}
	finished, err := lru.New[finishedKey, jobList](finishedSize)
	if err != nil {
		return nil, fmt.Errorf("gitea client: %w", err)
	}
	memories, err := lru.New[renovateKey, renovateMemory](renovateSize)
	if err != nil {
		return nil, fmt.Errorf("gitea client: %w", err)
	}
	borneOut, err := lru.New[statusKey, int64](borneOutSize)
	if err != nil {
		return nil, fmt.Errorf("gitea client: %w", err)
	}
	return &Client{
		root:      root,
		token:     config.Token,
		userAgent: orDefault(config.UserAgent, "signalbox"),
		log:       logger,
		mergeWait: orDefault(config.MergeWait, 10*time.Second),
		ancestry:  ancestry,
		finished:  finished,
		renovate:  memories,
		borneOut:  borneOut,
		http: &http.Client{
			CheckRedirect: followRedirect,
			Transport: &transport{
				base:     orTransport(config.Transport),
				metrics:  m,
				timeout:  orDefault(config.Timeout, 30*time.Second),
				attempts: orDefault(config.Attempts, 4),
				pause:    orDefault(config.Pause, 250*time.Millisecond),
			},
		},
	}, nil
}

// parseRoot checks the address of Gitea and returns it without a slash at the
// end.
func parseRoot(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of the parser repeats the address, which may hold a password.
		return "", errors.New("gitea URL cannot be read; give it like https://example.org/git/")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("gitea URL must be like https://example.org/git/")
	case u.User != nil:
		return "", errors.New("gitea URL must not hold a user or password; the token is given apart")
	case u.RawQuery != "", u.Fragment != "":
		return "", errors.New("gitea URL must end with its path, without ? or #")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func orTransport(given http.RoundTripper) http.RoundTripper {
	if given != nil {
		return given
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	// Requests of one evaluation come in bursts; a bound keeps a small Gitea
	// alive, and idle connections save the handshakes.
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = 16, 16
	return t
}

// sdk returns the SDK for one call. The SDK keeps one context for a whole
// client, so each call gets a client of its own, which costs no request.
func (c *Client) sdk(ctx context.Context, info call) (*sdk.Client, error) {
	return sdk.NewClient(c.root,
		sdk.SetContext(withCall(ctx, info)),
		sdk.SetHTTPClient(c.http),
		sdk.SetToken(c.token.Reveal()),
		sdk.SetUserAgent(c.userAgent),
		// Without this the SDK asks for the version, and cannot be made while
		// Gitea is down.
		sdk.SetGiteaVersion(""),
	)
}

// get sends a plain GET for a path below /api/v1, whose segments are escaped
// already. The caller closes the body.
func (c *Client) get(ctx context.Context, info call, path string, query url.Values) (*http.Response, error) {
	address := c.root + "/api/v1" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(withCall(ctx, info), http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "token "+c.token.Reveal())
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", "*/*")
	resp, err := c.http.Do(req)
	if err != nil {
		if transport, ok := errors.AsType[*url.Error](err); ok {
			return nil, transport.Err
		}
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		body := readAll(resp)
		return nil, c.answer(resp, body)
	}
	return resp, nil
}

// getJSON reads an object or a list.
func (c *Client) getJSON(ctx context.Context, info call, path string, query url.Values, into any) (http.Header, error) {
	resp, err := c.get(ctx, info, path, query)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(readAll(resp), into); err != nil {
		return nil, fmt.Errorf("answer of Gitea: %w", err)
	}
	return resp.Header, nil
}

// repoPath returns the path of a repository below /api/v1.
func repoPath(r pull.Repo) string {
	return "/repos/" + url.PathEscape(r.Owner) + "/" + url.PathEscape(r.Name)
}

// escapePath escapes each segment of a path inside a repository.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
