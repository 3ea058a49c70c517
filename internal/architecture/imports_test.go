// Package architecture keeps the packages in the order that docs/architecture.md
// describes: the table there is read by this test, so that the two cannot differ.
package architecture

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const (
	module   = "signalbox"
	document = "docs/architecture.md"
	heading  = "## Packages"
)

// row is a package of the table. A package below a row that ends in /... is of
// that row.
type row struct {
	name string
	// kind is the word in italics before the names: domain, stand-in, test or none.
	kind string
	may  []string
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	word   = regexp.MustCompile(`\*([a-z-]+):\*`)
)

// readTable returns the rows under the heading by the name of their package.
// The words "domain packages" and "stand-ins" in the last column are expanded;
// "everything" stays.
func readTable(text string) (map[string]row, error) {
	_, section, ok := strings.Cut(text, heading+"\n")
	if !ok {
		return nil, fmt.Errorf("no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	table := map[string]row{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		r := row{may: names(cells[3])}
		for _, w := range []string{"everything", "domain packages", "stand-ins"} {
			if strings.Contains(cells[3], w) {
				r.may = append(r.may, w)
			}
		}
		if m := word.FindStringSubmatch(cells[1]); m != nil {
			r.kind = m[1]
		}
		if len(r.may) == 0 && strings.TrimSpace(cells[3]) != "no other" {
			return nil, fmt.Errorf("nothing understood of %q; write packages, \"domain packages\", \"stand-ins\", \"everything\" or \"no other\"", cells[3])
		}
		for _, name := range names(cells[1]) {
			if _, twice := table[name]; twice {
				return nil, fmt.Errorf("%s has two rows", name)
			}
			r.name = name
			table[name] = r
		}
	}
	if len(table) == 0 {
		return nil, fmt.Errorf("no table under %q", heading)
	}
	return table, nil
}

func names(cell string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// find returns the row of a package: its own, or the nearest one above it that
// ends in /... .
func find(table map[string]row, name string) (row, bool) {
	if r, ok := table[name]; ok {
		return r, true
	}
	for dir := name; dir != "."; dir = filepath.Dir(dir) {
		if r, ok := table[dir+"/..."]; ok {
			return r, true
		}
	}
	return row{}, false
}

// allowed reports whether a package of one row may import a package of another.
// A test may also use the domain, the stand-ins and what is for tests only.
func allowed(from, to row, test bool) bool {
	if from.name == to.name {
		return true
	}
	words := map[string]string{"domain": "domain packages", "stand-in": "stand-ins"}
	if test && (to.kind == "domain" || to.kind == "stand-in" || to.kind == "test") {
		return true
	}
	if to.kind == "test" && from.kind != "test" {
		return false
	}
	return slices.ContainsFunc(from.may, func(m string) bool {
		return m == to.name || m == "everything" || m == words[to.kind]
	})
}

// edge is an import of one package of the module by another.
type edge struct {
	from, to string
	test     bool
}

// edges returns the packages of the module and every import among them, with
// the tag of the end-to-end tests set.
func edges(t *testing.T, root string) (found []string, imports []edge) {
	t.Helper()
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedForTest, Dir: root,
		Tests: true, BuildFlags: []string{"-tags=e2e"},
	}, module+"/...")
	if err != nil {
		t.Fatal(err)
	}
	seenPackage, seenEdge := map[string]bool{}, map[edge]bool{}
	for _, p := range all {
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue // The generated main package of a test.
		}
		for _, e := range p.Errors {
			t.Fatalf("load %s: %v", p.PkgPath, e)
		}
		from := strings.TrimPrefix(strings.TrimSuffix(p.PkgPath, "_test"), module+"/")
		seenPackage[from] = true
		for path := range p.Imports {
			if to, ok := strings.CutPrefix(path, module+"/"); ok {
				seenEdge[edge{from, to, p.ForTest != ""}] = true
			}
		}
	}
	// What a package imports, its test variant imports too: told once is enough.
	maps.DeleteFunc(seenEdge, func(e edge, _ bool) bool { return e.test && seenEdge[edge{e.from, e.to, false}] })
	return slices.Sorted(maps.Keys(seenPackage)), slices.SortedFunc(maps.Keys(seenEdge), func(a, b edge) int {
		return strings.Compare(a.from+" "+a.to, b.from+" "+b.to)
	})
}

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	table, err := readTable(string(text))
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	used := map[string]bool{}
	found, imports := edges(t, root)
	for _, name := range found {
		r, ok := find(table, name)
		if !ok {
			t.Errorf("package %s has no row in %s; a new package says there what it is for and what it may import", name, document)
		}
		used[r.name] = true
	}
	for name := range table {
		if !used[name] {
			t.Errorf("%s has a row for %s, which does not exist", document, name)
		}
	}
	for _, e := range imports {
		from, fromOK := find(table, e.from)
		to, toOK := find(table, e.to)
		if !fromOK || !toOK || allowed(from, to, e.test) {
			continue
		}
		who := e.from
		if e.test {
			who = "a test of " + who
		}
		t.Errorf("%s imports %s; %s lets it import only %v", who, e.to, document, from.may)
	}
}

func TestRules(t *testing.T) {
	table, err := readTable(heading + `

| Package | Responsibility | May import |
|---|---|---|
| ` + "`cmd/bot`" + ` | wiring | everything |
| ` + "`internal/handlers`" + ` | what to do | domain packages, ` + "`internal/render`" + ` |
| ` + "`internal/gitea`, `internal/kube`" + ` | adapters | domain packages |
| ` + "`internal/render`" + ` | for people | domain packages |
| *domain:* ` + "`internal/policy`" + ` | rules | ` + "`internal/pull`" + ` |
| *domain:* ` + "`internal/pull`" + ` | values | no other |
| *stand-in:* ` + "`internal/gitea/giteatest/...`" + ` | for tests | domain packages, ` + "`internal/gitea`" + ` |
| ` + "`internal/demo`" + ` | the demo | domain packages, stand-ins |
| *test:* ` + "`test/...`" + ` | for tests | everything |

## Another section

| ` + "`not/a/row`" + ` | of the table | everything |
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		from, to string
		test     bool
		want     bool
	}{
		{"cmd/bot", "internal/kube", false, true},
		{"cmd/bot", "test/e2e", false, false},
		{"internal/handlers", "internal/render", false, true},
		{"internal/handlers", "internal/pull", false, true},
		{"internal/handlers", "internal/gitea", false, false},
		{"internal/gitea", "internal/pull", false, true},
		{"internal/gitea", "internal/kube", false, false},
		{"internal/gitea", "internal/kube", true, false},
		{"internal/gitea", "internal/handlers", false, false},
		{"internal/gitea", "internal/gitea/giteatest/conformance", false, false},
		{"internal/gitea", "internal/gitea/giteatest/conformance", true, true},
		{"internal/kube", "test/e2e", true, true},
		{"internal/render", "internal/handlers", false, false},
		{"internal/policy", "internal/pull", false, true},
		{"internal/policy", "internal/render", false, false},
		{"internal/policy", "internal/render", true, false},
		{"internal/pull", "internal/policy", false, false},
		{"internal/pull", "internal/policy", true, true},
		{"internal/gitea/giteatest/conformance", "internal/gitea/giteatest", false, true},
		{"internal/demo", "internal/gitea/giteatest", false, true},
		{"internal/demo", "internal/gitea", false, false},
		{"test/e2e", "internal/kube", false, true},
	} {
		from, ok := find(table, tc.from)
		if !ok {
			t.Fatalf("no row for %s", tc.from)
		}
		to, ok := find(table, tc.to)
		if !ok {
			t.Fatalf("no row for %s", tc.to)
		}
		if got := allowed(from, to, tc.test); got != tc.want {
			t.Errorf("%s imports %s (in a test: %v): allowed is %v, want %v", tc.from, tc.to, tc.test, got, tc.want)
		}
	}
	for _, name := range []string{"not/a/row", "internal/giteatest", "internal"} {
		if r, ok := find(table, name); ok {
			t.Errorf("%s has the row %v; want none", name, r)
		}
	}
}
