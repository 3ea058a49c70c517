//go:build e2e

package deploy

import (
	"encoding/json"
	"io/fs"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"signalbox/test/realserver"
)

// resource returns the client of an object's kind, as an administrator.
func resource(t *testing.T, ref realserver.Ref) dynamic.ResourceInterface {
	t.Helper()
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		t.Fatal(err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(ref.Kind))
	client := world.Kube.Dynamic().Resource(plural)
	if ref.Namespace == "" {
		return client
	}
	return client.Namespace(ref.Namespace)
}

func clusterRole(name string) realserver.Ref {
	return realserver.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name}
}

// patch sets one field of an object.
func patch(t *testing.T, ref realserver.Ref, path string, value any) {
	t.Helper()
	text, err := json.Marshal([]any{map[string]any{"op": "add", "path": path, "value": value}})
	if err != nil {
		t.Fatal(err)
	}
	send(t, ref, types.JSONPatchType, text)
}

func patchStatus(t *testing.T, ref realserver.Ref, status map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	send(t, ref, types.MergePatchType, text, "status")
}

func send(t *testing.T, ref realserver.Ref, kind types.PatchType, text []byte, sub ...string) {
	t.Helper()
	if _, err := resource(t, ref).Patch(t.Context(), ref.Name, kind, text, metav1.PatchOptions{}, sub...); err != nil {
		t.Fatalf("patch %s: %v", ref, err)
	}
}

// field reads a field of an object.
func field(t *testing.T, ref realserver.Ref, name string) any {
	t.Helper()
	o, err := world.Kube.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return o.Object[name]
}

func ownerOf(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
