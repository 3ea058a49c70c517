package demo

import (
	"context"
	"errors"

	"signalbox/internal/kube/kubetest"
)

// What the controllers of Flux say, word for word.
const (
	noMatches = "StorageProfile/longhorn-vm dry-run failed: no matches for kind \"StorageProfile\" in version \"cdi.kubevirt.io/v1beta1\"\n"
	noSource  = "failed to checkout and determine revision: unable to clone 'https://gitea.example.org/ops/home-gitops': authentication required"
)

func revision(commit string) string { return "main@sha1:" + commit }

func (w *World) tier(name string) *kubetest.Object { return w.Cluster.Kustomization(namespace, name) }

func (w *World) source() *kubetest.Object {
	return w.Cluster.GitRepository(namespace, "flux-system")
}

// fetched is Flux having fetched a commit of main.
func (w *World) fetched(commit string) { w.source().Ready(revision(commit)) }

// ready is Flux having fetched and applied a commit of main in every tier.
func (w *World) ready(commit string) {
	w.fetched(commit)
	for _, name := range tiers {
		w.tier(name).Ready(revision(commit))
	}
}

// stick is Flux failing to apply platform-config at a commit of main, and
// holding back what depends on it.
func (w *World) stick(commit string) {
	w.tier("platform").Ready(revision(commit))
	w.tier(stuck).Attempted(revision(commit)).Failing("ReconciliationFailed", noMatches)
	w.tier("apps").Failing("DependencyNotReady", "dependency '"+namespace+"/"+stuck+"' is not ready")
}

// fail makes platform-config fail at the tip of main, after it was resumed if
// it was suspended.
func (w *World) fail(ctx context.Context) error {
	tip, err := w.Gitea.Tip(ctx, w.repo, "main")
	if err != nil {
		return err
	}
	w.tier(stuck).Resumed()
	w.stick(tip)
	return nil
}

// mend mends everything: the cluster answers, nothing is suspended, the
// source can be fetched, and every tier is Ready at the tip of main after it
// has passed through Progressing.
func (w *World) mend(ctx context.Context) error {
	tip, err := w.Gitea.Tip(ctx, w.repo, "main")
	if err != nil {
		return err
	}
	w.silent = false
	w.Cluster.Break(nil)
	w.tier(stuck).Resumed()
	for _, name := range tiers {
		w.tier(name).Progressing()
	}
	w.ready(tip)
	return nil
}

// suspend suspends platform-config, as a person does.
func (w *World) suspend() { w.tier(stuck).Suspended() }

// breakSource makes Flux unable to fetch the repository. What was applied
// stays applied.
func (w *World) breakSource() { w.source().Failing("GitOperationFailed", noSource) }

// silence makes the cluster unreachable.
func (w *World) silence() error {
	if w.silent {
		return errors.New("the cluster is silent already")
	}
	w.silent = true
	w.Cluster.Break(kubetest.Down)
	return nil
}
