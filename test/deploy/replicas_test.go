//go:build e2e

package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"signalbox/internal/kube"
	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// TestReplicas runs both replicas of the example on a NATS, and ends one. Their
// account has the rights of the base alone.
func TestReplicas(t *testing.T) {
	ctx := t.Context()
	if err := world.Kube.Apply(ctx, operatorKinds(t)); err != nil {
		t.Fatal(err)
	}
	name := world.Name(t)
	repo, err := seed.Plant(ctx, world, seed.Options{Owner: name, Namespace: name, Policy: "version: 1\napprovals: [{name: keepers, from: {users: [alice]}}]\n"})
	if err != nil {
		t.Fatal(err)
	}
	address, key := startNATS(t)
	example := write(t, "replicas", func(files map[string]string, at string) {
		config := changed(t, files[at+"signalbox.yaml"],
			"https://gitea.example.org/", world.Gitea.URL(), "ops/home-gitops", repo.String(),
			"      - tls://nats-1.nats.nats.svc.cluster.local:4222\n      - tls://nats-2.nats.nats.svc.cluster.local:4222\n", "",
			"tls://nats-0.nats.nats.svc.cluster.local:4222", address,
			"credentials: /secrets/nats.creds", "nkey: /secrets/nats.nkey",
			"    tls:\n      ca: /secrets/nats-ca.crt\n    replicas: 3\n", "    replicas: 1\n")
		files[at+"signalbox.yaml"] = config
	})
	if err := world.Kube.Apply(ctx, rendered(t, example)); err != nil {
		t.Fatal(err)
	}
	secret(t, repo, map[string]string{"nats.nkey": key})
	first, second := node(t, namespace), node(t, namespace)

	account, err := world.Kube.ServiceAccount(ctx, namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	missing, excess := differ(granted(t, account), sorted(rightsOf("", kube.RequiredRules())))
	if len(missing)+len(excess) > 0 {
		t.Errorf("missing %v, excess %v", missing, excess)
	}
	first.stop()
	if _, err := second.get("/readyz"); err != nil {
		t.Errorf("with one of two: %v", err)
	}
	findings, _ := second.examine()
	hasFitting(t, findings)
}

// TestAgentIsTaken asks the API server whether it would take everything of the
// agent's example.
func TestAgentIsTaken(t *testing.T) {
	ctx := t.Context()
	apply(t, filepath.Join(root, "deploy", "base", "namespace.yaml"))
	example := write(t, "agent", func(map[string]string, string) {})
	objects := yaml.NewYAMLToJSONDecoder(strings.NewReader(string(rendered(t, example))))
	taken := 0
	for {
		o := &unstructured.Unstructured{}
		if err := objects.Decode(&o.Object); err != nil || o.Object == nil {
			break
		}
		ref := realserver.Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
		if _, err := resource(t, ref).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "agent", Force: true, DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
		taken++
	}
	if taken < 8 {
		t.Errorf("there are %d objects only", taken)
	}
}

// write writes the folder deploy with an example changed, and returns where the
// example is.
func write(t *testing.T, example string, change func(files map[string]string, at string)) string {
	t.Helper()
	dir, at := t.TempDir(), "examples/"+example+"/"
	files := copied(t, "")
	change(files, at)
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, at)
}

// startNATS starts a NATS server that knows one key, and returns its address and
// the seed of the key.
func startNATS(t *testing.T) (address, key string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	private, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: 8 << 20,
		JetStream: true, StoreDir: t.TempDir(), Nkeys: []*server.NkeyUser{{Nkey: public}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS does not start")
	}
	return s.ClientURL(), string(private)
}
