package precondition

import (
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"signalbox/internal/yamlfile"
)

// words checks a list of names.
func (v *Validator) words(at yamlfile.Path, words []string) {
	for i, w := range words {
		if strings.TrimSpace(w) == "" || strings.TrimSpace(w) != w {
			v.Add(at.At(i), "", "%q is empty or has space around it", w)
		}
	}
}

// patterns checks globs of names that are not paths.
func (v *Validator) patterns(at yamlfile.Path, globs []string) {
	v.words(at, globs)
	for i, g := range globs {
		if g != "" && !doublestar.ValidatePattern(g) {
			v.Add(at.At(i), "check its brackets and braces", "%q is not a valid glob", g)
		}
	}
}

// matchAny reports whether a name matches one of some globs. In them "/" is no
// letter like others, as in globs of paths.
func matchAny(globs []string, name string) bool {
	for _, g := range globs {
		if ok, err := doublestar.Match(g, name); ok && err == nil {
			return true
		}
	}
	return false
}

// objectName is a name that Kubernetes takes: RFC 1123, with dots.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// object checks that a text is "namespace/name".
func (v *Validator) object(at yamlfile.Path, text string) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || !objectName.MatchString(namespace) || !objectName.MatchString(name) {
		v.Add(at, `write "namespace/name"`, "%q does not name an object", text)
	}
}

// workflowFile checks the name of a workflow's file.
func (v *Validator) workflowFile(at yamlfile.Path, name string) {
	switch {
	case name == "":
		v.Add(at, "name the file, such as renovate.yaml", "is missing")
	case strings.ContainsAny(name, "/@ \t\r\n") || !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml"):
		v.Add(at, "write the name of the file alone, such as renovate.yaml; it is in .gitea/workflows or .github/workflows", "%q is not the name of a workflow's file", name)
	}
}
