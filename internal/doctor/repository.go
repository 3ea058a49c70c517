package doctor

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"signalbox/internal/pull"
)

// Repository is a repository of the configuration as it was seen.
type Repository struct {
	// Name is "owner/name", as the configuration has it; NowName as Gitea has
	// it.
	Name, NowName string
	// Fault is why it could not be read, or empty; Absent says that there is
	// none, or that the account may not see it.
	Fault  string
	Absent bool
	// Observe says that signalbox posts nothing.
	Observe         bool
	Archived, Empty bool
	// Pulls says that the repository takes pull requests.
	Pulls bool
	// Login is signalbox's account, and Permission what it may do.
	Login      string
	Permission pull.Permission
	Webhook    Webhook
}

// Readable reports whether more can be looked at.
func (r Repository) Readable() bool { return r.Fault == "" && !r.Empty }

// Judge judges the repository itself.
func (r Repository) Judge() []Finding {
	a := &about{subject: r.Name}
	switch {
	case r.Absent:
		a.add(Finding{
			Check: "repository", Severity: Problem, What: "there is no such repository, or " + orWord(r.Login, "signalbox's account") + " may not see it",
			Why:    "signalbox does nothing for it.",
			Remedy: "Check the name in the configuration, and add the account to the repository: Settings, Collaborators.",
		})
		return a.findings
	case r.Fault != "":
		a.add(Finding{Check: "repository", Severity: Unknown, What: "it cannot be read: " + r.Fault})
		return a.findings
	}
	if r.NowName != "" && !strings.EqualFold(r.NowName, r.Name) {
		a.add(Finding{
			Check: "repository-name", Severity: Warning, What: "it is called " + r.NowName + " now",
			Why:    "The old name leads to it only until somebody takes it; then signalbox would work on another repository.",
			Remedy: "Write the new name into the configuration.",
		})
	}
	switch {
	case r.Archived:
		a.add(Finding{
			Check: "repository-archived", Severity: Warning, What: "it is archived", Why: "Nothing can be merged, and nothing posted.",
			Remedy: "Remove it from the configuration.",
		})
	case r.Empty:
		a.add(Finding{Check: "repository-empty", Severity: Info, What: "it is empty: there is nothing to protect yet"})
	case !r.Pulls:
		a.add(Finding{
			Check: "repository-pulls", Severity: Problem, What: "it takes no pull requests", Why: "There is nothing that signalbox could gate.",
			Remedy: "Settings, Repository, Pull Requests, Enable Repository Pull Requests.",
		})
	}
	r.permission(a)
	if len(a.findings) == 0 {
		a.ok("repository", "%s may do what is needed (%s)", r.Login, r.Permission)
	}
	return a.findings
}

func (r Repository) permission(a *about) {
	const collaborators = "Settings, Collaborators: give it "
	switch {
	case r.Observe && r.Permission.AtLeast(pull.PermissionRead):
	case !r.Permission.AtLeast(pull.PermissionWrite):
		a.add(Finding{
			Check: "repository-permission", Severity: Problem, What: fmt.Sprintf("%s may only %s", r.Login, r.Permission),
			Why:    "It cannot post statuses, so no pull request is ever clear.",
			Remedy: collaborators + "Administrator, or Write where you make webhook and protection by hand.",
		})
	case !r.Permission.AtLeast(pull.PermissionAdmin):
		f := Finding{
			Check: "repository-permission", Severity: Warning, What: r.Login + " does not administer the repository",
			Why:    "It cannot see whether the protection of the branch was loosened, nor who may write.",
			Remedy: collaborators + "Administrator.",
		}
		if r.Webhook.Manage {
			f.Why = "It cannot register the webhook, nor see whether the protection of the branch was loosened, nor who may write."
			f.Remedy += " Or set gitea.webhook.manage: false and make the webhook by hand."
		}
		a.add(f)
	}
}

// Delivery is what became of a test delivery of a webhook.
type Delivery string

// What can become of a test delivery.
const (
	// NotTried: signalbox does not run, so nobody would notice.
	NotTried Delivery = ""
	Arrived  Delivery = "arrived"
	Lost     Delivery = "lost"
	// Failed: Gitea could not be asked to deliver, or signalbox whether it came.
	Failed Delivery = "failed"
)

// Hook is a webhook that leads to the receiver of signalbox.
type Hook struct {
	Active bool
	// Sealed says that it is known to be made with the secret of now.
	Sealed bool
	Faults []string
}

// Webhook is the way from Gitea to signalbox for one repository.
type Webhook struct {
	// Receiver is where deliveries go; empty where the configuration does not
	// say.
	Receiver string
	// Manage says that signalbox registers the webhook itself.
	Manage bool
	// Fault is why the webhooks could not be read, or empty; Refused says that
	// the account lacks the right.
	Fault   string
	Refused bool
	// Hooks are those that lead to the receiver.
	Hooks []Hook
	// Running says that signalbox runs where this looks at.
	Running bool
	// Delivery is what became of a test delivery, and Waited how long it was
	// waited for; DeliveryFault is set where it failed.
	Delivery      Delivery
	Waited        time.Duration
	DeliveryFault string
	// Instructions are the settings for a person who makes it by hand.
	Instructions string
}

// Judge judges the webhook of a repository.
func (w Webhook) Judge(repo string) []Finding {
	a := &about{subject: repo}
	switch {
	case w.Receiver == "":
		a.add(Finding{
			Check: "webhook", Severity: Info, What: "the configuration does not say where Gitea delivers, so the webhook was not looked for",
			Remedy: "Set gitea.webhook.url to have it checked.",
		})
	case w.Fault != "":
		f := Finding{Check: "webhook", Severity: Unknown, What: "its webhooks cannot be read: " + w.Fault}
		if w.Refused {
			f.Why = "Only administrators of the repository see them."
			f.Remedy = "Make signalbox's account an administrator of the repository, or compare by hand:\n" + w.Instructions
		}
		a.add(f)
	case len(w.Hooks) == 0:
		w.absent(a)
	default:
		w.present(a)
	}
	return a.findings
}

// deaf is why a webhook matters.
const deaf = "signalbox hears of a push, a review or a /hold only when it next looks for what it missed, minutes later."

func (w Webhook) absent(a *about) {
	f := Finding{
		Check: "webhook", Severity: Problem, What: "no webhook leads to " + w.Receiver, Why: deaf,
		Remedy: "Settings, Webhooks, Add Webhook:\n" + w.Instructions + "A webhook of the organisation does as well, and is not seen from here.",
	}
	if w.Manage {
		f.Fixable = true
		f.Remedy = "Run bot doctor --fix."
		if !w.Running {
			f.Severity, f.What = Warning, "no webhook leads to "+w.Receiver+" yet"
			f.Remedy = "signalbox registers it when it starts (bot run); bot doctor --fix does it now."
		}
	}
	a.add(f)
}

func (w Webhook) present(a *about) {
	best := w.Hooks[0]
	for _, h := range w.Hooks[1:] {
		if h.Active && len(h.Faults) == 0 && (!best.Active || len(best.Faults) > 0 || h.Sealed && !best.Sealed) {
			best = h
		}
	}
	remedy := "Settings, Webhooks:\n" + w.Instructions
	if w.Manage {
		remedy = "Run bot doctor --fix."
	}
	switch {
	case !best.Active:
		a.add(Finding{Check: "webhook", Severity: Problem, What: "the webhook to " + w.Receiver + " is switched off", Why: deaf, Remedy: remedy, Fixable: w.Manage})
		return
	case len(best.Faults) > 0:
		a.add(Finding{
			Check: "webhook", Severity: Problem, What: "the webhook to " + w.Receiver + " is not as it should be: " + names(best.Faults),
			Why: deaf, Remedy: remedy, Fixable: w.Manage,
		})
		return
	case len(w.Hooks) > 1:
		a.add(Finding{
			Check: "webhook", Severity: Warning, What: fmt.Sprintf("%d webhooks lead to %s", len(w.Hooks), w.Receiver),
			Why: "Everything is delivered more than once, and each has a secret of its own.", Remedy: remedy, Fixable: w.Manage,
		})
	case w.Manage && !best.Sealed && w.Delivery != Arrived:
		a.add(Finding{
			Check: "webhook-secret", Severity: Warning, What: "the webhook was not made with the secret of now",
			Why: "signalbox refuses what is signed with another secret. It makes the webhook anew when it next looks.", Remedy: remedy, Fixable: true,
		})
	}
	w.delivers(a)
}

func (w Webhook) delivers(a *about) {
	switch w.Delivery {
	case Arrived:
		a.ok("webhook-delivery", "Gitea delivers to %s (a test took %s)", w.Receiver, w.Waited.Round(10*time.Millisecond))
	case Lost:
		a.add(Finding{
			Check: "webhook-delivery", Severity: Problem,
			What: fmt.Sprintf("Gitea was asked for a test delivery to %s, and none arrived in %s", w.Receiver, w.Waited.Round(time.Second)),
			Why:  deaf,
			Remedy: "Settings, Webhooks, the webhook, Recent Deliveries shows why. Most often:\n" +
				"  \"webhook can only call allowed HTTP servers\": in Gitea's app.ini\n" + allowed(w.Receiver) +
				"\n  401: the secrets differ. Delete the webhook; signalbox makes it anew, or make it by hand with the secret of SIGNALBOX_WEBHOOK_SECRET\n" +
				"  timeout, no such host, certificate: Gitea's machine must reach that address",
		})
	case Failed:
		a.add(Finding{
			Check: "webhook-delivery", Severity: Unknown, What: "whether deliveries arrive could not be tried: " + w.DeliveryFault,
			Remedy: "Settings, Webhooks, the webhook, Test Delivery shows it.",
		})
	default:
		f := Finding{
			Check: "webhook-delivery", Severity: Unknown, What: "whether deliveries arrive is not known: signalbox does not run here",
			Remedy: "Run bot doctor where signalbox runs, while it runs.",
		}
		if Private(w.Receiver) {
			f.Why = "Gitea delivers to public addresses only, unless its app.ini says otherwise, and " + w.Receiver + " does not look public."
			f.Remedy = "In Gitea's app.ini:\n" + allowed(w.Receiver) + "\nThen run bot doctor where signalbox runs, while it runs."
		}
		a.add(f)
	}
}

// allowed is the setting of Gitea that lets it deliver to an address.
func allowed(receiver string) string {
	host := receiver
	if u, err := url.Parse(receiver); err == nil {
		host = u.Hostname()
	}
	return "    [webhook]\n    ALLOWED_HOST_LIST = external, " + host
}

// Private reports whether an address looks as if Gitea did not deliver to it
// without being told to: it is of a private network or of the machine itself,
// or its name is one that only exists within a network.
func Private(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast()
	}
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".svc", ".local", ".localhost", ".internal", ".lan", ".home", ".home.arpa", ".cluster.local"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}
