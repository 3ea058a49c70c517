//go:build e2e

package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/internal/doctor"
	"signalbox/internal/kube"
	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

var (
	deploymentRef = realserver.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: namespace}
	fluxRef       = realserver.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: realserver.FluxNamespace, Name: namespace}
	nodeRef       = realserver.Ref{APIVersion: "v1", Kind: "Node", Name: "one"}
)

// TestInstall installs signalbox as docs/install.md says, runs it as the pod that came of it, lets
// Flux take it over, and opens a pull request.
func TestInstall(t *testing.T) {
	ctx := t.Context()
	if err := world.Kube.Apply(ctx, operatorKinds(t)); err != nil {
		t.Fatal(err)
	}
	apply(t, "testdata/cluster.yaml")
	policy, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	repo, err := seed.Plant(ctx, world, seed.Options{Policy: string(policy)})
	if err != nil {
		t.Fatal(err)
	}
	if err := world.Kube.Apply(ctx, rendered(t, vendor(t, repo))); err != nil {
		t.Fatal(err)
	}
	secret(t, repo, nil)
	p := node(t, namespace)
	report(t, p)

	t.Run("it may do what is documented and no more", testRights)
	t.Run("Flux takes it over", func(t *testing.T) { testFlux(t, repo) })
	t.Run("the doctor finds nothing", func(t *testing.T) { testDoctor(t, p) })
	t.Run("it gates", func(t *testing.T) { testGate(t, repo) })
	t.Run("it keeps to its folder", func(t *testing.T) { testFolder(t, p) })
	t.Run("it is removed but for the ledger", testRemoval)
}

// testRemoval removes what Flux has applied.
func testRemoval(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := world.Kube.Delete(ctx, fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", fluxRef.APIVersion, fluxRef.Kind, fluxRef.Name, fluxRef.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []realserver.Ref{deploymentRef, clusterRole("signalbox"), clusterRole("signalbox-read-nodes")} {
		if err := world.Kube.WaitGone(ctx, ref); err != nil {
			t.Error(err)
		}
	}
	for _, ref := range []realserver.Ref{
		{APIVersion: "v1", Kind: "Namespace", Name: namespace},
		{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: "signalbox-data"},
	} {
		o, err := world.Kube.Get(ctx, ref)
		if err != nil || o.GetDeletionTimestamp() != nil {
			t.Errorf("%s is gone, or is about to be: %v", ref, err)
		}
	}
}

// testFlux lets Flux apply the same from the repository: it finds everything in place and
// ready, also in the next revision.
func testFlux(t *testing.T, repo *seed.Repository) {
	flux, err := os.ReadFile(filepath.Join(root, "deploy", "examples", "flux", "signalbox.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ours := changed(t, string(flux), "https://gitea.example.org/alice/home-gitops", world.Gitea.URL()+repo.String())
	if err := world.Kube.Apply(t.Context(), []byte(ours)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ready, err := world.Kube.Wait(ctx, fluxRef, realserver.HasCondition("Ready", "True"))
	if err != nil {
		t.Fatal(err)
	}
	applied, _, err := unstructured.NestedSlice(ready.Object, "status", "inventory", "entries")
	if err != nil || len(applied) < 15 {
		t.Errorf("Flux has applied %d objects: %v", len(applied), err)
	}
}

// testRights compares, and shows that the comparison sees a right that is missing and one too many.
func testRights(t *testing.T) {
	check := func(t *testing.T, wantMissing, wantExcess []kube.Right) {
		t.Helper()
		eventually(t, "the rights are as expected", func() error {
			missing, excess := rights(t)
			if diff := cmp.Diff([][]kube.Right{wantMissing, wantExcess}, [][]kube.Right{missing, excess}); diff != "" {
				return fmt.Errorf("missing and excess (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	check(t, nil, nil)
	for _, tc := range []struct {
		name            string
		role            realserver.Ref
		path            string
		value           any
		missing, excess []kube.Right
	}{
		{
			name: "one is missing", role: clusterRole("signalbox"), path: "/rules/1/verbs", value: []string{"list"},
			missing: []kube.Right{{Verb: "watch", Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}},
		},
		{
			name: "one too many", role: clusterRole("signalbox"), path: "/rules/1/verbs", value: []string{"list", "watch", "patch"},
			excess: []kube.Right{{Verb: "patch", Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}},
		},
		{
			name: "a definition without its name", role: clusterRole("signalbox"), path: "/rules/3/resourceNames", value: []string{"kustomizations.kustomize.toolkit.fluxcd.io"},
			missing: definitions()[2:],
		},
		{
			name: "in one namespace", path: "/rules/0/verbs", value: []string{"list", "watch", "delete"},
			role:   realserver.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Namespace: "kube-system", Name: "signalbox-read-kured"},
			excess: []kube.Right{{Verb: "delete", Group: "apps", Resource: "daemonsets", Namespace: "kube-system", Name: "kured"}},
		},
		{
			name: "everything", role: clusterRole("signalbox-read-nodes"), path: "/rules/0", value: map[string]any{"apiGroups": []string{"*"}, "resources": []string{"*"}, "verbs": []string{"*"}},
			excess: []kube.Right{{Verb: "*", Group: "*", Resource: "*"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := field(t, tc.role, "rules")
			patch(t, tc.role, tc.path, tc.value)
			check(t, sorted(tc.missing), tc.excess)
			patch(t, tc.role, "/rules", before)
			check(t, nil, nil)
		})
	}
}

// definitions are the rights to read definitions, in the order of the rules.
func definitions() []kube.Right {
	var out []kube.Right
	for _, r := range rightsOf("", kube.RequiredRules()) {
		if r.Name != "" {
			out = append(out, r)
		}
	}
	return out
}

// testDoctor examines the installation within the pod.
func testDoctor(t *testing.T, p *pod) {
	if out, code := p.exec("doctor", "--fix", "--yes"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	findings, code := p.examine()
	for _, f := range findings {
		if f.Severity != doctor.OK {
			t.Errorf("%s %s: %s: %s", f.Severity, f.Check, f.Subject, f.What)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	hasFitting(t, findings)
}

// hasFitting looks for what the doctor says of a cluster in which it has looked at the rights,
// and found them as they should be.
func hasFitting(t *testing.T, findings []doctor.Finding) {
	t.Helper()
	if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
		return f.Check == "cluster" && f.Severity == doctor.OK && strings.Contains(f.What, "with no more rights than needed")
	}) {
		t.Errorf("the doctor does not say that the rights are as needed: %+v", findings)
	}
}

// testGate opens a pull request, and lets a node be worked on meanwhile.
func testGate(t *testing.T, repo *seed.Repository) {
	ctx := t.Context()
	clone, err := repo.Clone(ctx, repo.Bob, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := clone.Branch(ctx, "change", "origin/main"); err != nil {
		t.Fatal(err)
	}
	head, err := clone.Commit(ctx, realserver.Change{Message: "Change the read me", Write: map[string]string{"README.md": "Changed.\n"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := clone.Push(ctx, "change"); err != nil {
		t.Fatal(err)
	}
	bob, err := world.Gitea.API(ctx, repo.Bob.Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := bob.CreatePullRequest(repo.Owner, repo.Name, sdk.CreatePullRequestOption{Head: "change", Base: "main", Title: "Change the read me"}); err != nil {
		t.Fatal(err)
	}
	shows := func(state sdk.StatusState) {
		t.Helper()
		eventually(t, "the preconditions show "+string(state), func() error {
			list, _, err := bob.ListStatuses(repo.Owner, repo.Name, head, sdk.ListStatusesOption{})
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(s *sdk.Status) bool { return s.Context != "signalbox / preconditions (main)" })
			if len(list) == 0 {
				return errors.New("there is none yet")
			}
			newest := slices.MaxFunc(list, func(a, b *sdk.Status) int { return int(a.ID - b.ID) })
			if newest.State != state {
				return fmt.Errorf("it is %s: %s", newest.State, newest.Description)
			}
			return nil
		})
	}
	shows(sdk.StatusSuccess)
	patch(t, nodeRef, "/spec/unschedulable", true)
	shows(sdk.StatusPending)
	patch(t, nodeRef, "/spec/unschedulable", false)
	shows(sdk.StatusSuccess)
}

// testFolder: whatever signalbox has written is on its volume, and nobody else
// of the node may read it.
func testFolder(t *testing.T, p *pod) {
	data := filepath.Join(p.root, "var", "lib", "signalbox")
	found := 0
	err := filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || ownerOf(info) == 0 {
			return err
		}
		found++
		if !strings.HasPrefix(path, data+"/") {
			t.Errorf("%s was written outside of the volume", path)
		}
		if filepath.Dir(path) == data && info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("signalbox has written nothing")
	}
}
