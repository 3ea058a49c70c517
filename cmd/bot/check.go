package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/kube"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

func newCheckCommand() *cobra.Command {
	var path, policyPath string
	var patience time.Duration
	var explain bool
	cmd := &cobra.Command{
		Use:   "check OWNER/REPO#NUMBER",
		Short: "Evaluate one pull request and print the verdict; nothing is posted",
		Long: `Evaluate one pull request once and print the verdict; nothing is posted.

With --explain all evidence is printed as a tree: what was looked at, and when.
With --policy a file is evaluated in the place of the policy on the base branch:
what would be, if it were merged?

Approvals by command, overrides, holds and freezes count where the ledger can be
read: from the signalbox that runs with the same data folder, or from an external
bus. The last line says whether it was.

The exit code is 0 for clear, 1 for waiting or blocked, and 2 if signalbox could
not decide, so that a pipeline can use it.`,
		Example: `  bot check --config signalbox.yaml 'ops/home-gitops#12'
  bot check --config signalbox.yaml --explain --policy .gitea/signalbox.yaml 'ops/home-gitops#12'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := parseTarget(args[0])
			if err != nil {
				return err
			}
			c, err := loadConfig(cmd, path, config.Check)
			if err != nil {
				return err
			}
			instead, err := readPolicy(policyPath)
			if err != nil {
				return err
			}
			k := checker{config: c, clusters: clusterConfigs(c), agents: agentsOf(c), bus: busConfig(c), patience: patience, instead: instead}
			return k.command(cmd.Context(), cmd.OutOrStdout(), target, explain)
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().BoolVar(&explain, "explain", false, "print all evidence as a tree")
	cmd.Flags().StringVar(&policyPath, "policy", "", "evaluate the policy in this `file` instead of the one on the base branch")
	cmd.Flags().DurationVar(&patience, "timeout", 30*time.Second, "how long to wait for the clusters")
	return cmd
}

// readPolicy reads the policy of --policy; nil for no path.
func readPolicy(path string) (*handlers.Document, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	if _, problems := policy.Load(path, data); len(problems) > 0 {
		return nil, fmt.Errorf("the policy is not valid:\n%w", problems.Err())
	}
	return &handlers.Document{Name: path, Text: string(data)}, nil
}

func verdictCode(s policy.GateState) error {
	switch s {
	case policy.Clear:
		return nil
	case policy.Waiting, policy.Blocked:
		return exitCode(exitNotClear)
	default:
		return exitCode(exitUndecided)
	}
}

// target names a pull request as a person does.
type target struct {
	owner, name string
	number      int64
}

func parseTarget(s string) (target, error) {
	repo, number, ok := strings.Cut(s, "#")
	owner, name, okRepo := strings.Cut(repo, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || !okRepo || owner == "" || name == "" || strings.Contains(name, "/") || err != nil || n <= 0 {
		return target{}, fmt.Errorf("%q does not name a pull request; write OWNER/REPO#NUMBER, such as ops/home-gitops#12", s)
	}
	return target{owner, name, n}, nil
}

// checker evaluates a pull request once.
type checker struct {
	config   *config.Config
	clusters []kube.Config
	// agents are the clusters of which signalbox is asked what their agents told.
	agents []string
	bus    bus.Config
	// patience is how long the clusters are waited for.
	patience time.Duration
	// instead stands for the policy of the base branch, if it is set.
	instead *handlers.Document
}

// command prints the verdict, and returns it as an exit code.
func (k checker) command(ctx context.Context, out io.Writer, t target, explain bool) error {
	v, ledger, err := k.once(ctx, t)
	if err != nil {
		return err
	}
	show := render.Terminal
	if explain {
		show = render.Explain
	}
	if _, err := fmt.Fprintf(out, "%s\n%s\n", show(v, showsColor(out)), ledger); err != nil {
		return fmt.Errorf("print the verdict: %w", err)
	}
	return verdictCode(v.State())
}

// once watches the clusters until they are known, or for as long as patience
// lasts, and evaluates. What is not known by then is unknown. It also returns what
// is to be said of the ledger.
func (k checker) once(ctx context.Context, t target) (v *policy.Verdict, ledger string, err error) {
	quiet := slog.New(slog.DiscardHandler)
	forge, err := newForge(k.config, quiet, nil)
	if err != nil {
		return nil, "", err
	}
	repo, _, err := forge.Repo(ctx, t.owner, t.name)
	if err != nil {
		return nil, "", err
	}
	policies, err := handlers.NewPolicies(k.config.Policy)
	if err != nil {
		return nil, "", err
	}
	facts := &memoryFacts{facts: map[fact.Key]fact.Fact{}}
	watchers, stop, err := k.watch(ctx, facts)
	if err != nil {
		return nil, "", err
	}
	defer stop()
	if err := k.hear(ctx, facts); err != nil {
		return nil, "", err
	}
	decisions, ledger := k.decisions(ctx, pull.Ref{RepoID: repo.ID, Number: t.number})
	demand := &handlers.Demand{
		Index: handlers.NewIndex(), Clusters: clusterCollectors(k.clusters, watchers), Patience: k.patience, Now: time.Now,
		Forge: &handlers.ForgeFacts{
			Forge: forge, Facts: facts, RenovateAccounts: k.config.Bots, Every: time.Hour, Now: time.Now,
			Repositories: handlers.NewRepositories(forge, []handlers.RepositorySetting{{Owner: repo.Owner, Name: repo.Name}}),
		},
	}
	e := &handlers.Evaluator{
		Forge: forge, Facts: facts, Policies: policies, Demand: demand, Account: handlers.NewAccount(forge), Finder: handlers.NewFinder(),
		People: handlers.NewPeople(forge, time.Now), Clusters: append(clusterNames(k.clusters), k.agents...), Bots: bots(k.config), Log: quiet, Now: time.Now,
	}
	v, err = e.Look(ctx, repo, t.number, k.instead, decisions)
	return v, ledger, err
}

// watch watches all clusters until stop is called, and returns when they are
// known or patience is at its end.
func (k checker) watch(ctx context.Context, facts *memoryFacts) (watchers []*kube.Watcher, stop func(), err error) {
	running, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	stop = func() {
		cancel()
		ended.Wait()
	}
	for _, cluster := range k.clusters {
		// Nothing is known from before, so no list is given up earlier.
		cluster.Limits.Start = k.patience
		w, err := kube.New(cluster, facts, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			stop()
			return nil, nil, err
		}
		watchers = append(watchers, w)
		// Run returns nil always; see there.
		ended.Go(func() { _ = w.Run(running) })
	}
	known, cancelKnown := context.WithTimeout(ctx, k.patience)
	defer cancelKnown()
	awaitSettled(known, watchers)
	return watchers, stop, nil
}
