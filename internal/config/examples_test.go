package config_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/config"
	"signalbox/internal/policy"
	"signalbox/internal/yamlfile"
)

// examples returns the example files of a kind, at least one.
func examples(t *testing.T, kind string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "deploy", "examples", kind, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples of %s: %v", kind, err)
	}
	return paths
}

// TestExamplesLoad loads every example without a problem or a warning.
func TestExamplesLoad(t *testing.T) {
	for _, path := range examples(t, "config") {
		t.Run(path, func(t *testing.T) {
			_, warnings, problems := config.Load(config.Source{Path: path, Purpose: config.Validate})
			if err := append(problems, warnings...).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, path := range examples(t, "policy") {
		t.Run(path, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, problems := policy.Load(path, data); len(problems) > 0 {
				t.Error(problems.Err())
			}
		})
	}
}

// TestExampleEnvironment loads the example that needs no file. Every variable it
// names, commented out or not, is one that is read.
func TestExampleEnvironment(t *testing.T) {
	f, err := os.Open(filepath.Join(root, "deploy", "examples", "signalbox.env"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	named, env := map[string]bool{}, map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, comment := strings.CutPrefix(lines.Text(), "# ")
		name, value, ok := strings.Cut(line, "=")
		if !ok || !strings.HasPrefix(name, "SIGNALBOX_") {
			continue
		}
		named[name] = true
		if !comment {
			env[name] = value
		}
	}
	asked := map[string]bool{}
	lookup := func(name string) (string, bool) {
		asked[name] = true
		value, ok := env[name]
		return value, ok
	}
	c, warnings, problems := config.Load(config.Source{Env: lookup, Purpose: config.Validate})
	if err := append(problems, warnings...).Err(); err != nil {
		t.Fatal(err)
	}
	if len(c.Repositories) != 2 || c.Clusters[0].Name != "home" || c.Bus.Embedded.Dir != "/var/lib/signalbox" {
		t.Errorf("loaded %+v", c)
	}
	// The files of the secrets do not exist here, so this only asks.
	config.Load(config.Source{Env: lookup})
	for name := range named {
		if !asked[name] {
			t.Errorf("%s is not read", name)
		}
	}
}

// TestExamplesFitTheSchemas checks every example with another implementation of
// JSON schema, as an editor does, and that the editor finds the schema.
func TestExamplesFitTheSchemas(t *testing.T) {
	for _, kind := range []string{"config", "policy"} {
		schema := compileSchema(t, kind)
		for _, path := range examples(t, kind) {
			t.Run(path, func(t *testing.T) {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				first, _, _ := strings.Cut(string(data), "\n")
				want := "# yaml-language-server: $schema=../../schema/" + kind + ".schema.json"
				if first != want {
					t.Errorf("starts with %q, want %q", first, want)
				}
				if err := schema.Validate(fromYAML(t, data)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestSchemasRefuse keeps the schemas as strict as the loader is.
func TestSchemasRefuse(t *testing.T) {
	tests := []struct{ name, kind, in string }{
		{"unknown field", "config", "giteaa: {}"},
		{"unknown field within", "config", "gitea: {webhook: {secret: x}}"},
		{"two buses", "config", "bus: {embedded: {dir: /d}, nats: {urls: ['nats://n']}}"},
		{"no duration", "config", "timing: {debounce: 3}"},
		{"sync", "config", "bus: {embedded: {sync: never}}"},
		{"policy within", "config", "policy: {version: 2}"},
		{"unnamed repository", "config", "repositories: [{observe: true}]"},
		{"no version", "policy", "preconditions: []"},
		{"unknown kind", "policy", "{version: 1, preconditions: [{name: a, fluxx: {}}]}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if compileSchema(t, tt.kind).Validate(fromYAML(t, []byte(tt.in))) == nil {
				t.Error("was accepted by the schema")
			}
			var problems yamlfile.Problems
			if tt.kind == "config" {
				_, _, problems = load(t, tt.in, nil, config.Validate)
			} else {
				_, problems = policy.Load("p.yaml", []byte(tt.in))
			}
			if len(problems) == 0 {
				t.Error("was accepted by the loader")
			}
		})
	}
}

func compileSchema(t *testing.T, kind string) *validator.Schema {
	t.Helper()
	schema, err := validator.NewCompiler().Compile(filepath.Join(root, "deploy", "schema", kind+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// fromYAML decodes YAML as JSON does.
func fromYAML(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := validator.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
