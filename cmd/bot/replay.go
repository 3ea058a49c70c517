package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/recording"
	"signalbox/internal/render"
	"signalbox/internal/replay"
)

// replayFlags are the flags of bot replay as they are written.
type replayFlags struct {
	policy, repo, pull string
	end, explain       bool
}

func newReplayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Evaluate a recording again and print what would have been decided",
		Long: `Evaluate a recording of bot events --export again, and print what would have been
decided of each pull request, step by step and at the end, and whether that is what
was decided then. Nothing is asked of anybody: no configuration, no network and no
bus is needed, and the answer is always the same.

With --policy a file is evaluated in the place of the policies on the base
branches: what would it have said? What the policy asks about and nobody looked at
then is unknown, and said to be missing.

The exit code is that of bot check, by the worst that would be decided at the end: 0
for clear, 1 for waiting or blocked, 2 for undecided, or if the file cannot be read.
- as FILE is the standard input.`,
		Example: `  bot replay today.jsonl
  bot replay today.jsonl --pull 'ops/home-gitops#12' --policy .gitea/signalbox.yaml
  bot replay today.jsonl --end --explain`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := cmd.InOrStdin()
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return fmt.Errorf("read the recording: %w", err)
				}
				defer func() { _ = file.Close() }()
				in = file
			}
			return f.run(in, args[0], cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "evaluate the policy in this `file` instead of those on the base branches")
	flags.StringVar(&f.repo, "repo", "", "only this repository, OWNER/REPO")
	flags.StringVar(&f.pull, "pull", "", "only this pull request, OWNER/REPO#NUMBER")
	flags.BoolVar(&f.end, "end", false, "print only how things stand at the end")
	flags.BoolVar(&f.explain, "explain", false, "print all evidence at the end as a tree")
	cmd.MarkFlagsMutuallyExclusive("repo", "pull")
	return cmd
}

// run replays a recording, and returns the worst verdict as an exit code.
func (f replayFlags) run(in io.Reader, name string, to io.Writer) error {
	wanted, err := f.wanted()
	if err != nil {
		return err
	}
	instead, err := readPolicy(f.policy)
	if err != nil {
		return err
	}
	r, err := recording.NewReader(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out := bufio.NewWriter(to)
	o := replay.Options{Policy: instead, Wanted: wanted}
	if !f.end {
		o.Step = func(s replay.Step) error { return printStep(out, s) }
	}
	standings, at, err := replay.Run(r, o)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), out.Flush())
	}
	worst := policy.Clear
	different := 0
	if _, err := fmt.Fprintf(out, "At the end, %s:\n", at.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	for i := range standings {
		s := &standings[i]
		worst = policy.Worst(worst, s.Verdict.State())
		if !s.Same() {
			different++
		}
		if err := printStanding(out, s, f.explain, showsColor(to)); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(out, "%s open, %d decided in another way than is recorded.\n", counted(len(standings), "pull request is", "pull requests are"), different); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the replay: %w", err)
	}
	return verdictCode(worst)
}

// wanted says which pull requests are looked at.
func (f replayFlags) wanted() (func(pull.Pull) bool, error) {
	repo, number := f.repo, int64(0)
	if f.pull != "" {
		t, err := parseTarget(f.pull)
		if err != nil {
			return nil, fmt.Errorf("--pull %w", err)
		}
		repo, number = t.owner+"/"+t.name, t.number
	} else if repo == "" {
		return nil, nil
	}
	return func(p pull.Pull) bool {
		return strings.EqualFold(p.Repo.String(), repo) && (number == 0 || p.Number == number)
	}, nil
}

// printStep prints one line of what would have been decided.
func printStep(out io.Writer, s replay.Step) error {
	what := "is not open any more"
	if !s.Left {
		v := &s.Verdict
		what = string(v.State())
		if s.Was != "" && s.Was != v.State() {
			what = string(s.Was) + " → " + what
		}
		what += " (" + s.Reason + ")"
		if s.Compared {
			what += ", " + recordedAs(&s.Standing)
		}
		what += ": " + worse(v).Reason
	}
	_, err := fmt.Fprintf(out, "%s  %s  %s\n", s.At.UTC().Format(time.RFC3339), auditCell(s.Pull.Repo.Numbered(s.Pull.Number)), auditCell(what))
	return err
}

// worse is the gate that decides.
func worse(v *policy.Verdict) policy.Gate {
	if v.Preconditions.State == v.State() {
		return v.Preconditions
	}
	return v.Approval
}

// recordedAs says what was decided then.
func recordedAs(s *replay.Standing) string {
	if s.Same() {
		return "as recorded"
	}
	return "recorded is " + string(s.Recorded.State())
}

// printStanding prints how one pull request stands at the end.
func printStanding(out io.Writer, s *replay.Standing, explain, color bool) error {
	v := &s.Verdict
	lines := []string{
		fmt.Sprintf("%s: %s, %s", s.Pull.Repo.Numbered(s.Pull.Number), v.State(), recordedAs(s)),
		fmt.Sprintf("  preconditions %s: %s", v.Preconditions.State, v.Preconditions.Reason),
		fmt.Sprintf("  approval %s: %s", v.Approval.State, v.Approval.Reason),
	}
	for _, d := range s.Differences() {
		lines = append(lines, "  "+difference(d))
	}
	for _, m := range s.Missing {
		lines = append(lines, "  missing in the recording: "+m)
	}
	for _, l := range lines {
		// The indentation is ours, all else is not.
		text := strings.TrimLeft(l, " ")
		if _, err := fmt.Fprintln(out, l[:len(l)-len(text)]+auditCell(text)); err != nil {
			return err
		}
	}
	if !explain {
		return nil
	}
	_, err := fmt.Fprintln(out, render.Explain(v, color))
	return err
}

// difference says how a rule stands in another way than is recorded.
func difference(d policy.RuleChange) string {
	switch {
	case d.From == "":
		return fmt.Sprintf("rule %q is %s, and was not there: %s", d.Name, d.To, d.Reason)
	case d.To == "":
		return fmt.Sprintf("rule %q is not there, recorded is %s", d.Name, d.From)
	}
	return fmt.Sprintf("rule %q is %s, recorded is %s: %s", d.Name, d.To, d.From, d.Reason)
}
