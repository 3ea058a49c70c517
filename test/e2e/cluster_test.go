//go:build e2e

package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/kube"
	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// tierPolicy has a precondition for two folders: the same tier of two
// namespaces.
func tierPolicy(first, second string) string {
	return `version: 1
targets:
  - {cluster: prod, paths: ["**"]}
preconditions:
  - name: first
    paths: ["first/**"]
    flux: {kustomization: ` + first + `/tier, contains: base}
  - name: second
    paths: ["second/**"]
    flux: {kustomization: ` + second + `/tier}
`
}

// tip returns the commit of main.
func (st *stage) tip(t *testing.T) string {
	t.Helper()
	if err := st.clone.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	sha, err := st.clone.Git(t.Context(), "rev-parse", "origin/main")
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// TestFactsWakeTheirReaders: what changes in the cluster is seen by exactly
// those pull requests that depend on it.
func TestFactsWakeTheirReaders(t *testing.T) {
	withoutFlux(t)
	name := world.Name(t)
	one, two := name+"-a", name+"-b"
	st := plantStage(t, seed.Options{Policy: tierPolicy(one, two)})
	base := st.tip(t)
	first, second := newTier(t, one, "tier"), newTier(t, two, "tier")
	first.ready(base)
	second.ready(base)
	st.bot = newBot(t, st.repo, settings{})
	st.bot.start()
	a := st.open(t, "a", write("first/a.yaml", "a: 1\n"))
	b := st.open(t, "b", write("first/b.yaml", "a: 1\n"))
	c := st.open(t, "c", write("second/c.yaml", "a: 1\n"))
	for _, p := range []*page{a, b, c} {
		p.shows(patience, "success", "success", "Clear to merge")
	}
	// counts waits for the evaluations since there were before, which are counted
	// after they show, and fails where there are more than wanted.
	counts := func(before, want int, labels ...string) {
		t.Helper()
		n := 0
		eventually(t, patience, fmt.Sprintf("%d evaluations are counted", want), func() error {
			if n = st.bot.metric(t, "signalbox_evaluations_total", labels...) - before; n < want {
				return fmt.Errorf("there are %d", n)
			}
			return nil
		})
		if n > want {
			t.Errorf("%d evaluations, want %d", n, want)
		}
	}
	facts := `kind="fact"`
	count := func(labels ...string) int { return st.bot.metric(t, "signalbox_evaluations_total", labels...) }
	calls := func() int { return st.bot.metric(t, "signalbox_gitea_requests_total") }
	counts(0, 3, `kind="full"`)

	before := count(facts)
	first.failing(base, `no matches for kind "StorageProfile"`)
	_, took := a.shows(patience, "pending", "success", "Kustomization "+first.String()+" on prod is not Ready", `no matches for kind "StorageProfile"`)
	b.shows(patience, "pending", "success", `no matches for kind "StorageProfile"`)
	c.shows(patience, "success", "success", "Kustomization "+second.String()+" on prod is Ready")
	t.Logf("not Ready, shown after %s", took)
	counts(before, 2, facts) // one for each that reads the object
	first.ready(base)
	for _, p := range []*page{a, b} {
		p.shows(patience, "success", "success", "Clear to merge")
	}
	counts(before, 4, facts)

	// A reconcile of a healthy object passes through Progressing. The other
	// object changes after that, and shows when both were seen.
	all, called := count(), calls()
	first.progressing(base)
	first.ready(base)
	second.failing(base, "broken")
	c.shows(patience, "pending", "success", "broken")
	counts(all, 1) // for the other object alone
	if n := calls() - called; n > 4 {
		t.Errorf("%d calls to Gitea for one changed verdict, want at most 4", n)
	}
	a.shows(patience, "success", "success", "Clear to merge")

	// What an old Ready says of a new generation, a suspended object and none.
	first.apply("", ", path: ./new")
	a.shows(patience, "pending", "success", "its latest change (generation 2) has not been taken up by the controller (at 1)")
	first.ready(base)
	a.shows(patience, "success", "success", "Clear to merge")
	first.apply("", ", suspend: true")
	a.shows(patience, "pending", "success", "is suspended")
	first.apply(", finalizers: [example.org/hold]", "")
	first.ready(base)
	a.shows(patience, "success", "success", "Clear to merge")
	first.delete()
	a.shows(patience, "pending", "success", "is being deleted")
	first.apply("", "") // lets it go
	a.shows(patience, "pending", "success", "Kustomization "+first.String()+" does not exist on prod")
	first.apply("", "")
	a.shows(patience, "pending", "success", "has not been reconciled yet")
	first.ready(base)
	for _, p := range []*page{a, b} {
		p.shows(patience, "success", "success", "Clear to merge")
	}

	// The base moves by a push alone.
	moved := mainMoves(t, st, "docs/moved.md", "Moved.\n")
	_, took = a.shows(patience, "pending", "success", "has applied "+base[:10]+", which does not contain the tip "+moved[:10]+" of main yet")
	t.Logf("the base moved, shown after %s", took)
	b.shows(patience, "pending", "success", "does not contain the tip")
	first.ready(moved)
	_, took = a.shows(patience, "success", "success", "is Ready at "+moved[:10])
	t.Logf("applied, shown after %s", took)
	b.shows(patience, "success", "success")
	later := mainMoves(t, st, "docs/later.md", "Later.\n")
	a.shows(patience, "pending", "success", "does not contain the tip")
	// A commit that is not here, on another branch, and a later one.
	first.ready(strings.Repeat("1", 40))
	a.shows(patience, "pending", "success", "which is no commit of this repository")
	latest := mainMoves(t, st, "docs/latest.md", "Latest.\n")
	a.shows(patience, "pending", "success", "which is no commit of this repository")
	first.applied("staging@sha1:" + latest)
	a.shows(patience, "pending", "success", "follows staging, not main")
	first.ready(later)
	a.shows(patience, "pending", "success", "has applied "+later[:10])
	first.applied("main/" + latest) // as Flux wrote it before v2
	a.shows(patience, "success", "success", "is Ready at "+latest[:10])
}

// TestFluxComesAndGoes: a cluster without Flux is unknown, and Flux is picked
// up when it is installed.
func TestFluxComesAndGoes(t *testing.T) {
	withoutFlux(t)
	ctx := t.Context()
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: tierPolicy(name, name)})
	base := st.tip(t)
	builder := realserver.Builder{}
	if err := realserver.RemoveFluxCRDs(ctx, world.Kube, builder); err != nil {
		t.Fatal(err)
	}
	installed := false
	install := func() {
		t.Helper()
		if err := realserver.InstallFluxCRDs(ctx, world.Kube, builder); err != nil {
			t.Fatal(err)
		}
		installed = true
	}
	defer func() {
		if !installed {
			install()
		}
	}()
	st.bot = newBot(t, st.repo, settings{})
	st.bot.start()
	p := st.open(t, "a", write("first/a.yaml", "a: 1\n"))
	missing := "has no Kustomization: its CustomResourceDefinition is not installed"
	p.shows(patience, "pending", "success", missing, "❓")

	install()
	_, took := p.shows(patience, "pending", "success", "Kustomization "+name+"/tier does not exist on prod")
	t.Logf("installed, shown after %s", took)
	newTier(t, name, "tier").ready(base)
	p.shows(patience, "success", "success", "Clear to merge")

	installed = false
	if err := realserver.RemoveFluxCRDs(ctx, world.Kube, builder); err != nil {
		t.Fatal(err)
	}
	_, took = p.shows(patience, "pending", "success", missing)
	t.Logf("removed, shown after %s", took)
	install()
	p.shows(patience, "pending", "success", "Kustomization "+name+"/tier does not exist on prod")
	newTier(t, name, "tier").ready(base)
	p.shows(patience, "success", "success", "Clear to merge")
}

// TestClusterOutOfReach: what cannot be known is unknown since a time, and what
// was missed is made up for.
func TestClusterOutOfReach(t *testing.T) {
	withoutFlux(t)
	ctx := t.Context()
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: tierPolicy(name, name)})
	base := st.tip(t)
	k := newTier(t, name, "tier")
	k.ready(base)
	if _, err := world.Kube.CreateAccount(ctx, name, "signalbox", kube.RequiredRules()); err != nil {
		t.Fatal(err)
	}
	proxy, err := realserver.NewProxy(world.Kube.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	token := filepath.Join(t.TempDir(), "token")
	// A cluster is heard from every 10s.
	silence := "timing: {clusterSilence: 12s}\n"
	st.bot = newBot(t, st.repo, settings{kubeconfig: tokenKubeconfig(t, proxy.Addr(), token), extra: silence})
	renew := func() {
		t.Helper()
		access, err := world.Kube.ServiceAccount(ctx, name, "signalbox")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(token, []byte(access.Token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	st.bot.start()
	p := st.open(t, "a", write("first/a.yaml", "a: 1\n"))
	p.shows(patience, "success", "success", "Clear to merge")

	proxy.Hang()
	// Nobody sees this now.
	k.failing(base, "failed meanwhile")
	_, took := p.shows(patience, "pending", "success", "has been heard from cluster prod since 20", "❓")
	t.Logf("hung, unknown after %s", took)
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	_, took = p.shows(patience, "pending", "success", "failed meanwhile", "❌")
	t.Logf("answers again, shown after %s", took)
	k.ready(base)
	p.shows(patience, "success", "success", "Clear to merge")

	world.Kube.Kill()
	_, took = p.shows(patience, "pending", "success", "❓", " since 20")
	t.Logf("killed, unknown after %s", took)
	if err := world.Kube.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	_, took = p.shows(patience, "success", "success", "Clear to merge")
	t.Logf("started again, shown after %s", took)

	accounts := world.Kube.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(name)
	if err := accounts.Delete(ctx, "signalbox", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The connections that are open stay so.
	proxy.Cut()
	_, took = p.shows(patience, "pending", "success", "❓", " since 20")
	t.Logf("credentials revoked, unknown after %s", took)
	eventually(t, patience, "the log says why", func() error {
		if !strings.Contains(st.bot.log(), "the API server refuses the credentials") {
			return errors.New("it does not")
		}
		return nil
	})
	if _, err := world.Kube.CreateAccount(ctx, name, "signalbox", kube.RequiredRules()); err != nil {
		t.Fatal(err)
	}
	renew()
	_, took = p.shows(2*patience, "success", "success", "Clear to merge")
	t.Logf("credentials renewed, shown after %s", took)
}

// tokenKubeconfig writes a kubeconfig that reads its token from a file, as that
// of a pod is.
func tokenKubeconfig(t *testing.T, addr, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: prod
clusters: [{name: prod, cluster: {server: "https://%s", certificate-authority-data: %s}}]
users: [{name: signalbox, user: {tokenFile: %s}}]
contexts: [{name: prod, context: {cluster: prod, user: signalbox}}]
`, addr, base64.StdEncoding.EncodeToString(world.Kube.Access().CA), token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
