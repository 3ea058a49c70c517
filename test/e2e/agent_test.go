//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/kube"
	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// startFar starts an API server beside that of the world, and an account in it that may
// do what an agent needs there and nothing else.
func startFar(t *testing.T) (*realserver.Kube, realserver.Access) {
	t.Helper()
	ctx := t.Context()
	far, err := realserver.StartKube(ctx, realserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(far.Stop)
	if err := realserver.InstallFluxCRDs(ctx, far, realserver.Builder{}); err != nil {
		t.Fatal(err)
	}
	if err := far.Apply(ctx, []byte(volumeKind)); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"signalbox", "longhorn-system"} {
		if err := far.CreateNamespace(ctx, namespace); err != nil {
			t.Fatal(err)
		}
	}
	rules := append(kube.RequiredRules(), kube.Rule{APIGroups: []string{"longhorn.io"}, Resources: []string{"volumes"}, Verbs: []string{"list", "watch"}})
	access, err := far.CreateAccount(ctx, "signalbox", "agent", rules)
	if err != nil {
		t.Fatal(err)
	}
	return far, access
}

// natsOf is a bus in the configuration.
func natsOf(e bus.External) string {
	return fmt.Sprintf("{nats: {urls: [%q], nkey: %q}}", e.URLs[0], e.NKeyFile)
}

// startAgent starts bot agent for a cluster, and stops it when the test ends.
func startAgent(t *testing.T, cluster string, access realserver.Access, nats bus.External) *realserver.Program {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "agent.yaml")
	if err := realserver.WriteKubeconfig(kubeconfig, map[string]realserver.Access{cluster: access}); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	text := fmt.Sprintf("clusters:\n  - {name: %s, kubeconfig: %s, context: %s}\nbus: %s\nhttp: {listen: %q}\nlog: {format: json}\n",
		cluster, kubeconfig, cluster, natsOf(nats), addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := realserver.StartProgram(t.Context(), realserver.ProgramOptions{
		Name: "agent", Path: program, Args: []string{"agent", "--cluster", cluster, "--config", config}, Dir: dir,
		Ready: "http://" + addr + "/readyz",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// TestAgent: signalbox watches one cluster and an agent another, which signalbox has no way
// to. What the agent tells decides, for its cluster alone; killed, it makes its cluster
// unknown and nothing else; started again, it goes on.
func TestAgent(t *testing.T) {
	t.Parallel()
	far, access := startFar(t)
	nats := bustest.Example(t, filepath.Join("..", "..", "deploy", "examples", "nats", "agents.conf"))
	st := newStage(t, seed.Options{Policy: `version: 1
targets:
  - {cluster: prod, paths: ["near/**"]}
  - {cluster: dev, paths: ["far/**"]}
preconditions:
  - {name: definitions are there, paths: ["near/**"], objects: {kind: customresourcedefinitions.apiextensions.k8s.io, name: kustomizations.kustomize.toolkit.fluxcd.io}}
  - name: volumes are healthy
    paths: ["far/**"]
    objects: {kind: volumes.longhorn.io, namespace: longhorn-system, all: 'object.status.state != "attached" || object.status.robustness == "healthy"'}
`}, settings{bus: natsOf(nats[0]), cluster: "{name: dev, agent: true}", extra: "timing: {clusterSilence: 12s}\n"})
	if err := far.Apply(t.Context(), []byte(volume("longhorn-system", "a", "degraded"))); err != nil {
		t.Fatal(err)
	}
	near := st.open(t, "near", write("near/a.yaml", "a: 1\n"))
	distant := st.open(t, "far", write("far/a.yaml", "a: 1\n"))
	near.shows(patience, "success", "success")
	distant.shows(patience, "pending", "success", "dev has not been heard from")
	if out, code := st.bot.run("doctor", "--config", st.bot.config); code != 1 || !strings.Contains(out, "the agent of the cluster does not answer") {
		t.Errorf("bot doctor without the agent: exit code %d\n%s", code, out)
	}

	agent := startAgent(t, "dev", access, nats[2])
	distant.shows(patience, "pending", "success", "1 does not pass: longhorn-system/a")
	if err := far.Apply(t.Context(), []byte(volume("longhorn-system", "a", "healthy"))); err != nil {
		t.Fatal(err)
	}
	_, took := distant.shows(patience, "success", "success", "all pass")
	t.Logf("a change in the far cluster was shown after %s", took)
	if out, _ := st.bot.run("doctor", "--config", st.bot.config); !strings.Contains(out, "the agent of the cluster answers") {
		t.Errorf("bot doctor with the agent:\n%s", out)
	}

	agent.Kill()
	_, took = distant.shows(patience, "pending", "success", "Nothing has been heard from cluster dev")
	t.Logf("a killed agent made its cluster unknown after %s", took)
	near.shows(patience, "success", "success")
	if err := far.Apply(t.Context(), []byte(volume("longhorn-system", "b", "faulted"))); err != nil {
		t.Fatal(err)
	}
	if err := agent.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	distant.shows(patience, "pending", "success", "1 does not pass: longhorn-system/b")

	// signalbox itself is killed: what was told is there, and the agent goes on.
	st.bot.restart()
	if err := far.Apply(t.Context(), []byte(volume("longhorn-system", "b", "healthy"))); err != nil {
		t.Fatal(err)
	}
	distant.shows(patience, "success", "success", "all pass")

	// The API server of the far cluster goes away and comes back.
	far.Kill()
	distant.shows(patience, "pending", "success", "dev")
	if err := far.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	distant.shows(2*patience, "success", "success", "all pass")
	near.shows(patience, "success", "success")
}
