package yamlfile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/yamlfile"
)

type inner struct {
	Extra string `yaml:"extra"`
}

type item struct {
	Name   string            `yaml:"name"`
	Paths  []string          `yaml:"paths"`
	Settle yamlfile.Duration `yaml:"settle"`
	Flux   *struct {
		Kustomization string `yaml:"kustomization"`
	} `yaml:"flux"`
}

type file struct {
	Version int    `yaml:"version"`
	Items   []item `yaml:"items"`
	Inner   inner  `yaml:",inline"`
}

func TestDecode(t *testing.T) {
	var f file
	_, ps := yamlfile.Decode("x.yaml", []byte("version: 1\nitems:\n  - {name: a, paths: [b], settle: 10m, flux: {kustomization: k}}\nextra: e\n"), &f)
	if err := ps.Err(); err != nil {
		t.Fatal(err)
	}
	if f.Version != 1 || f.Items[0].Settle.D() != 10*time.Minute || f.Items[0].Flux.Kustomization != "k" || f.Inner.Extra != "e" {
		t.Errorf("decoded %+v", f)
	}
}

func TestDecodeReportsEveryProblem(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", "x.yaml: is empty"},
		{"only a comment", "# nothing\n", "x.yaml: is empty"},
		{"syntax", "version: [1\n", "x.yaml:1: did not find expected ',' or ']'"},
		{"two documents", "version: 1\n---\nversion: 1\n", "x.yaml: holds more than one YAML document (keep one)"},
		{"not a mapping", "- 1\n", "x.yaml:1: expected a mapping, found a list"},
		{"alias", "version: &a 1\nextra: *a\n", "x.yaml:2: extra: YAML aliases are not supported here (write the value out)"},
		{
			"many at once",
			"version: one\nitem: []\nitems:\n  - name: a\n    pathes: [x]\n    settle: 10 minutes\n  - name: [b]\n    paths: x\n    flux:\n    name: c\n",
			strings.Join([]string{
				"x.yaml:1: version: cannot unmarshal !!str `one` into int",
				`x.yaml:2: item: unknown field (did you mean "items"?)`,
				`x.yaml:5: items[0].pathes: unknown field (did you mean "paths"?)`,
				`x.yaml:6: items[0].settle: "10 minutes" is not a duration; write it like 90s, 10m or 36h`,
				"x.yaml:7: items[1].name: expected text, found a list",
				`x.yaml:8: items[1].paths: expected a list, found "x"`,
				"x.yaml:9: items[1].flux: is empty; expected a mapping (remove the key or give it a value)",
				"x.yaml:10: items[1].name: is given twice, first on line 7",
			}, "\n"),
		},
		{"far from anything", "items:\n  - zzzzzz: 1\n", "x.yaml:2: items[0].zzzzzz: unknown field (known: flux, name, paths, settle)"},
		{"negative duration", "items:\n  - settle: -1s\n", "x.yaml:2: items[0].settle: -1s is negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f file
			_, ps := yamlfile.Decode("x.yaml", []byte(tt.in), &f)
			var got string
			if err := ps.Err(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemFindsTheLine(t *testing.T) {
	var f file
	doc, _ := yamlfile.Decode("x.yaml", []byte("version: 1\nitems:\n  - name: a\n    paths:\n      - b\n      - c\n"), &f)
	for _, tt := range []struct {
		path yamlfile.Path
		want string
	}{
		{yamlfile.Path{"items", 0, "paths", 1}, "x.yaml:6: items[0].paths[1]: bad"},
		{yamlfile.Path{"items", 0, "flux"}, "x.yaml:3: items[0].flux: bad"},
		{yamlfile.Path{"extra"}, "x.yaml:1: extra: bad"},
	} {
		if got := doc.Problem(tt.path, "bad", "").Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("version: 1\nitems:\n  - {name: a, paths: [b]}\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var v file
		doc, ps := yamlfile.Decode("x.yaml", in, &v)
		for _, p := range ps {
			if p.Message == "" || p.File != "x.yaml" {
				t.Errorf("problem without message or file: %+v", p)
			}
		}
		_ = doc.Problem(yamlfile.Path{"items", 3, "name"}, "bad", "")
	})
}
