package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"signalbox/internal/config"
	"signalbox/internal/doctor"
	"signalbox/internal/gitea"
	"signalbox/internal/yamlfile"
)

// doctorFlags are the flags of bot doctor.
type doctorFlags struct {
	path, output string
	fix, yes     bool
	patience     time.Duration
}

func newDoctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a whole installation, and say what to do",
		Long: `Check a whole installation from its configuration: Gitea and the token, each
repository with its webhook and the protection of its branches, the rules and
the people they name, the clusters and the rights there, and the bus. Each
finding says why it matters and what to do.

Nothing is changed, but Gitea is asked for a test delivery of each webhook where
signalbox runs and can say whether it came. Run it where signalbox runs, with
the same environment.

With --fix it shows what it would set in Gitea so that the gate is a gate: the
protection of branches and the webhook. It asks before it sets anything, and
never allows anybody more than before.

The exit code is 0 if nothing is worse than a warning, 1 if there is a problem,
and 2 if there is none and something could not be checked.`,
		Example: `  bot doctor --config signalbox.yaml
  bot doctor --config signalbox.yaml --fix
  kubectl -n signalbox exec deploy/signalbox -- bot doctor -c /etc/signalbox.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.output != outputText && f.output != outputJSON {
				return fmt.Errorf("--output %q is not known; give text or json", f.output)
			}
			if f.yes && !f.fix {
				return errors.New("--yes answers the question of --fix; give that too")
			}
			c, warnings, problems := config.Load(config.Source{Path: f.path, Env: os.LookupEnv, Purpose: config.Run})
			if err := problems.Err(); err != nil {
				return err
			}
			forge, err := newForge(c, slog.New(slog.DiscardHandler), nil)
			if err != nil {
				return err
			}
			e := &examiner{
				config: c, warnings: warnings, forge: forge, clusters: clusterConfigs(c), agents: agentsOf(c), bus: busConfig(c),
				deliveryTime: deliveryTime,
			}
			return e.command(cmd, f)
		},
	}
	configFlag(cmd, &f.path)
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", outputText, "text, or json for machines")
	flags.BoolVar(&f.fix, "fix", false, "set in Gitea what makes the gate a gate, after showing it and asking")
	flags.BoolVar(&f.yes, "yes", false, "with --fix: do not ask")
	flags.DurationVar(&f.patience, "timeout", 2*time.Minute, "how long the whole may take")
	return cmd
}

// The forms of the report.
const (
	outputText = "text"
	outputJSON = "json"
)

// doctorReport is the report for machines.
type doctorReport struct {
	doctor.Report
	// Set is what --fix has set.
	Set []doneFix `json:"set,omitempty"`
}

// command looks, fixes if that is asked for, and prints.
func (e *examiner) command(cmd *cobra.Command, f doctorFlags) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.patience)
	defer cancel()
	findings, fixes := e.look(ctx)
	var out doctorReport
	if f.fix {
		// What is set is shown beside the report: a machine reads that alone.
		shown := cmd.OutOrStdout()
		if f.output == outputJSON {
			shown = cmd.ErrOrStderr()
		}
		done, err := e.fix(ctx, fixes, fixOptions{out: shown, ask: asker(cmd, f.yes)})
		if err != nil {
			return err
		}
		if out.Set = done; len(done) > 0 {
			findings, _ = e.look(ctx)
		}
	}
	out.Report = doctor.NewReport(time.Now(), findings)
	if err := printReport(cmd.OutOrStdout(), out, f.output); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if out.ExitCode != doctor.ExitFine {
		return exitCode(out.ExitCode)
	}
	return nil
}

func printReport(w io.Writer, r doctorReport, form string) error {
	if form == outputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(r)
	}
	_, err := io.WriteString(w, r.Text(styleFor(w)))
	return err
}

// styleFor fits text to where it goes: colors on a terminal that has them.
func styleFor(w io.Writer) doctor.Style {
	file, ok := w.(*os.File)
	if !ok || !isTerminal(w) {
		return doctor.Style{}
	}
	style := doctor.Style{Color: os.Getenv("NO_COLOR") == ""}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		style.Width = max(60, min(width, 120))
	}
	return style
}

// errNotAsked says that nothing was changed because nobody could be asked.
var errNotAsked = errors.New("nothing was set: --fix asks first, and nobody is at a terminal here; add --yes to set it without asking")

// asker returns how a person is asked: at the terminal, or not at all.
func asker(cmd *cobra.Command, yes bool) func(question string) (bool, error) {
	return func(question string) (bool, error) {
		if yes {
			return true, nil
		}
		in, ok := cmd.InOrStdin().(*os.File)
		if !ok || !term.IsTerminal(int(in.Fd())) {
			return false, errNotAsked
		}
		cmd.PrintErr(question + " [y/N] ")
		answer, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && answer == "" {
			return false, fmt.Errorf("read the answer: %w", err)
		}
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes", nil
	}
}

// configurationFindings are the warnings of the configuration.
func configurationFindings(warnings yamlfile.Problems) []doctor.Finding {
	var out []doctor.Finding
	for _, w := range warnings {
		hint := w.Hint
		w.Hint = ""
		out = append(out, doctor.Finding{
			Check: "configuration", Severity: doctor.Warning, Subject: "configuration", What: w.Error(), Remedy: hint,
		})
	}
	return out
}

// refusedBy reports whether an error is of a right that the account lacks.
func refusedBy(err error) bool {
	return errors.Is(err, gitea.ErrForbidden) || errors.Is(err, gitea.ErrUnauthorized)
}
