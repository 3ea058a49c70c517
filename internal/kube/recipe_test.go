package kube

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"signalbox/internal/fact"
)

// recipe is a precondition of the examples, and objects by what is to come of
// its test.
type recipe struct {
	precondition string
	// crd says that the kind is not one of Kubernetes itself.
	crd bool
	// cluster says that its objects are in no namespace.
	cluster                   bool
	passing, failing, unclear []string
}

func recipes() []recipe {
	return []recipe{
		{
			precondition: "Longhorn volumes are healthy", crd: true,
			passing: []string{
				`{apiVersion: longhorn.io/v1beta2, kind: Volume, metadata: {name: pvc-1, namespace: longhorn-system}, status: {state: attached, robustness: healthy, kubernetesStatus: {pvcName: data}}}`,
				`{apiVersion: longhorn.io/v1beta2, kind: Volume, metadata: {name: pvc-2, namespace: longhorn-system}, status: {state: detached, robustness: unknown}}`,
			},
			failing: []string{`{apiVersion: longhorn.io/v1beta2, kind: Volume, metadata: {name: pvc-3, namespace: longhorn-system}, status: {state: attached, robustness: degraded}}`},
			unclear: []string{`{apiVersion: longhorn.io/v1beta2, kind: Volume, metadata: {name: pvc-4, namespace: longhorn-system}, spec: {size: "1"}}`},
		},
		{
			precondition: "disks of virtual machines are imported", crd: true,
			passing: []string{
				`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: root, namespace: vms}, status: {phase: Succeeded, progress: 100.0%}}`,
				`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: later, namespace: vms}, status: {phase: WaitForFirstConsumer}}`,
			},
			failing: []string{`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: import, namespace: vms}, status: {phase: ImportInProgress}}`},
			unclear: []string{`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, metadata: {name: new, namespace: vms}}`},
		},
		{
			precondition: "storage profiles are complete", crd: true, cluster: true,
			passing: []string{`{apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: longhorn}, status: {claimPropertySets: [{accessModes: [ReadWriteMany], volumeMode: Block}], provisioner: driver.longhorn.io}}`},
			// The same object, as CDI makes it for a class it does not know.
			failing: []string{`{apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: longhorn}, status: {provisioner: example.com/nfs}}`},
		},
		{
			precondition: "databases have all their instances", crd: true,
			passing: []string{`{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: main, namespace: db}, spec: {instances: 3}, status: {readyInstances: 3, conditions: [{type: Ready, status: "True"}]}}`},
			failing: []string{`{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: two, namespace: db}, spec: {instances: 3}, status: {readyInstances: 2, conditions: [{type: Ready, status: "True"}]}}`},
			unclear: []string{`{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: new, namespace: db}, spec: {instances: 3}}`},
		},
		{
			// It asks that no volume passes.
			precondition: "persistent volumes are looked after", cluster: true,
			passing: []string{`{apiVersion: v1, kind: PersistentVolume, metadata: {name: released}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}, status: {phase: Released}}`},
			failing: []string{`{apiVersion: v1, kind: PersistentVolume, metadata: {name: bound}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /a}}, status: {phase: Bound}}`},
		},
		{
			precondition: "nodes are ready", cluster: true,
			passing: []string{`{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {conditions: [{type: Ready, status: "True"}]}}`},
			failing: []string{
				`{apiVersion: v1, kind: Node, metadata: {name: n2}, status: {conditions: [{type: Ready, status: Unknown}]}}`,
				`{apiVersion: v1, kind: Node, metadata: {name: n3}, spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: "True"}]}}`,
			},
		},
		{
			precondition: "ingress is rolled out",
			passing:      []string{deploymentManifest("up", 2)},
			failing:      []string{deploymentManifest("down", 1)},
		},
		{
			precondition: "certificates are issued", crd: true,
			passing: []string{`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web, namespace: web}, status: {conditions: [{type: Ready, status: "True", reason: Ready}]}}`},
			failing: []string{`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: mail, namespace: web}, status: {conditions: [{type: Issuing, status: "True"}, {type: Ready, status: "False", reason: DoesNotExist}]}}`},
			unclear: []string{`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: new, namespace: web}, spec: {secretName: x}}`},
		},
	}
}

func deploymentManifest(name string, ready int) string {
	available := map[bool]string{true: "True", false: "False"}[ready == 2]
	return yamlOf(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "ingress"},
		"spec": map[string]any{
			"replicas": 2, "selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": name}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
			},
		},
		"status": map[string]any{
			"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": 2 - ready,
			"conditions": []any{
				map[string]any{"type": "Available", "status": available, "reason": "MinimumReplicasAvailable", "message": "x"},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "x"},
			},
		},
	})
}

func yamlOf(v any) string {
	data, err := yaml.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// exampleQueries returns what the preconditions of the examples ask for, by
// their names.
func exampleQueries(t *testing.T) map[string]fact.ObjectsQuery {
	t.Helper()
	files, err := filepath.Glob("../../deploy/examples/policy/objects-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	out := map[string]fact.ObjectsQuery{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var policy struct {
			Preconditions []struct {
				Name    string
				Objects *struct{ Kind, Namespace, Name, Selector, All, None string }
			}
		}
		if err := yaml.Unmarshal(data, &policy); err != nil {
			t.Fatal(file, err)
		}
		for _, p := range policy.Preconditions {
			if o := p.Objects; o != nil {
				out[p.Name] = fact.ObjectsQuery{Resource: o.Kind, Namespace: o.Namespace, Name: o.Name, Selector: o.Selector, Test: cmp.Or(o.All, o.None)}
			}
		}
	}
	return out
}

func manifest(t *testing.T, s string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

// The tests of the examples say of objects what they are meant to.
func TestRecipes(t *testing.T) {
	queries := exampleQueries(t)
	for _, r := range recipes() {
		t.Run(r.precondition, func(t *testing.T) {
			q, ok := queries[r.precondition]
			if !ok {
				t.Fatal("the examples have no such precondition")
			}
			delete(queries, r.precondition)
			test := kstatus
			if q.Test != "" {
				var err error
				if test, err = expressionTest(q.Test); err != nil {
					t.Fatal(err)
				}
			}
			for want, manifests := range map[verdict][]string{passing: r.passing, failed: r.failing, unclear: r.unclear} {
				for _, m := range manifests {
					o := manifest(t, m)
					if o.GetGeneration() == 0 {
						o.SetGeneration(1)
					}
					if got := test(o.Object); got.verdict != want {
						t.Errorf("%s: verdict %d because %q, want %d", o.GetName(), got.verdict, got.why, want)
					}
				}
			}
		})
	}
	for name := range queries {
		t.Errorf("no objects to try %q on", name)
	}
}
