package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"signalbox/internal/config"
	"signalbox/internal/policy"
)

var update = flag.Bool("update", false, "write the schemas of deploy/schema from the Go types")

// root is the folder of the module, seen from this package.
const root = "../.."

// schemas are the files that editors read, with the type that each is made of.
var schemas = []struct {
	file, title string
	of          any
}{
	{"config.schema.json", "Configuration of signalbox", config.File{}},
	{"policy.schema.json", "Policy of signalbox", policy.File{}},
}

// TestSchemas keeps the schemas equal to what the Go types and their comments
// say. "go test ./internal/config -run TestSchemas -update" writes them.
func TestSchemas(t *testing.T) {
	for _, s := range schemas {
		t.Run(s.file, func(t *testing.T) {
			path := filepath.Join(root, "deploy", "schema", s.file)
			want := reflectSchema(t, s.title, s.of)
			if *update {
				if err := os.WriteFile(path, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("is stale; run: go test ./internal/config -run TestSchemas -update\n(-want +got):\n%s", diff)
			}
		})
	}
}

func reflectSchema(t *testing.T, title string, of any) []byte {
	t.Helper()
	r := jsonschema.Reflector{
		Anonymous:                  true,
		ExpandedStruct:             true,
		RequiredFromJSONSchemaTags: true,
		Namer:                      schemaName,
	}
	for _, dir := range []string{".", "../policy", "../precondition"} {
		if err := r.AddGoComments("signalbox/internal/config", dir, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	comments := r.CommentMap
	r.CommentMap = nil
	r.LookupComment = func(t reflect.Type, field string) string { return description(comments, t, field) }
	s := r.Reflect(of)
	s.Title = title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// schemaName tells the types of the packages apart.
func schemaName(t reflect.Type) string {
	if t == reflect.TypeFor[policy.File]() {
		return "Policy"
	}
	return strings.TrimSuffix(t.Name(), "File")
}

// description returns the comment of a type, or of its field, in one paragraph
// that starts with the name that stands in the YAML file.
func description(comments map[string]string, t reflect.Type, field string) string {
	key, goName, name := t.PkgPath()+"."+t.Name(), t.Name(), schemaName(t)
	switch {
	case field != "":
		f, _ := t.FieldByName(field)
		key, goName = key+"."+field, field
		name, _, _ = strings.Cut(f.Tag.Get("yaml"), ",")
	case goName == "File":
		name = goName
	}
	text := strings.Join(strings.Fields(comments[key]), " ")
	if rest, ok := strings.CutPrefix(text, goName+" "); ok {
		text = name + " " + rest
	}
	return text
}
