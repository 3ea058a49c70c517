// Package docs tests the documents: what they show must work.
package docs

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/config"
	"signalbox/internal/digest"
	"signalbox/internal/kube"
	"signalbox/internal/policy"
)

// documents returns every document by its path from the root of the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := os.DirFS("..")
	paths, err := fs.Glob(root, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(root, "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := fs.ReadFile(root, path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestExamplesLoad loads every YAML block as what it is: a policy, a
// configuration, the role that signalbox needs, or a part of what is deployed.
func TestExamplesLoad(t *testing.T) {
	seen := map[string]int{}
	for path, text := range documents(t) {
		for _, m := range yamlBlock.FindAllStringSubmatch(text, -1) {
			block := m[1]
			var keys map[string]yaml.Node
			if err := yaml.Unmarshal([]byte(block), &keys); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, block)
				continue
			}
			kind := "policy"
			switch {
			case has(keys, "kind") && keys["apiVersion"].Value != "rbac.authorization.k8s.io/v1":
				kind = "manifest"
				checkManifest(t, path, block)
			case has(keys, "kind"):
				kind = "role"
				checkRole(t, path, block)
			case has(keys, "gitea"):
				kind = "configuration"
				checkConfig(t, path, block)
			case has(keys, "clusters"), has(keys, "bus"):
				kind = "configuration of an agent"
				checkAgent(t, path, block)
			case has(keys, "digests"), has(keys, "watch"), has(keys, "web"), has(keys, "tracing"):
				kind = "part of a configuration"
				checkConfig(t, path, restOfConfig+block)
			default:
				if _, problems := policy.Load(path, []byte(block)); len(problems) > 0 {
					t.Errorf("%s: %v in\n%s", path, problems.Err(), block)
				}
			}
			seen[kind]++
		}
	}
	for _, kind := range []string{"policy", "configuration", "part of a configuration", "configuration of an agent", "role", "manifest"} {
		if seen[kind] == 0 {
			t.Errorf("no document shows a %s", kind)
		}
	}
}

func has(keys map[string]yaml.Node, key string) bool {
	_, ok := keys[key]
	return ok
}

// restOfConfig is what a part of a configuration needs beside it.
const restOfConfig = `gitea: {url: "https://gitea.example.org/", webhook: {manage: false}}
repositories: [{name: alice/home-gitops}]
clusters: [{name: home, kubeconfig: /etc/signalbox/kubeconfig}]
chat: {slack: {}, matrix: {homeserver: "https://matrix.example.org"}}
bus: {embedded: {dir: /var/lib/signalbox}}
`

func checkConfig(t *testing.T, path, block string) {
	t.Helper()
	checkFor(t, path, block, config.Validate)
}

// checkAgent takes a block for the configuration of an agent, or, where it says that one
// is elsewhere, for a part of that of its hub.
func checkAgent(t *testing.T, path, block string) {
	t.Helper()
	if strings.Contains(block, "agent: true") {
		checkFor(t, path, partOfHub+block, config.Validate)
		return
	}
	checkFor(t, path, block, config.ValidateAgent)
}

// partOfHub is what the configuration of a hub needs beside its clusters and its bus.
const partOfHub = `gitea: {url: "https://gitea.example.org/", webhook: {manage: false}}
repositories: [{name: alice/home-gitops}]
`

func checkFor(t *testing.T, path, block string, purpose config.Purpose) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	_, warnings, problems := config.Load(config.Source{Path: file, Purpose: purpose})
	if len(warnings)+len(problems) > 0 {
		t.Errorf("%s: %v %v in\n%s", path, problems.Err(), warnings.Err(), block)
	}
}

func checkRole(t *testing.T, path, block string) {
	t.Helper()
	var role struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   map[string]string `yaml:"metadata"`
		Rules      []kube.Rule       `yaml:"rules"`
	}
	d := yaml.NewDecoder(bytes.NewReader([]byte(block)))
	d.KnownFields(true)
	if err := d.Decode(&role); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	needed := kube.RequiredRules()
	if role.Metadata["name"] == "signalbox-digests" {
		needed = digestRules(role.Metadata["namespace"])
	}
	if diff := cmp.Diff(needed, role.Rules); diff != "" {
		t.Errorf("%s: the role is not what signalbox needs (-needed +shown):\n%s", path, diff)
	}
}

// checkManifest looks for a block in the files of deploy, which have tests of
// their own.
func checkManifest(t *testing.T, path, block string) {
	t.Helper()
	var found bool
	root := os.DirFS("../deploy")
	err := fs.WalkDir(root, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		found = found || bytes.Contains(text, []byte(block))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Errorf("%s: no file of deploy has this:\n%s", path, block)
	}
}

// digestRules are what digests and alerts need in a namespace, or in all.
func digestRules(namespace string) []kube.Rule {
	for _, scope := range kube.WishRules(digest.Wishes([]string{"home"}, digest.DefaultChecks(), digest.DefaultKured())) {
		if scope.Namespace == namespace {
			return scope.Rules
		}
	}
	return nil
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	titles = regexp.MustCompile(`(?m)^#+ (.*)$`)
	target = regexp.MustCompile("(?:`|\\$ )make ([a-z0-9]+)")
)

// TestLinksLead follows every link within the repository.
func TestLinksLead(t *testing.T) {
	all := documents(t)
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.IsAbs() {
				continue
			}
			to := path
			if u.Path != "" {
				to = filepath.Join(filepath.Dir(path), u.Path)
			}
			if _, err := os.Stat(filepath.Join("..", to)); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
			if u.Fragment != "" && !anchors(all[to])[u.Fragment] {
				t.Errorf("%s links to %s; there is no such title", path, m[1])
			}
		}
	}
}

// anchors returns the fragments of the titles of a document.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range titles.FindAllStringSubmatch(text, -1) {
		words := strings.Map(func(r rune) rune {
			if r == ' ' {
				return '-'
			}
			if strings.ContainsRune("`*.,:;?!'\"()/", r) {
				return -1
			}
			return r
		}, strings.ToLower(m[1]))
		out[words] = true
	}
	return out
}

// TestTargetsExist looks for every "make" that a document names.
func TestTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range documents(t) {
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", path, m[1])
			}
		}
	}
}
