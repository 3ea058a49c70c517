//go:build e2e

package deploy

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"signalbox/test/realserver"
	"signalbox/test/realserver/bot"
	"signalbox/test/realserver/seed"
)

// copied are the files of the folder deploy below another one, as docs/install.md says.
func copied(t *testing.T, into string) map[string]string {
	t.Helper()
	files := map[string]string{}
	source := os.DirFS(filepath.Join(root, "deploy"))
	err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".go") {
			return err
		}
		text, err := fs.ReadFile(source, name)
		files[path.Join(into, name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// vendor puts the folder deploy into the repository, with the names of the
// example changed as somebody does who installs it, and returns where it is.
func vendor(t *testing.T, repo *seed.Repository) (example string) {
	t.Helper()
	ctx := t.Context()
	files := copied(t, "infrastructure/signalbox")
	const at = "infrastructure/signalbox/examples/single/"
	files[at+"signalbox.yaml"] = changed(t, files[at+"signalbox.yaml"],
		"https://gitea.example.org/", world.Gitea.URL(), "alice/home-gitops", repo.String(), "    observe: true\n", "")
	const one = "  - ../../components/read-kured\n"
	files[at+"kustomization.yaml"] = changed(t, files[at+"kustomization.yaml"], one, one+"  - ../../components/read-renovate\n")
	dir := t.TempDir()
	clone, err := repo.Clone(ctx, repo.Alice, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clone.Commit(ctx, realserver.Change{Message: "Install signalbox", Write: files}); err != nil {
		t.Fatal(err)
	}
	if err := clone.Push(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, at)
}

// rendered is what kubectl apply -k applies.
func rendered(t *testing.T, example string) []byte {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), example)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// changed replaces texts, given in turn with what stands for them; each must be there.
func changed(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q in\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// secret makes the Secret that docs/install.md asks for, with further keys.
func secret(t *testing.T, repo *seed.Repository, more map[string]string) {
	t.Helper()
	token, err := world.Gitea.CreateToken(t.Context(), repo.Bot, world.Name(t), bot.Scopes()...)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{"gitea-token": token, "webhook-secret": strings.Repeat("0123456789abcdef", 4)}
	maps.Copy(data, more)
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": namespace, "namespace": namespace}, "stringData": data,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := world.Kube.Apply(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// report writes what a kubelet and controllers report of a pod that is ready and of
// a volume that is there.
func report(t *testing.T, p *pod) {
	t.Helper()
	o, err := world.Kube.Get(t.Context(), deploymentRef)
	if err != nil {
		t.Fatal(err)
	}
	patchStatus(t, deploymentRef, map[string]any{
		"observedGeneration": o.GetGeneration(), "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	})
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			patchStatus(t, realserver.Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: v.PersistentVolumeClaim.ClaimName}, map[string]any{"phase": "Bound"})
		}
	}
}

// apply applies a file as an administrator.
func apply(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := world.Kube.Apply(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// operatorKinds are the definitions of the Prometheus operator that are used.
func operatorKinds(t *testing.T) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/prometheus-operator/prometheus-operator")
	cmd.Dir, cmd.Env = filepath.Join("testdata", "prometheus-operator"), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("get the Prometheus operator: %v\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, text...), "\n---\n"...)
	}
	return all
}
