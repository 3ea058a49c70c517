//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// oddNames are what a file may be called.
var oddNames = []string{
	"odd/two words.yaml",
	"odd/ at both ends ",
	`odd/it's "quoted".yaml`,
	"odd/grüße-日本.yaml",
	"odd/#hash.yaml",
	"odd/100%.yaml",
	"odd/100%25.yaml",
	`odd/back\slash.yaml`,
	"odd/new\nline.yaml",
	"odd/tab\there.yaml",
	"odd/[a-z]{b,c}?*.yaml",
	"odd/a:b;c&d=e+f|g<h>.yaml",
	"odd/-dash.yaml",
	"odd/=> b.yaml",
	"odd/.hidden",
	"odd/\x01\x7f.yaml",
}

// likeOdd are names that a careless reading takes for one of the odd ones.
var likeOdd = []string{
	"odd/two%20words.yaml", "odd/two+words.yaml", "odd/at both ends", "odd/its quoted.yaml", "odd/hash.yaml",
	"odd/100.yaml", "odd/100%2525.yaml", "odd/backslash.yaml", "odd/back/slash.yaml", "odd/newline.yaml",
	`odd/new\nline.yaml`, "odd/tab here.yaml", "odd/ab.yaml", "odd/a:b;c&amp;d=e+f|g&lt;h&gt;.yaml", "odd/dash.yaml", "odd/b.yaml",
}

// literally is the glob that matches one name.
func literally(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(name)
}

func pathPolicy() string {
	var b strings.Builder
	b.WriteString("version: 1\napprovals:\n")
	// The escapes of Go are escapes of YAML too.
	rule := func(name, glob string) {
		fmt.Fprintf(&b, "  - name: %s\n    paths: [%q]\n    from: {users: [alice]}\n", name, glob)
	}
	rule("production", "clusters/prod/**")
	rule("top of flat", "flat/*")
	rule("all of deep", "deep/**")
	rule("last of all", "zz/**")
	for i, name := range oddNames {
		rule(fmt.Sprintf("odd-%02d", i), literally(name))
	}
	return b.String()
}

// TestSensitivePaths: what a change touches is read completely and taken as it
// is.
func TestSensitivePaths(t *testing.T) {
	t.Parallel()
	st := plantStage(t, seed.Options{Policy: pathPolicy()})
	st.push(t, "files", "origin/main", write(
		"clusters/prod/run.sh", "#!/bin/sh\n",
		"clusters/prod/logo.bin", "\x00\x01\x02",
		"docs/guide.md", "Read this.\n",
	))
	if err := st.clone.Push(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	st.bot = newBot(t, st.repo, settings{})
	st.bot.start()

	many := func(n int) realserver.Change {
		c := realserver.Change{Message: fmt.Sprintf("Change %d files", n), Write: map[string]string{}}
		for i := range n - 1 {
			c.Write[fmt.Sprintf("many/%03d.txt", i)] = "a\n"
		}
		c.Write["zz/last.yaml"] = "a: 1\n"
		return c
	}
	odd, plain := write(oddNames[0], "a\n"), write(likeOdd[0], "a\n")
	for _, name := range oddNames {
		odd.Write[name] = "a\n"
	}
	for _, name := range likeOdd {
		plain.Write[name] = "a\n"
	}
	remove := func(path string) realserver.Change {
		return realserver.Change{Message: "Remove " + path, Remove: []string{path}}
	}
	rename := func(from, to string) realserver.Change {
		return realserver.Change{Message: "Move " + from, Rename: map[string]string{from: to}}
	}
	tests := []struct {
		name   string
		change realserver.Change
		// rules are those that must ask for an approval.
		rules []string
	}{
		{"nothing sensitive", write("docs/guide.md", "Read that.\n"), nil},
		{"moved out", rename("clusters/prod/run.sh", "attic/run.sh"), []string{"production"}},
		{"moved in", rename("docs/guide.md", "clusters/prod/guide.md"), []string{"production"}},
		{"deleted", remove("clusters/prod/run.sh"), []string{"production"}},
		{"mode only", realserver.Change{Message: "Run it", Mode: map[string]fs.FileMode{"clusters/prod/run.sh": 0o755}}, []string{"production"}},
		{"binary", write("clusters/prod/logo.bin", "\x00\x01\x03"), []string{"production"}},
		{"binary added", write("clusters/prod/icon.bin", "\x00\x07"), []string{"production"}},
		{"empty file added", write("clusters/prod/.keep", ""), []string{"production"}},
		{"one level down", write("flat/x/a.yaml", "a\n", "deep/x/y/a.yaml", "a\n"), []string{"all of deep"}},
		{"at the top", write("flat/a.yaml", "a\n", "deep/a.yaml", "a\n"), []string{"top of flat", "all of deep"}},
		{"the last of 31", many(31), []string{"last of all"}},
		{"the last of 51", many(51), []string{"last of all"}},
		{"the last of 120", many(120), []string{"last of all"}},
		{"odd names", odd, oddRules()},
		{"names like them", plain, nil},
	}
	// All at once: what takes long is the wait for each.
	branches := make([]string, len(tests))
	for i, test := range tests {
		branches[i] = fmt.Sprintf("path-%d", i)
		st.commit(t, branches[i], "origin/main", test.change)
	}
	if _, err := st.clone.Git(t.Context(), append([]string{"push", "--quiet", "origin"}, branches...)...); err != nil {
		t.Fatal(err)
	}
	pages := make([]*page, len(tests))
	for i, branch := range branches {
		pages[i] = st.request(t, branch, "main")
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			approval, texts := "success", []string{"Clear to merge"}
			if len(test.rules) > 0 {
				approval, texts = "pending", nil
			}
			for _, rule := range test.rules {
				texts = append(texts, "| ❌ | **"+rule+"**")
			}
			pages[i].t = t
			s, _ := pages[i].shows(patience, "success", approval, texts...)
			if open := strings.Count(s.comment(), "| ❌ |"); open != len(test.rules) {
				t.Errorf("%d rules ask for an approval, want %q:\n%s", open, test.rules, s)
			}
		})
	}
}

func oddRules() []string {
	rules := make([]string, len(oddNames))
	for i := range oddNames {
		rules[i] = fmt.Sprintf("odd-%02d", i)
	}
	return rules
}
