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

	"signalbox/internal/config"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/kube"
	"signalbox/internal/policy"
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
			v, err := checkOnce(cmd.Context(), c, target, instead, patience)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			show := render.Terminal
			if explain {
				show = render.Explain
			}
			if _, err := io.WriteString(out, show(v, showsColor(out))); err != nil {
				return fmt.Errorf("print the verdict: %w", err)
			}
			return verdictCode(v.State())
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

// checkOnce watches the clusters until they are known, or for as long as
// patience lasts, and evaluates. What is not known by then is unknown.
func checkOnce(ctx context.Context, c *config.Config, t target, instead *handlers.Document, patience time.Duration) (*policy.Verdict, error) {
	quiet := slog.New(slog.DiscardHandler)
	forge, err := newForge(c, quiet, nil)
	if err != nil {
		return nil, err
	}
	repo, _, err := forge.Repo(ctx, t.owner, t.name)
	if err != nil {
		return nil, err
	}
	policies, err := handlers.NewPolicies(c.Policy)
	if err != nil {
		return nil, err
	}
	facts := &memoryFacts{facts: map[fact.Key]fact.Fact{}}
	clusters := clusterConfigs(c)
	watchers, stop, err := watch(ctx, clusters, facts, patience)
	if err != nil {
		return nil, err
	}
	defer stop()
	demand := &handlers.Demand{
		Index: handlers.NewIndex(), Clusters: clusterCollectors(clusters, watchers), Patience: patience, Now: time.Now,
		Forge: &handlers.ForgeFacts{
			Forge: forge, Facts: facts, RenovateAccounts: c.Bots, Every: time.Hour, Now: time.Now,
			Repositories: handlers.NewRepositories(forge, []handlers.RepositorySetting{{Owner: repo.Owner, Name: repo.Name}}),
		},
	}
	e := &handlers.Evaluator{
		Forge: forge, Facts: facts, Policies: policies, Demand: demand, Account: handlers.NewAccount(forge),
		Clusters: clusterNames(clusters), Bots: bots(c), Log: quiet, Now: time.Now,
	}
	return e.Look(ctx, repo, t.number, instead)
}

// watch watches all clusters until stop is called, and returns when they are
// known or patience is at its end.
func watch(ctx context.Context, clusters []kube.Config, facts *memoryFacts, patience time.Duration) (watchers []*kube.Watcher, stop func(), err error) {
	running, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	stop = func() {
		cancel()
		ended.Wait()
	}
	for _, cluster := range clusters {
		w, err := kube.New(cluster, facts, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			stop()
			return nil, nil, err
		}
		watchers = append(watchers, w)
		// Run returns nil always; see there.
		ended.Go(func() { _ = w.Run(running) })
	}
	known, cancelKnown := context.WithTimeout(ctx, patience)
	defer cancelKnown()
	awaitSettled(known, watchers)
	return watchers, stop, nil
}

// memoryFacts holds facts for as long as a command runs. It implements
// [kube.Sink] and [handlers.FactReader].
type memoryFacts struct {
	mu    sync.Mutex
	facts map[fact.Key]fact.Fact
}

// Lookup implements [kube.Reader].
func (m *memoryFacts) Lookup(k fact.Key) (fact.Fact, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.facts[k]
	return f, ok
}

// Select implements [kube.Reader].
func (m *memoryFacts) Select(source, scope, kind string) []fact.Fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []fact.Fact
	for k, f := range m.facts {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			out = append(out, f)
		}
	}
	return out
}

// Put implements [kube.Writer]. There is one writer, so the last value wins.
func (m *memoryFacts) Put(_ context.Context, f fact.Fact) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := !m.facts[f.Key].Same(f)
	m.facts[f.Key] = f
	return changed, nil
}

// PutAfterList implements [kube.Writer].
func (m *memoryFacts) PutAfterList(ctx context.Context, f fact.Fact) (bool, error) {
	return m.Put(ctx, f)
}

// Delete implements [handlers.FactStore].
func (m *memoryFacts) Delete(_ context.Context, k fact.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.facts, k)
	return nil
}

// Beat implements [kube.Writer]: a cluster that was heard from is not silent.
func (m *memoryFacts) Beat(ctx context.Context, cluster string, at time.Time) error {
	_, err := m.Put(ctx, fact.Fact{Key: fact.HeartbeatKey(cluster), Since: at, SeenAt: at, Heartbeat: &fact.Heartbeat{}})
	return err
}

// Revision implements [handlers.FactReader]; nothing is written while a verdict
// is made.
func (*memoryFacts) Revision(fact.Key) uint64 { return 0 }

// Sync implements [handlers.FactReader].
func (*memoryFacts) Sync(context.Context) error { return nil }
