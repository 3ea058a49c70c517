package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Clock is what a server told of its clock.
type Clock struct {
	// Date is the time that the server told, cut to seconds; zero where it told
	// none. Before and After are the times here between which it told it.
	Date, Before, After time.Time
}

// Skew returns how far the clock of the server is ahead, at least: zero where
// the two may be the same.
func (c Clock) Skew() time.Duration {
	if c.Date.IsZero() {
		return 0
	}
	least, most := c.Date.Sub(c.After), c.Date.Add(time.Second).Sub(c.Before)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	}
	return 0
}

// skewLimit is how far two clocks may differ before it is told.
const skewLimit = 10 * time.Second

// judge tells of a clock that differs.
func (c Clock) judge(a *about, whose string) {
	switch skew := c.Skew().Round(time.Second); {
	case c.Date.IsZero():
		a.add(Finding{Check: "clock", Severity: Info, What: whose + " does not tell its time, so the clocks were not compared"})
	case skew.Abs() > skewLimit:
		way := "ahead of"
		if skew < 0 {
			way = "behind"
		}
		a.add(Finding{
			Check: "clock", Severity: Warning,
			What:   fmt.Sprintf("its clock is %s %s the clock of this machine", skew.Abs(), way),
			Why:    "Overrides end, and settle times pass, by the clocks: they are off by as much.",
			Remedy: "Run a time service such as chrony on both machines.",
		})
	}
}

// Forge is Gitea as it was seen.
type Forge struct {
	URL string
	// Fault is why it could not be read, or empty.
	Fault string
	// Version is empty where the token was refused before it was told.
	Version string
	Clock   Clock
	Account Account
}

// Account is the account of the token.
type Account struct {
	Login string
	// Fault is why it could not be read, or empty; Refused says that Gitea does
	// not accept the token.
	Fault   string
	Refused bool
	Admin   bool
	// Scopes are those of the token. If Complete is false, they are only those
	// that it was seen to have beyond what is needed. Needed are those that it
	// needs.
	Scopes   []string
	Complete bool
	Needed   []string
}

// testedMajor and testedMinor are the oldest Gitea that signalbox is tested
// with.
const (
	testedMajor = 1
	testedMinor = 26
)

// Judge judges Gitea and the account.
func (f Forge) Judge() []Finding {
	a := &about{subject: "gitea"}
	if f.Fault != "" {
		a.add(Finding{
			Check: "gitea", Severity: Unknown, What: "Gitea at " + f.URL + " cannot be read: " + f.Fault,
			Why:    "Nothing about repositories can be checked, and signalbox can post nothing.",
			Remedy: "Is gitea.url right, and can this machine reach it? Try: curl " + f.URL + "api/v1/version",
		})
		return a.findings
	}
	if f.Version != "" {
		f.version(a)
		f.Clock.judge(a, "Gitea")
	}
	f.Account.judge(a)
	return a.findings
}

func (f Forge) version(a *about) {
	// Forgejo has versions of its own and names the Gitea that it is like.
	told := f.Version
	if _, like, forgejo := strings.Cut(told, "+gitea-"); forgejo {
		a.add(Finding{
			Check: "gitea-version", Severity: Warning,
			What: "Forgejo " + told + " is not what signalbox is tested with",
			Why:  fmt.Sprintf("It answers like Gitea %s in most things; signalbox is tested with Gitea %d.%d and later.", like, testedMajor, testedMinor),
		})
		return
	}
	major, minor, ok := release(told)
	switch {
	case !ok:
		a.add(Finding{
			Check: "gitea-version", Severity: Info,
			What: fmt.Sprintf("Gitea calls its version %q, which says nothing of its age", told),
		})
	case major < testedMajor || major == testedMajor && minor < testedMinor:
		a.add(Finding{
			Check: "gitea-version", Severity: Warning,
			What:   "Gitea " + told + " is older than what signalbox is tested with",
			Why:    "Branch protection, merging and webhooks changed between versions.",
			Remedy: fmt.Sprintf("Upgrade Gitea to %d.%d or later.", testedMajor, testedMinor),
		})
	default:
		a.ok("gitea-version", "Gitea %s at %s", told, f.URL)
	}
}

func release(version string) (major, minor int, ok bool) {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	second, _, _ = strings.Cut(second, "-")
	second, _, _ = strings.Cut(second, "+")
	major, errMajor := strconv.Atoi(first)
	minor, errMinor := strconv.Atoi(second)
	return major, minor, errMajor == nil && errMinor == nil
}

func (c Account) judge(a *about) {
	const remedy = "As that account: Settings, Applications, Generate new token, with the scopes "
	switch {
	case c.Refused:
		a.add(Finding{
			Check: "token", Severity: Problem, What: "Gitea does not accept the token: " + c.Fault,
			Why:    "signalbox can neither read nor post.",
			Remedy: remedy + names(c.Needed) + "; give it as SIGNALBOX_GITEA_TOKEN.",
		})
		return
	case c.Fault != "":
		a.add(Finding{
			Check: "token", Severity: Unknown, What: "the account of the token cannot be read: " + c.Fault,
			Remedy: remedy + names(c.Needed) + ".",
		})
		return
	}
	if c.Admin {
		a.add(Finding{
			Check: "account-admin", Severity: Warning, What: fmt.Sprintf("account %s administers the whole Gitea", c.Login),
			Why:    "Whoever gets hold of the token, or of signalbox, owns every repository.",
			Remedy: "Use an ordinary account, and make it an administrator of the gated repositories only.",
		})
	}
	c.scopes(a)
}

func (c Account) scopes(a *about) {
	const replace = "Replace the token by one with exactly the scopes "
	missing, more := c.compare()
	switch {
	case len(missing) > 0:
		a.add(Finding{
			Check: "token-scopes", Severity: Problem, What: "the token lacks " + names(missing),
			Why:    "signalbox cannot do its work: " + names(uses(missing)) + ".",
			Remedy: replace + names(c.Needed) + ".",
		})
	case len(more) > 0:
		a.add(Finding{
			Check: "token-scopes", Severity: Warning, What: "the token can do more than is needed: " + names(more),
			Why:    "Whoever gets hold of it can do that too.",
			Remedy: replace + names(c.Needed) + ".",
		})
	case !c.Complete:
		a.add(Finding{
			Check: "token-scopes", Severity: Info,
			What: fmt.Sprintf("the token of %s is accepted; this Gitea does not tell its scopes", c.Login),
			Why:  "It needs " + names(c.Needed) + "; where one is missing, the checks below say so.",
		})
	default:
		a.ok("token-scopes", "token of %s, with the scopes that it needs and no others", c.Login)
	}
}

// compare returns the needed scopes that the token lacks and those it has
// beyond. To write includes to read.
func (c Account) compare() (missing, more []string) {
	has := func(scope string) bool {
		return slices.Contains(c.Scopes, scope) || slices.Contains(c.Scopes, "all") ||
			slices.Contains(c.Scopes, strings.Replace(scope, "read:", "write:", 1))
	}
	for _, scope := range c.Needed {
		if c.Complete && !has(scope) {
			missing = append(missing, scope)
		}
	}
	for _, scope := range c.Scopes {
		if scope != "public-only" && !slices.Contains(c.Needed, scope) {
			more = append(more, scope)
		}
	}
	if slices.Contains(c.Scopes, "public-only") {
		missing = append(missing, "private repositories (it is limited to public ones)")
	}
	return missing, more
}

// uses says what scopes are for.
func uses(scopes []string) []string {
	known := map[string]string{
		"write:repository":  "to post statuses and merge",
		"write:issue":       "to comment",
		"read:organization": "to read teams",
		"read:user":         "to know people",
	}
	var out []string
	for _, s := range scopes {
		if use := known[s]; use != "" {
			out = append(out, use)
		}
	}
	if out == nil {
		out = []string{"to see the repositories"}
	}
	return out
}
