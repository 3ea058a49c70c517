package fact

import (
	"errors"
	"testing"
)

func TestParseResource(t *testing.T) {
	tests := map[string]Resource{
		"nodes":                              {Resource: "nodes"},
		"nodes.v1":                           {"nodes", "v1", ""},
		"persistentvolumes":                  {Resource: "persistentvolumes"},
		"deployments.apps":                   {"deployments", "", "apps"},
		"deployments.v1.apps":                {"deployments", "v1", "apps"},
		"volumes.longhorn.io":                {"volumes", "", "longhorn.io"},
		"volumes.v1beta2.longhorn.io":        {"volumes", "v1beta2", "longhorn.io"},
		"certificates.cert-manager.io":       {"certificates", "", "cert-manager.io"},
		"clusters.postgresql.cnpg.io":        {"clusters", "", "postgresql.cnpg.io"},
		"secrets.example.com":                {"secrets", "", "example.com"},
		"secretstores.external-secrets.io":   {"secretstores", "", "external-secrets.io"},
		"sealedsecrets.v1alpha1.bitnami.com": {"sealedsecrets", "v1alpha1", "bitnami.com"},
	}
	for s, want := range tests {
		got, err := ParseResource(s)
		if err != nil || got != want {
			t.Errorf("ParseResource(%q) = %+v, %v, want %+v", s, got, err, want)
		}
		if got.String() != s {
			t.Errorf("%+v is spelled %q, want %q", got, got.String(), s)
		}
	}
}

func TestParseResourceRefuses(t *testing.T) {
	for _, s := range []string{
		"", ".", "nodes.", "nodes.v1.", "Nodes", "deployments.Apps", "no des", "nodes,pods", "nodes..apps", "*", "v1/nodes",
		"pods/log", "nodes/status", "nodes\n", "-x", "deployments.apps.", "nodes?x=y", "../nodes",
	} {
		if got, err := ParseResource(s); err == nil || errors.Is(err, ErrSecrets) {
			t.Errorf("ParseResource(%q) = %+v, %v, want another error", s, got, err)
		}
	}
	for _, s := range []string{"secrets", "secret", "Secret", "SECRETS", "secrets.", "secrets.v1", "secrets.v1.", "secrets.core", "secrets.v1.core"} {
		if got, err := ParseResource(s); !errors.Is(err, ErrSecrets) {
			t.Errorf("ParseResource(%q) = %+v, %v, want %v", s, got, err, ErrSecrets)
		}
	}
	// A subresource is refused before anything else is looked at.
	if _, err := ParseResource("secrets/status"); err == nil {
		t.Error("a subresource of secrets is accepted")
	}
}

func FuzzParseResource(f *testing.F) {
	for _, s := range []string{"nodes", "secrets.v1.", "volumes.v1beta2.longhorn.io", "a.b.c.d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseResource(s)
		if err != nil {
			return
		}
		if again, err := ParseResource(r.String()); err != nil || again != r || r.String() != s {
			t.Errorf("%q is %+v, which is %q: %+v, %v", s, r, r.String(), again, err)
		}
		if r.Resource == "secrets" && r.Group == "" {
			t.Errorf("%q is accepted", s)
		}
	})
}
