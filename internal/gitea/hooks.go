package gitea

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// HookSpec is the webhook that a repository should have.
type HookSpec struct {
	// URL is where Gitea reaches the intake, without query.
	URL string
	// Secret signs the deliveries.
	Secret secret.Value
}

// HookChange is what [Client.EnsureHook] did.
type HookChange string

// What can happen to a webhook.
const (
	HookUnchanged HookChange = "unchanged"
	HookCreated   HookChange = "created"
	HookRepaired  HookChange = "repaired"
	HookReplaced  HookChange = "replaced"
)

// HookResult is the webhook as it is now.
type HookResult struct {
	ID     int64
	Change HookChange
	// Why says what was wrong, or is empty.
	Why string
}

// hookEvents is what is asked for. "pull_request" stands for everything about
// pull requests: commits, labels, reviews, comments.
var hookEvents = []string{"push", "pull_request", "status", "workflow_run", "workflow_job"}

// hookNeeds is what Gitea lists for a hook that was made with hookEvents and
// that the intake cannot do without. Each entry is met by all of one of its
// alternatives; Forgejo lists reviews one by one.
var hookNeeds = [][][]string{
	{{"push"}},
	{{"status"}},
	{{"workflow_run"}},
	{{"workflow_job"}},
	{{"pull_request"}},
	{{"pull_request_sync"}},
	{{"pull_request_label"}},
	{{"pull_request_comment"}},
	{{"pull_request_review"}, {"pull_request_review_approved", "pull_request_review_rejected", "pull_request_review_comment"}},
	{{"pull_request_review_request"}},
}

// hookTag is the query parameter that marks a webhook as made with a secret.
const hookTag = "made-with"

// Target returns the address to register: the URL with a tag in its query.
//
// Gitea never shows the secret of a webhook and ignores a new one in an edit.
// So the tag, derived from secret and URL by HMAC, remembers which secret a
// webhook was made with: after the secret was rotated the tag no longer fits,
// and the webhook is made anew. The intake ignores it. It tells nothing about
// a secret that cannot be guessed.
func (s HookSpec) Target() string {
	mac := hmac.New(sha256.New, []byte(s.Secret.Reveal()))
	// A hash never fails to write.
	_, _ = mac.Write([]byte("signalbox webhook " + s.URL))
	return s.URL + "?" + hookTag + "=" + hex.EncodeToString(mac.Sum(nil))[:16]
}

func (s HookSpec) check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil:
		return errors.New("webhook URL must be like https://signalbox.example.org/webhook/gitea")
	case u.RawQuery != "", u.Fragment != "":
		return errors.New("webhook URL must end with its path, without ? or #")
	case s.Secret.Empty():
		return errors.New("webhook secret is empty")
	}
	return nil
}

// Instructions returns the exact settings for a person who makes the webhook
// by hand, for when the token may not. It does not show the secret.
func (s HookSpec) Instructions() string {
	return fmt.Sprintf(`In the repository (or its organisation): Settings, Webhooks, Add webhook, Gitea:
  Target URL:         %s
  HTTP method:        POST
  POST content type:  application/json
  Secret:             the webhook secret of signalbox
  Trigger on:         Custom events: Push; Commit status; Workflow run; Workflow job; and below "Pull request events"
                      Pull request, Labeled, Comment, Reviewed, Synchronized, Review requested
  Branch filter:      * (or empty)
  Active:             yes
Gitea delivers to public addresses only unless its app.ini allows others: [webhook] ALLOWED_HOST_LIST.
`, s.Target())
}

// EnsureHook makes sure that a repository has the webhook, once and with the
// right settings: it creates, repairs or replaces it. A new webhook is made
// before an old one is removed, so there is never a moment without; deliveries
// of both in between are the same events twice. Webhooks with other addresses
// are left alone.
//
// It needs a token whose account administers the repository. [ErrForbidden]
// means that it does not: then a person has to follow
// [HookSpec.Instructions].
func (c *Client) EnsureHook(ctx context.Context, repo pull.Repo, spec HookSpec) (HookResult, error) {
	result, err := c.ensureHook(ctx, repo, spec)
	return result, c.fail(err, nil, "register the webhook of %s", repo)
}

func (c *Client) ensureHook(ctx context.Context, repo pull.Repo, spec HookSpec) (HookResult, error) {
	if err := spec.check(); err != nil {
		return HookResult{}, err
	}
	ours, err := c.ourHooks(ctx, repo, spec)
	if err != nil {
		return HookResult{}, err
	}
	result, keep, err := c.fixHook(ctx, repo, spec, ours)
	if err != nil {
		return HookResult{}, err
	}
	if result.Change == HookCreated || result.Change == HookReplaced {
		// Another replica may have made one at the same moment. Whoever is second
		// sees both, and all keep the same.
		if ours, err = c.ourHooks(ctx, repo, spec); err != nil {
			return HookResult{}, err
		}
		if len(ours) > 0 {
			keep = ours[0].ID
			result.ID = keep
		}
	}
	for _, h := range ours {
		if h.ID == keep {
			continue
		}
		if err := c.deleteHook(ctx, repo, h.ID); err != nil && !errors.Is(err, ErrNotFound) {
			return HookResult{}, err
		}
	}
	return result, nil
}

// ourHooks lists the webhooks that lead to signalbox, the best one first: made
// with this secret, then the oldest.
func (c *Client) ourHooks(ctx context.Context, repo pull.Repo, spec HookSpec) ([]sdk.Hook, error) {
	hooks, err := c.listHooks(ctx, repo)
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(hooks, func(h sdk.Hook) bool { return !sameAddress(h.Config["url"], spec.URL) })
	slices.SortFunc(ours, func(a, b sdk.Hook) int {
		return cmp.Or(boolRank(a.Config["url"] == spec.Target())-boolRank(b.Config["url"] == spec.Target()), cmp.Compare(a.ID, b.ID))
	})
	return ours, nil
}

func (c *Client) listHooks(ctx context.Context, repo pull.Repo) ([]sdk.Hook, error) {
	return exact(ctx, pages[sdk.Hook]{
		client: c,
		route:  "/repos/:owner/:repo/hooks",
		path:   repoPath(repo) + "/hooks",
	}, func(h sdk.Hook) int64 { return h.ID })
}

// fixHook brings one webhook into the right state and returns its id.
func (c *Client) fixHook(ctx context.Context, repo pull.Repo, spec HookSpec, ours []sdk.Hook) (HookResult, int64, error) {
	if len(ours) == 0 {
		id, err := c.createHook(ctx, repo, spec)
		return HookResult{ID: id, Change: HookCreated}, id, err
	}
	best := ours[0]
	// An edit cannot change the secret or the kind of a webhook.
	if best.Config["url"] != spec.Target() || best.Type != string(sdk.HookTypeGitea) {
		id, err := c.createHook(ctx, repo, spec)
		return HookResult{ID: id, Change: HookReplaced, Why: "it was not made with this secret"}, id, err
	}
	why := hookFaults(best)
	if len(why) == 0 && len(ours) > 1 {
		return HookResult{ID: best.ID, Change: HookRepaired, Why: "there was more than one"}, best.ID, nil
	}
	if len(why) == 0 {
		return HookResult{ID: best.ID, Change: HookUnchanged}, best.ID, nil
	}
	err := c.editHook(ctx, repo, best.ID, spec)
	return HookResult{ID: best.ID, Change: HookRepaired, Why: strings.Join(why, ", ")}, best.ID, err
}

// hookFaults says what is wrong with a webhook.
func hookFaults(h sdk.Hook) []string {
	var why []string
	if !h.Active {
		why = append(why, "it was not active")
	}
	if h.Config["content_type"] != "json" {
		why = append(why, fmt.Sprintf("its content type was %q", h.Config["content_type"]))
	}
	if h.BranchFilter != "" && h.BranchFilter != "*" {
		why = append(why, fmt.Sprintf("it was limited to branches %q", h.BranchFilter))
	}
	has := func(event string) bool { return slices.Contains(h.Events, event) }
	for _, alternatives := range hookNeeds {
		if !slices.ContainsFunc(alternatives, func(all []string) bool {
			return !slices.ContainsFunc(all, func(e string) bool { return !has(e) })
		}) {
			why = append(why, "it lacked "+alternatives[0][0])
		}
	}
	return why
}

func (c *Client) createHook(ctx context.Context, repo pull.Repo, spec HookSpec) (int64, error) {
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/hooks"})
	if err != nil {
		return 0, err
	}
	h, resp, err := api.CreateRepoHook(repo.Owner, repo.Name, sdk.CreateHookOption{
		Type: sdk.HookTypeGitea,
		Config: map[string]string{
			"url":          spec.Target(),
			"content_type": "json",
			"secret":       spec.Secret.Reveal(),
		},
		Events:       hookEvents,
		BranchFilter: "*",
		Active:       true,
	})
	if err != nil {
		return 0, c.fail(err, resp, "create it")
	}
	return h.ID, nil
}

func (c *Client) editHook(ctx context.Context, repo pull.Repo, id int64, spec HookSpec) error {
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/hooks/:id"})
	if err != nil {
		return err
	}
	active := true
	resp, err := api.EditRepoHook(repo.Owner, repo.Name, id, sdk.EditHookOption{
		Config:       map[string]string{"url": spec.Target(), "content_type": "json"},
		Events:       hookEvents,
		BranchFilter: "*",
		Active:       &active,
	})
	return c.fail(err, resp, "repair it")
}

func (c *Client) deleteHook(ctx context.Context, repo pull.Repo, id int64) error {
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/hooks/:id"})
	if err != nil {
		return err
	}
	resp, err := api.DeleteRepoHook(repo.Owner, repo.Name, id)
	if err = c.fail(err, resp, "remove the old one"); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// sameAddress reports whether a registered address is the wanted one, whatever
// its query says.
func sameAddress(registered, want string) bool {
	u, err := url.Parse(registered)
	if err != nil {
		return false
	}
	u.RawQuery, u.Fragment = "", ""
	return strings.EqualFold(strings.TrimRight(u.String(), "/"), strings.TrimRight(want, "/"))
}

// boolRank sorts true before false.
func boolRank(b bool) int {
	if b {
		return 0
	}
	return 1
}
