package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write deploy/schema/openapi.yaml and the examples of docs/api.md")

// root is the folder of the module, seen from this package.
const root = "../.."

// TestSpecFile keeps deploy/schema/openapi.yaml equal to what is served.
// "go test ./internal/api -run TestSpecFile -update" writes it.
func TestSpecFile(t *testing.T) {
	path := filepath.Join(root, "deploy", "schema", "openapi.yaml")
	// For this file nobody needs a token.
	r := httptest.NewRecorder()
	theWorld(t).handler(t).ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/api/v1/openapi.yaml", nil))
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "application/openapi+yaml" {
		t.Fatalf("status %d, type %q", r.Code, r.Header().Get("Content-Type"))
	}
	want := r.Body.Bytes()
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
		t.Errorf("is stale; run: go test ./internal/api -run TestSpecFile -update\n(-want +got):\n%s", diff)
	}
}

// served returns the description as JSON.
func served(t testing.TB, h http.Handler) map[string]any {
	t.Helper()
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/api/v1/openapi.json", nil))
	if r.Code != http.StatusOK {
		t.Fatalf("status %d", r.Code)
	}
	return decode(t, r.Body.Bytes())
}

func decode(t testing.TB, data []byte) map[string]any {
	t.Helper()
	v, err := validator.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	out, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("is no object: %s", data)
	}
	return out
}

// TestSpecIsValid checks the description with the schema of the OpenAPI Initiative
// for OpenAPI 3.1, and that both forms of it say the same.
func TestSpecIsValid(t *testing.T) {
	h := theWorld(t).handler(t)
	spec := served(t, h)
	schema, err := validator.NewCompiler().Compile(filepath.Join("testdata", "openapi-3.1-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(spec); err != nil {
		t.Error(err)
	}
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/api/v1/openapi.yaml", nil))
	var asYAML any
	if err := yaml.Unmarshal(r.Body.Bytes(), &asYAML); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(asYAML)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, decode(t, text)); diff != "" {
		t.Errorf("JSON and YAML differ (-json +yaml):\n%s", diff)
	}
}

// TestSpecSaysWhatItMust looks for what a reader needs of each operation and field.
func TestSpecSaysWhatItMust(t *testing.T) {
	spec := served(t, theWorld(t).handler(t))
	ids := map[any]bool{}
	for path, item := range spec["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			op := o.(map[string]any)
			if method != "get" {
				t.Errorf("%s %s: the API only reads", method, path)
			}
			if ids[op["operationId"]] || op["operationId"] == nil || op["summary"] == nil || op["description"] == nil || op["tags"] == nil {
				t.Errorf("%s lacks an id of its own, a summary, a description or a tag", path)
			}
			ids[op["operationId"]] = true
			responses := op["responses"].(map[string]any)
			for _, code := range []string{"200", "304", "401", "403", "422", "500", "503"} {
				if responses[code] == nil {
					t.Errorf("%s does not say that it may answer %s", path, code)
				}
			}
			if strings.Contains(path, "{") && responses["404"] == nil {
				t.Errorf("%s does not say that it may answer 404", path)
			}
		}
	}
	for name, s := range spec["components"].(map[string]any)["schemas"].(map[string]any) {
		schema := s.(map[string]any)
		if schema["additionalProperties"] != nil {
			t.Errorf("%s says what other fields there may be: a client of today must bear those of tomorrow", name)
		}
		for field, p := range schema["properties"].(map[string]any) {
			if field != strings.ToLower(field[:1])+field[1:] || strings.ContainsAny(field, "_-") {
				t.Errorf("%s.%s is not in lower camel case", name, field)
			}
			if kinds, ok := p.(map[string]any)["type"].([]any); ok {
				t.Errorf("%s.%s is %v; nothing is ever null", name, field, kinds)
			}
		}
	}
	if servers := spec["servers"].([]any); servers[0].(map[string]any)["url"] != "https://signalbox.example.org" {
		t.Errorf("servers are %v", servers)
	}
}

// closed makes every object of a schema refuse fields that it does not name, so that a
// field that nobody described is found.
func closed(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["properties"] != nil && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, key := range slices.Collect(maps.Keys(v)) {
			closed(v[key])
		}
	case []any:
		for _, x := range v {
			closed(x)
		}
	}
}

// schemas validates answers by what the description says of them.
type schemas struct {
	compiler *validator.Compiler
	paths    map[string]any
}

func newSchemas(t testing.TB, h http.Handler) *schemas {
	t.Helper()
	spec := served(t, h)
	closed(spec["components"])
	c := validator.NewCompiler()
	c.DefaultDraft(validator.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("openapi.json", spec); err != nil {
		t.Fatal(err)
	}
	return &schemas{compiler: c, paths: spec["paths"].(map[string]any)}
}

// check validates the answer to a request of a documented path.
func (s *schemas) check(t testing.TB, path string, r *httptest.ResponseRecorder) {
	t.Helper()
	code := http.StatusText(r.Code)
	responses := s.paths[path].(map[string]any)["get"].(map[string]any)["responses"].(map[string]any)
	number := strconv.Itoa(r.Code)
	documented, ok := responses[number].(map[string]any)
	if !ok {
		t.Errorf("%s answers %d %s, which is not documented", path, r.Code, code)
		return
	}
	kind := r.Header().Get("Content-Type")
	if _, ok := documented["content"].(map[string]any)[kind]; !ok {
		t.Errorf("%s answers %d as %q, which is not documented", path, r.Code, kind)
		return
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace
	schema, err := s.compiler.Compile("openapi.json#/paths/" + escape(path) + "/get/responses/" + number + "/content/" + escape(kind) + "/schema")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(decode(t, r.Body.Bytes())); err != nil {
		t.Errorf("%s answers other than it says: %v\n%s", path, err, r.Body)
	}
}

// TestSpecIsTrue asks for every documented path, and checks what it answers.
func TestSpecIsTrue(t *testing.T) {
	asked := map[string][]string{
		"/api/v1/pulls":                         {"/api/v1/pulls", "/api/v1/pulls?state=unevaluated,waiting&limit=1", "/api/v1/pulls?limit=0"},
		"/api/v1/pulls/{owner}/{repo}/{number}": {"/api/v1/pulls/ops/home-gitops/12", "/api/v1/pulls/OPS/apps/3", "/api/v1/pulls/ops/apps/5", "/api/v1/pulls/ops/apps/99", "/api/v1/pulls/ops/other/1", "/api/v1/pulls/ops/apps/x"},
		"/api/v1/clusters":                      {"/api/v1/clusters"},
		"/api/v1/clusters/{name}":               {"/api/v1/clusters/prod", "/api/v1/clusters/staging", "/api/v1/clusters/other"},
		"/api/v1/clusters/{name}/objects":       {"/api/v1/clusters/prod/objects", "/api/v1/clusters/staging/objects?limit=1", "/api/v1/clusters/other/objects", "/api/v1/clusters/prod/objects?kind=Pod"},
		"/api/v1/digests":                       {"/api/v1/digests", "/api/v1/digests?name=morning&limit=2"},
		"/api/v1/digests/now":                   {"/api/v1/digests/now"},
		"/api/v1/digests/{name}/{scheduled}":    {"/api/v1/digests/morning/2026-09-06T06:00:00Z", "/api/v1/digests/morning/2026-09-06T06:00:01Z", "/api/v1/digests/morning/today"},
		"/api/v1/trend":                         {"/api/v1/trend", "/api/v1/trend?since=2026-09-06T00:00:00Z", "/api/v1/trend?since=yesterday"},
		"/api/v1/audit":                         {"/api/v1/audit", "/api/v1/audit?kind=hold,freeze", "/api/v1/audit?kind=holds", "/api/v1/audit?nobody=1"},
		"/api/v1/health":                        {"/api/v1/health"},
	}
	h := theWorld(t).handler(t)
	s := newSchemas(t, h)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.paths)), slices.Sorted(maps.Keys(asked))); diff != "" {
		t.Errorf("documented paths differ from those asked (-documented +asked):\n%s", diff)
	}
	for path, targets := range asked {
		for _, target := range targets {
			s.check(t, path, get(t, h, target))
		}
		// Also without a token.
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, targets[0], nil))
		s.check(t, path, r)
	}
}

// TestEmptyWorldIsTrue checks the answers of a signalbox that has just begun.
func TestEmptyWorldIsTrue(t *testing.T) {
	h := (&world{clusters: []string{"prod"}}).handler(t)
	s := newSchemas(t, h)
	for path := range s.paths {
		target := strings.NewReplacer("{owner}", "ops", "{repo}", "apps", "{number}", "1", "digests/{name}", "digests/morning", "{name}", "prod", "{scheduled}", "2026-09-06T06:00:00Z").Replace(path)
		r := get(t, h, target)
		s.check(t, path, r)
		if r.Code != http.StatusOK && r.Code != http.StatusNotFound {
			t.Errorf("%s answers %d: %s", target, r.Code, r.Body)
		}
	}
	if r := get(t, h, "/api/v1/clusters/prod"); !strings.Contains(r.Body.String(), `"state":"unknown"`) {
		t.Errorf("a cluster that was never heard from: %s", r.Body)
	}
}
