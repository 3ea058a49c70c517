package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/config"
	"signalbox/internal/digest"
	"signalbox/internal/handlers"
	"signalbox/internal/render"
)

func newDigestCommand() *cobra.Command {
	var path, output string
	var now bool
	cmd := &cobra.Command{
		Use:   "digest [NAME]",
		Short: "Print how things stand: the last digest, or one of this moment",
		Long: `Print the last digest of a name as it was sent, or with --now how things stand at
this moment and what changed since the last one. Nothing is sent.

NAME is that of a digest of the configuration. It can be left out where there is
only one; with --now and no digest configured, everything is looked at.

The running signalbox is asked: with an embedded bus on the socket in its data
folder, which only its own user can use, and else over the bus.`,
		Example: `  bot digest --now --config signalbox.yaml
  bot digest morning
  bot digest morning -o json | jq '.sections[].findings'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q is not known; give text or json", output)
			}
			c, err := loadConfig(cmd, path, config.Validate)
			if err != nil {
				return err
			}
			rule, err := digestRule(c, args, now)
			if err != nil {
				return err
			}
			if c.Bus.NATS != nil {
				// It is looked at over the bus, with all that a replica needs.
				if c, err = loadConfig(cmd, path, config.Run); err != nil {
					return err
				}
			}
			r, err := askDigest(cmd.Context(), c, rule.Name, now)
			if err != nil {
				return err
			}
			if output == "json" {
				text, err := json.MarshalIndent(r, "", "  ")
				if err != nil {
					return fmt.Errorf("write the digest as JSON: %w", err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), render.DigestText(r, r.Name, ""))
			return err
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().BoolVar(&now, "now", false, "look at this moment, instead of printing the last digest")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// everything is the digest that looks at all there is, where none is configured.
const everything = "now"

// digestRule returns the digest that is meant.
func digestRule(c *config.Config, args []string, now bool) (handlers.DigestRule, error) {
	rules := digestRules(c)
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	switch {
	case len(args) == 0 && len(rules) == 1:
		return rules[0], nil
	case len(args) == 0 && len(rules) == 0 && now:
		return handlers.DigestRule{Name: everything, Zone: "UTC", About: handlers.About{Sections: digest.Sections()}}, nil
	case len(rules) == 0:
		return handlers.DigestRule{}, errors.New("no digest is configured; give --now for how things stand at this moment, or add digests to the configuration")
	case len(args) == 0:
		return handlers.DigestRule{}, fmt.Errorf("several digests are configured; name one of %s", strings.Join(names, ", "))
	}
	i := slices.Index(names, args[0])
	if i < 0 {
		return handlers.DigestRule{}, fmt.Errorf("there is no digest %q; there are %s", args[0], strings.Join(names, ", "))
	}
	return rules[i], nil
}

// errNoDigest is of a digest that was never sent.
var errNoDigest = errors.New("this digest was not made yet; give --now for how things stand at this moment")

// makeDigest returns the last report of a digest, or one of this moment.
func (o *outlook) makeDigest(ctx context.Context, rule handlers.DigestRule, now bool) (digest.Report, error) {
	if now {
		return o.digests.Preview(ctx, &rule)
	}
	if err := o.digests.Reports.Sync(ctx); err != nil {
		return digest.Report{}, err
	}
	r, ok := o.digests.Last(rule.Name, time.Now().Add(time.Hour))
	if !ok {
		return digest.Report{}, errNoDigest
	}
	return r, nil
}

// askDigest asks the signalbox that runs with a configuration.
func askDigest(ctx context.Context, c *config.Config, name string, now bool) (r digest.Report, err error) {
	if c.Bus.Embedded != nil {
		query := url.Values{"name": {name}}
		if now {
			query.Set("now", "true")
		}
		err := newAdminClient(c.Bus.Embedded.Dir).value(ctx, "/v1/digest", query, &r)
		if noSocket(err) {
			err = fmt.Errorf("no signalbox runs on %s, or it runs as another user: %w", c.Bus.Embedded.Dir, err)
		}
		return r, err
	}
	err = withBus(ctx, c, func(a *app) error {
		rule, err := digestRule(c, nameArgs(name), now)
		if err == nil {
			r, err = a.outlook.makeDigest(ctx, rule, now)
		}
		return err
	})
	return r, err
}

func nameArgs(name string) []string {
	if name == everything {
		return nil
	}
	return []string{name}
}

// withBus wires signalbox on an external bus without running it: its views show what
// the replicas see.
func withBus(ctx context.Context, c *config.Config, do func(*app) error) error {
	a, err := newApp(ctx, appConfig{config: c, bus: busConfig(c), clusters: clusterConfigs(c), log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := a.evaluator.Repositories.Refresh(ctx); err != nil {
		return errors.Join(err, a.close())
	}
	return errors.Join(do(a), a.close())
}

// serveDigest answers on the socket.
func (a *app) serveDigest(w http.ResponseWriter, r *http.Request) {
	now := r.FormValue("now") == "true"
	rule, err := digestRule(a.config, nameArgs(r.FormValue("name")), now)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	report, err := a.outlook.makeDigest(r.Context(), rule, now)
	if errors.Is(err, errNoDigest) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	answerJSON(w, report, err)
}
