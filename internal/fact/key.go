package fact

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Sources of facts.
const (
	// SourceKube marks facts read from a Kubernetes API server.
	SourceKube = "kube"
	// SourceGitea marks facts read from Gitea.
	SourceGitea = "gitea"
)

// Kinds of facts that are not kinds of Kubernetes objects.
const (
	// KindCluster is what is watched on a cluster; see [Cluster].
	KindCluster = "cluster"
	// KindHeartbeat is whether a cluster is heard from; see [Heartbeat]. It has
	// a writer of its own: the part that listens, not the one that speaks.
	KindHeartbeat = "heartbeat"
	// KindProtection is what protects a branch; see [Protection].
	KindProtection = "protection"
	// KindObjects is the answer to a query; see [Objects].
	KindObjects = "objects"
	// KindKured is what kured does; see [Kured].
	KindKured = "kured"
	// KindRenovate is what Renovate does; see [Renovate].
	KindRenovate = "renovate"
	// KindStatuses are the statuses of a commit; see [Statuses].
	KindStatuses = "statuses"
	// KindRuns are runs of a workflow; see [Runs].
	KindRuns = "runs"
	// KindActions is what runs workflows; see [Actions].
	KindActions = "actions"
	// KindPull is another pull request; see [Pull].
	KindPull = "pull"
)

// Key names the thing that a fact is about. Two different things never have
// the same key, whatever their names contain.
type Key struct {
	// Source is who knows it, such as [SourceKube].
	Source string `json:"source"`
	// Scope is where: for [SourceKube] the configured name of the cluster, for
	// [SourceGitea] empty, as there is one Gitea.
	Scope string `json:"scope"`
	// Kind is the lower-case kind, such as "kustomization".
	Kind string `json:"kind"`
	// Namespace is empty for what has none.
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for a fact of the whole cluster.
	Name string `json:"name,omitempty"`
}

// Kube returns the key of an object on a cluster. The kind is lower-cased.
func Kube(cluster, kind, namespace, name string) Key {
	return Key{Source: SourceKube, Scope: cluster, Kind: strings.ToLower(kind), Namespace: namespace, Name: name}
}

// ClusterKey returns the key of the [Cluster] fact of a cluster.
func ClusterKey(cluster string) Key {
	return Key{Source: SourceKube, Scope: cluster, Kind: KindCluster}
}

// HeartbeatKey returns the key of the [Heartbeat] fact of a cluster.
func HeartbeatKey(cluster string) Key {
	return Key{Source: SourceKube, Scope: cluster, Kind: KindHeartbeat}
}

// ProtectionKey returns the key of the [Protection] fact of a branch of a
// repository.
func ProtectionKey(repo int64, branch string) Key {
	return Key{Source: SourceGitea, Kind: KindProtection, Namespace: strconv.FormatInt(repo, 10), Name: branch}
}

// Object returns "namespace/name", or the name alone where there is no
// namespace.
func (k Key) Object() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// String returns the key in its form on the bus: five tokens separated by
// dots. Each byte of a part outside [A-Za-z0-9_-] is written "=XX", and an
// empty part is "=", so the form is a valid NATS key-value key and can be read
// back by [ParseKey].
func (k Key) String() string {
	parts := []string{k.Source, k.Scope, k.Kind, k.Namespace, k.Name}
	for i, p := range parts {
		parts[i] = escape(p)
	}
	return strings.Join(parts, ".")
}

// ParseKey reads the form that [Key.String] writes, and only that form.
func ParseKey(s string) (Key, error) {
	tokens := strings.Split(s, ".")
	if len(tokens) != 5 {
		return Key{}, fmt.Errorf("fact key %q has %d parts, want 5", s, len(tokens))
	}
	parts := make([]string, len(tokens))
	for i, tok := range tokens {
		p, err := unescape(tok)
		if err != nil {
			return Key{}, fmt.Errorf("fact key %q: %w", s, err)
		}
		parts[i] = p
	}
	k := Key{Source: parts[0], Scope: parts[1], Kind: parts[2], Namespace: parts[3], Name: parts[4]}
	if k.String() != s {
		return Key{}, fmt.Errorf("fact key %q is not in its shortest form", s)
	}
	return k, nil
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func escape(s string) string {
	if s == "" {
		return "="
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func unescape(s string) (string, error) {
	if s == "=" {
		return "", nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '=' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("part %q ends within an escape", s)
		}
		c, err := hex.DecodeString(s[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("part %q: bad escape", s)
		}
		b.WriteByte(c[0])
		i += 2
	}
	return b.String(), nil
}
