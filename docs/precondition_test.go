package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/render"
	"signalbox/internal/yamlfile"
)

var update = flag.Bool("update", false, "write the pages of docs/preconditions")

// TestPreconditionPages keeps the page of each kind of precondition equal to
// what the comments of its Go type say and what its example is evaluated to.
// "go test ./docs -run TestPreconditionPages -update" writes them.
func TestPreconditionPages(t *testing.T) {
	types := commentsOf(t, "../internal/precondition")
	index := map[string]string{}
	for f := range reflect.TypeFor[precondition.Kinds]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		index[name] = name + ".md"
		t.Run(name, func(t *testing.T) {
			example, ok := examples[name]
			if !ok {
				t.Fatalf("examples has none of %s", name)
			}
			golden(t, filepath.Join("preconditions", name+".md"), page(t, name, f.Type.Elem(), types, example))
		})
	}
	pages, err := filepath.Glob("preconditions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		if index[strings.TrimSuffix(filepath.Base(path), ".md")] == "" {
			t.Errorf("%s is of no kind", path)
		}
	}
}

func golden(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is stale; run: go test ./docs -run TestPreconditionPages -update\n(-want +got):\n%s", path, diff)
	}
}

// comments are those of the types of a package, and of their fields.
type comments struct {
	types  map[string]string
	fields map[string]map[string]string
}

func commentsOf(t *testing.T, dir string) comments {
	t.Helper()
	c := comments{types: map[string]string{}, fields: map[string]map[string]string{}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				c.add(spec.(*ast.TypeSpec), g.Doc)
			}
		}
	}
	return c
}

func (c comments) add(spec *ast.TypeSpec, doc *ast.CommentGroup) {
	name := spec.Name.Name
	c.types[name] = doc.Text()
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	c.fields[name] = map[string]string{}
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			c.fields[name][n.Name] = f.Doc.Text()
		}
	}
}

// example is a policy with one precondition, and what it is evaluated in.
type example struct {
	// given says in words what is true.
	given  string
	policy string
	input  func() policy.Input
}

func page(t *testing.T, name string, of reflect.Type, c comments, e example) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n<!-- Made from internal/precondition by a test in docs; edit it there. -->\n\n", name)
	b.WriteString(markdown(c.types[of.Name()], of.Name(), name))
	fmt.Fprintf(&b, "\n## Example\n\n```yaml\n%s```\n\n", e.policy)
	fmt.Fprintf(&b, "%s, `bot check --explain` says:\n\n```text\n%s```\n", e.given, evaluate(t, e))
	b.WriteString("\n## Fields\n\n")
	fields(&b, of, c, "")
	b.WriteString("\nEvery precondition also has a `name`, and says [which pull requests it is about](../policy.md#which-pull-requests-a-rule-is-about).\n")
	return b.String()
}

// fields writes a table of the fields of a type, with those of nested types.
func fields(b *strings.Builder, of reflect.Type, c comments, prefix string) {
	if prefix == "" {
		b.WriteString("| Field | Written as | |\n|---|---|---|\n")
	}
	for f := range of.Fields() {
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		text := strings.TrimSpace(markdown(c.fields[of.Name()][f.Name], f.Name, name))
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", "\\|")
		if strings.Contains(f.Tag.Get("jsonschema"), "required") {
			text = "**Required.** " + text
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", prefix+name, written(f), text)
		if inner := f.Type; inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct {
			fields(b, inner.Elem(), c, prefix+name+".")
		}
	}
}

// written says how the value of a field is written.
func written(f reflect.StructField) string {
	var words []string
	for o := range strings.SplitSeq(f.Tag.Get("jsonschema"), ",") {
		if word, ok := strings.CutPrefix(o, "enum="); ok {
			words = append(words, "`"+word+"`")
		}
	}
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[yamlfile.Duration]():
		return "time, such as `90s` or `36h`"
	case t == reflect.TypeFor[yamlfile.Strings]():
		return "text, or a list of texts"
	case len(words) > 0 && t.Kind() == reflect.Slice:
		return "list of " + strings.Join(words, ", ")
	case len(words) > 0:
		return strings.Join(words, ", ")
	case t.Kind() == reflect.Slice:
		return "list of texts"
	case t.Kind() == reflect.Bool:
		return "`true` or `false`"
	case t.Kind() == reflect.Int:
		return "number"
	case t.Kind() == reflect.Struct:
		return "mapping"
	default:
		return "text"
	}
}

var docLink = regexp.MustCompile(`\[[A-Z]\w*\.([A-Z]\w*)\]`)

// markdown turns a comment of Go into Markdown, with the name that stands in the
// file in the place of Go's.
func markdown(text, goName, name string) string {
	text = docLink.ReplaceAllStringFunc(text, func(m string) string {
		return "\x01" + lowerFirst(docLink.FindStringSubmatch(m)[1]) + "\x01"
	})
	for _, verb := range []string{"is", "are"} {
		if rest, ok := strings.CutPrefix(text, goName+" "+verb+" "); ok {
			text = upperFirst(rest)
		}
	}
	if rest, ok := strings.CutPrefix(text, goName+" "); ok {
		text = "\x01" + name + "\x01 " + rest
	}
	var p comment.Parser
	out := string((&comment.Printer{}).Markdown(p.Parse(text)))
	return strings.ReplaceAll(out, "\x01", "`")
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// evaluate returns what is said of the one precondition of an example.
func evaluate(t *testing.T, e example) string {
	t.Helper()
	pol, problems := policy.Load(policy.Path, []byte(e.policy))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	in := e.input()
	in.Repository = pol
	v := policy.Evaluate(in)
	if len(v.Results) != 1 || v.Results[0].State == policy.NotApplicable {
		t.Fatalf("the example has %d results, want one that applies", len(v.Results))
	}
	v.Policies = nil
	tree := render.Explain(&v, false)
	_, result, ok := strings.Cut(tree, "\n\n")
	if !ok {
		t.Fatalf("no tree in\n%s", tree)
	}
	return result
}

// TestEveryKindHasAnExample: no example is of a kind that there is not.
func TestEveryKindHasAnExample(t *testing.T) {
	for name := range examples {
		if !slices.Contains(precondition.Names(), name) {
			t.Errorf("there is no kind %s", name)
		}
	}
}
