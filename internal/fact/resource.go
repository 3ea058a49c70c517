package fact

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Resource names a kind of object in the words of the Kubernetes API.
type Resource struct {
	// Resource is the lower-case plural, such as "volumes".
	Resource string
	// Version is empty for the one that the API server prefers.
	Version string
	// Group is empty for the core group.
	Group string
}

var (
	resourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	groupName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	versionName  = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
)

// ErrSecrets is why a resource is refused that holds secrets.
var ErrSecrets = errors.New("secrets are never read")

// ParseResource reads the name of a resource as kubectl spells it: "nodes",
// "deployments.apps", "volumes.longhorn.io", or with a version
// "volumes.v1beta2.longhorn.io". The plural is meant, and without a group the
// core group alone, so that what is installed later cannot change what a name
// means. What follows the first dot is a version if it has the form of one.
//
// Secrets of the core group are refused in every spelling ([ErrSecrets]), and
// so are subresources.
func ParseResource(s string) (Resource, error) {
	if strings.Contains(s, "/") {
		return Resource{}, fmt.Errorf("resource %q: a subresource cannot be watched; name the resource alone", s)
	}
	name, rest, dotted := strings.Cut(s, ".")
	r := Resource{Resource: name, Group: rest}
	if version, group, more := strings.Cut(rest, "."); versionName.MatchString(version) {
		r.Version, r.Group = version, group
		dotted = more && group == ""
	} else {
		dotted = dotted && rest == ""
	}
	switch lower := strings.ToLower(name); {
	case (lower == "secrets" || lower == "secret") && (r.Group == "" || strings.EqualFold(r.Group, "core")):
		return Resource{}, fmt.Errorf("resource %q: %w", s, ErrSecrets)
	case dotted, !resourceName.MatchString(name), r.Group != "" && !groupName.MatchString(r.Group):
		return Resource{}, fmt.Errorf(`resource %q is not the name of one; give the lower-case plural and, unless it is of the core group, the group, such as "nodes", "deployments.apps" or "volumes.v1beta2.longhorn.io"`, s)
	}
	return r, nil
}

// String is the form that [ParseResource] reads.
func (r Resource) String() string {
	parts := slices.DeleteFunc([]string{r.Resource, r.Version, r.Group}, func(s string) bool { return s == "" })
	return strings.Join(parts, ".")
}
