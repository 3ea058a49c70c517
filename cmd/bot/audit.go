package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/decision"
)

// auditFlags are the flags of bot audit as they are written.
type auditFlags struct {
	path, output string
	person       string
	kinds        []string
	since, until string
	last         int
}

func newAuditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit [OWNER/REPO[#NUMBER]]",
		Short: "List who decided what, where, when and why",
		Long: `List the ledger: every approval, override, hold, freeze and merge, and every command
that was refused, with who said it, where, on which commit and why. Nothing is
ever taken out of it.

With an embedded bus a running signalbox is asked on the socket in its data
folder, which only its own user can use; if none runs, the folder is opened. An
external bus is read directly. No token is needed, and nothing is changed.

A repository or a person that was renamed is found by every name that the ledger
knows of it.`,
		Example: `  bot audit --config signalbox.yaml
  bot audit ops/home-gitops#12
  bot audit --kind override --kind hold --since 7d
  bot audit --person alice --since 2026-09-01 --until 2026-09-30 -o csv > september.csv`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := newAuditFilter(f, args, time.Now())
			if err != nil {
				return err
			}
			write, ok := auditFormats[f.output]
			if !ok {
				return fmt.Errorf("--output %q is not known; give table, jsonl or csv", f.output)
			}
			c, err := loadConfig(cmd, f.path, config.Validate)
			if err != nil {
				return err
			}
			ledger, err := readLedger(cmd.Context(), busConfig(c))
			if err != nil {
				return err
			}
			found := filter.apply(ledger)
			if err := write(cmd.OutOrStdout(), found); err != nil {
				return fmt.Errorf("print the ledger: %w", err)
			}
			if len(found) == 0 {
				cmd.PrintErrf("No entries of %d match.\n", len(ledger))
			}
			return nil
		},
	}
	configFlag(cmd, &f.path)
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "table", "table, jsonl or csv")
	flags.StringVar(&f.person, "person", "", "only what this person decided, by login or numeric id")
	kindFlag(cmd, &f.kinds, decision.Kinds())
	flags.StringVar(&f.since, "since", "", "only from this time on: 2026-09-07, 2026-09-07T03:00:00Z, or an age such as 36h or 7d")
	flags.StringVar(&f.until, "until", "", "only before this time; a day counts whole")
	flags.IntVarP(&f.last, "last", "n", 0, "only the last N of those")
	return cmd
}

// auditFilter says which entries are wanted; what is zero does not limit.
type auditFilter struct {
	decision.Filter
	last int
}

func newAuditFilter(f auditFlags, args []string, now time.Time) (auditFilter, error) {
	out := auditFilter{Filter: decision.Filter{Person: f.person}, last: f.last}
	if len(args) > 0 {
		name, _, numbered := strings.Cut(args[0], "#")
		if numbered {
			t, err := parseTarget(args[0])
			if err != nil {
				return out, err
			}
			out.Number = t.number
		} else if owner, repo, ok := strings.Cut(name, "/"); !ok || owner == "" || repo == "" || strings.Contains(repo, "/") {
			return out, fmt.Errorf("%q names no repository or pull request; write OWNER/REPO or OWNER/REPO#NUMBER", args[0])
		}
		out.Repo = name
	}
	var err error
	if out.Kinds, err = kindsOf(f.kinds, decision.Kinds()); err != nil {
		return out, err
	}
	if out.Since, err = decision.ParseSince(f.since, now); err != nil {
		return out, fmt.Errorf("--since %w", err)
	}
	if out.Until, err = decision.ParseUntil(f.until, now); err != nil {
		return out, fmt.Errorf("--until %w", err)
	}
	if f.last < 0 {
		return out, fmt.Errorf("--last %d is negative", f.last)
	}
	return out, nil
}

// apply returns the entries that are wanted, in the order of the ledger.
func (f auditFilter) apply(all decision.Ledger) decision.Ledger {
	out := f.Apply(all)
	if f.last > 0 && len(out) > f.last {
		out = out[len(out)-f.last:]
	}
	return out
}

// auditTime bounds the reading of a bus.
const auditTime = time.Minute

// readLedger reads the ledger of a bus: from the signalbox that runs on it, or
// from the bus itself.
func readLedger(ctx context.Context, c bus.Config) (ledger decision.Ledger, err error) {
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	err = storeQuestion{
		command: "bot audit",
		ask: func(running *adminClient) (err error) {
			ledger, err = running.decisions(ctx)
			return err
		},
		read: func(r *bus.Reader) (err error) {
			ledger, err = r.Decisions(ctx)
			return err
		},
	}.put(ctx, c)
	return ledger, err
}
