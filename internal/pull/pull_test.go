package pull_test

import (
	"strings"
	"testing"

	"signalbox/internal/pull"
)

// patch makes a patch of one file with one hunk.
func patch(index, position, body string) string {
	return "diff --git a/apps/x.yaml b/apps/x.yaml\nindex " + index + " 100644\n--- a/apps/x.yaml\n+++ b/apps/x.yaml\n@@ " + position + " @@ spec:\n" + body
}

const hunk = " a: 1\n-b: 2\n+b: 3\n c: 4\n"

func TestDiffSame(t *testing.T) {
	base := patch("1111111..2222222", "-1,3 +1,3", hunk)
	binary := "diff --git a/logo.png b/logo.png\nindex 1111111..2222222 100644\nBinary files a/logo.png and b/logo.png differ\n"
	rename := "diff --git a/a.yaml b/b.yaml\nsimilarity index 100%\nrename from a.yaml\nrename to b.yaml\n"
	mode := "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
	tests := []struct {
		name string
		a, b string
		want bool
	}{
		{"the same patch", base, base, true},
		{"longer abbreviations", base, patch("1111111a..2222222b", "-1,3 +1,3", hunk), true},
		{"rebased: base content and position differ", base, patch("3333333..4444444", "-9,3 +11,3", hunk), true},
		{"moved to a look-alike place in the same base", base, patch("1111111..5555555", "-9,3 +9,3", hunk), false},
		{"a line sneaked in", base, patch("3333333..4444444", "-1,3 +1,4", " a: 1\n-b: 2\n+b: 3\n+d: 5\n c: 4\n"), false},
		{"only white space differs", base, patch("3333333..4444444", "-1,3 +1,3", " a: 1\n-b: 2\n+ b: 3\n c: 4\n"), false},
		{"only a carriage return differs", base, patch("3333333..4444444", "-1,3 +1,3", " a: 1\n-b: 2\n+b: 3\r\n c: 4\n"), false},
		{"another mode", base, strings.Replace(base, "100644", "100755", 1), false},
		{"another name", base, strings.ReplaceAll(base, "x.yaml", "y.yaml"), false},
		{"a file more", base, base + mode, false},
		{"no newline at the end", base, base + "\\ No newline at end of file\n", false},
		{"content that looks like a header", patch("1111111..2222222", "-1,1 +1,1", "--- a/evil\n+++ b/evil\n"), patch("3333333..4444444", "-1,1 +1,1", "--- a/evil\n+++ b/evil\n"), true},
		{"binary, the same", binary, binary, true},
		{"binary, the base differs", binary, strings.Replace(binary, "1111111", "3333333", 1), false},
		{"binary, another content", binary, strings.Replace(binary, "2222222", "3333333", 1), false},
		{"pure rename", rename, rename, true},
		{"rename with another likeness", rename, strings.Replace(rename, "100%", "90%", 1), true},
		{"mode only", mode, mode, true},
		{"empty identifies nothing", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := pull.ReadDiff(strings.NewReader(tt.a))
			if err != nil {
				t.Fatal(err)
			}
			b, err := pull.ReadDiff(strings.NewReader(tt.b))
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Same(b); got != tt.want {
				t.Errorf("Same = %v, want %v\n%+v\n%+v", got, tt.want, a, b)
			}
			if a.Same(b) != b.Same(a) {
				t.Error("Same is not symmetric")
			}
		})
	}
}

func TestReadDiffRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"an HTML page":     "<!DOCTYPE html>\n",
		"a bad hunk":       patch("1..2", "-1,x +1", hunk),
		"a negative range": patch("1..2", "-1,-3 +1,3", hunk),
		"cut short":        patch("1..2", "-1,3 +1,3", " a: 1\n-b: 2\n"),
		"noise in a hunk":  patch("1..2", "-1,3 +1,3", " a: 1\n!b\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if d, err := pull.ReadDiff(strings.NewReader(in)); err == nil {
				t.Errorf("accepted as %+v", d)
			}
		})
	}
}

func FuzzReadDiff(f *testing.F) {
	f.Add(patch("1111111..2222222", "-1,3 +1,3", hunk))
	f.Add("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n")
	f.Fuzz(func(t *testing.T, in string) {
		d, err := pull.ReadDiff(strings.NewReader(in))
		if err == nil && len(d.Files) > 0 && !d.Same(d) {
			t.Errorf("%q: a diff differs from itself: %+v", in, d)
		}
	})
}

func TestPersonIs(t *testing.T) {
	tests := []struct {
		name string
		a, b pull.Person
		want bool
	}{
		{"by id, after a rename", pull.Person{ID: 1, Login: "alice"}, pull.Person{ID: 1, Login: "alicia"}, true},
		{"another account took the name", pull.Person{ID: 1, Login: "alice"}, pull.Person{ID: 2, Login: "alice"}, false},
		{"by login in another case", pull.Person{Login: "Alice"}, pull.Person{ID: 1, Login: "alice"}, true},
		{"two deleted accounts", pull.Person{}, pull.Person{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.a.Is(tt.b); got != tt.want {
				t.Errorf("Is = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestParseRef(t *testing.T) {
	for in, want := range map[string]pull.Ref{"7.12": {RepoID: 7, Number: 12}, "": {}, "7": {}, "7.": {}, ".12": {}, "0.12": {}, "7.0": {}, "-7.12": {}, "7.12.3": {}, "a.b": {}} {
		got, ok := pull.ParseRef(in)
		if got != want || ok != (want != pull.Ref{}) {
			t.Errorf("%q: %+v, %t, want %+v", in, got, ok, want)
		}
		if ok && got.String() != in {
			t.Errorf("%q is written %q", in, got)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"7.12", "7.012", "+7.1", "-7.1", "7.", "7.1.2", "9223372036854775808.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, ok := pull.ParseRef(s)
		if !ok {
			if ref != (pull.Ref{}) {
				t.Errorf("%q is refused with %v", s, ref)
			}
			return
		}
		if ref.RepoID <= 0 || ref.Number <= 0 || ref.String() != s {
			t.Errorf("%q is %+v, which is written %q", s, ref, ref)
		}
	})
}
