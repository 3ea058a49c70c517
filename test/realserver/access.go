package realserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Access is how somebody reaches a Kubernetes API server.
type Access struct {
	Server string // URL.
	CA     []byte // PEM certificates that the server is known by.
	Token  string
}

// Via returns the same access through a [Proxy] at addr.
func (a Access) Via(addr string) Access {
	a.Server = "https://" + addr
	return a
}

// Config returns the configuration of a client. Its request limits are those of a test: none.
func (a Access) Config() (*rest.Config, error) {
	c, err := clientcmd.NewDefaultClientConfig(*kubeconfig(map[string]Access{"only": a}), &clientcmd.ConfigOverrides{CurrentContext: "only"}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("prepare access to %s: %w", a.Server, err)
	}
	c.QPS = -1
	return c, nil
}

// WriteKubeconfig writes a kubeconfig with a context for each name, readable by its owner only. With a
// single context that one is current; with several, none is.
func WriteKubeconfig(path string, contexts map[string]Access) error {
	if err := clientcmd.WriteToFile(*kubeconfig(contexts), path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}

func kubeconfig(contexts map[string]Access) *api.Config {
	c := api.NewConfig()
	for _, name := range slices.Sorted(maps.Keys(contexts)) {
		a := contexts[name]
		c.Clusters[name] = &api.Cluster{Server: a.Server, CertificateAuthorityData: a.CA}
		c.AuthInfos[name] = &api.AuthInfo{Token: a.Token}
		c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
		if len(contexts) == 1 {
			c.CurrentContext = name
		}
	}
	return c
}

// CreateAccount creates a service account that may do in the whole cluster what rules allow, and returns
// access as that account. The rules are those of a ClusterRole, in any type whose JSON form is theirs.
func (k *Kube) CreateAccount(ctx context.Context, namespace, name string, rules any) (Access, error) {
	role := namespace + "-" + name
	account := map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}
	for _, object := range []map[string]any{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": namespace}},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": map[string]any{"name": role}, "rules": rules,
		},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": map[string]any{"name": role}, "subjects": []any{account},
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		},
	} {
		manifest, err := json.Marshal(object)
		if err != nil {
			return Access{}, fmt.Errorf("create account %s/%s: %w", namespace, name, err)
		}
		if err := k.Apply(ctx, manifest); err != nil {
			return Access{}, fmt.Errorf("create account %s/%s: %w", namespace, name, err)
		}
	}
	return k.ServiceAccount(ctx, namespace, name)
}

// ServiceAccount returns access with a fresh token of a service account, which must exist; the token is
// valid for a day. Deleting the service account revokes it within about ten seconds (the API server's cache).
func (k *Kube) ServiceAccount(ctx context.Context, namespace, name string) (Access, error) {
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1",
		"kind":       "TokenRequest",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"expirationSeconds": int64(24 * 60 * 60)},
	}}
	accounts := k.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"})
	answer, err := accounts.Namespace(namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return Access{}, fmt.Errorf("get a token of service account %s/%s: %w", namespace, name, err)
	}
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	if err != nil {
		return Access{}, fmt.Errorf("get a token of service account %s/%s: %w", namespace, name, err)
	}
	a := k.access
	a.Token = token
	return a, nil
}
