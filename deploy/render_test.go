// Package deploy tests the manifests: that they fit together, and that nothing in
// them is looser than it has to be. Package test/deploy installs them on a real
// API server.
package deploy

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// examples are the installations that are shown, by their folder.
var examples = []string{"single", "replicas", "agent"}

// install is an installation as it is given to the API server.
type install struct {
	deployment appsv1.Deployment
	services   []corev1.Service
	policies   []networkingv1.NetworkPolicy
	budgets    []policyv1.PodDisruptionBudget
	claims     []corev1.PersistentVolumeClaim
	configMaps map[string]corev1.ConfigMap
	// rest are the others as YAML, by their group and kind.
	rest map[schema.GroupKind][]byte
}

// pod is what the Deployment makes.
func (i *install) pod() corev1.PodTemplateSpec { return i.deployment.Spec.Template }

func (i *install) container() corev1.Container { return i.pod().Spec.Containers[0] }

// render builds an example.
func render(t *testing.T, example string) *install {
	t.Helper()
	return build(t, filepath.Join("examples", example))
}

// build builds a folder as kustomize does.
func build(t *testing.T, folder string) *install {
	t.Helper()
	out := &install{configMaps: map[string]corev1.ConfigMap{}, rest: map[schema.GroupKind][]byte{}}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("kustomize build %s: %v", folder, err)
	}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		switch kind := r.GetGvk(); kind.Kind {
		case "Deployment":
			if out.deployment.Name != "" {
				t.Errorf("%s has two Deployments", folder)
			}
			decode(t, text, &out.deployment)
		case "Service":
			out.services = append(out.services, decode(t, text, &corev1.Service{}))
		case "NetworkPolicy":
			out.policies = append(out.policies, decode(t, text, &networkingv1.NetworkPolicy{}))
		case "PodDisruptionBudget":
			out.budgets = append(out.budgets, decode(t, text, &policyv1.PodDisruptionBudget{}))
		case "PersistentVolumeClaim":
			out.claims = append(out.claims, decode(t, text, &corev1.PersistentVolumeClaim{}))
		case "ConfigMap":
			m := decode(t, text, &corev1.ConfigMap{})
			out.configMaps[m.Name] = m
		default:
			out.rest[schema.GroupKind{Group: kind.Group, Kind: kind.Kind}] = text
		}
	}
	if out.deployment.Name == "" {
		t.Fatalf("%s has no Deployment", folder)
	}
	return out
}

// decode reads a manifest strictly: a field that is misspelt is an error.
func decode[T any](t *testing.T, text []byte, into *T) T {
	t.Helper()
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return *into
}

// configOf writes the configuration of an installation to a file, and returns
// its path.
func configOf(t *testing.T, i *install) string {
	t.Helper()
	for _, m := range i.configMaps {
		if text, ok := m.Data["signalbox.yaml"]; ok {
			file := filepath.Join(t.TempDir(), "signalbox.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}
	}
	t.Fatal("no ConfigMap has a signalbox.yaml")
	return ""
}
