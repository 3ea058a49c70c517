package policy

import (
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

func TestGlob(t *testing.T) {
	tests := []struct {
		glob, name string
		want       bool
	}{
		{"clusters/*", "clusters/a.yaml", true},
		{"clusters/*", "clusters/x/a.yaml", false},
		{"clusters/**", "clusters/a.yaml", true},
		{"clusters/**", "clusters/x/a.yaml", true},
		{"clusters/**", "clusters2/a.yaml", false},
		{"clusters/**", "clusters", true},
		{"**", "a b/c#d%e", true},
		{"**/*.yaml", "a.yaml", true},
		{"a b/*", `a b/"quoted".yaml`, true},
		{"größe/*", "größe/ü", true},
		{"größe/*", "große/ü", false},
		{"a/*", "a/line\nbreak", true},
		{"a/100%#1.yaml", "a/100%#1.yaml", true},
		{"{a,b}/*.yaml", "b/x.yaml", true},
		{"platform*/**", "platform-config/x/y.yaml", true},
		{"renovate.json", "renovate.json", true},
		{"renovate.json", "x/renovate.json", false},
	}
	for _, tt := range tests {
		if got := compileGlob(tt.glob).match(tt.name); got != tt.want {
			t.Errorf("glob %q matches %q = %v, want %v", tt.glob, tt.name, got, tt.want)
		}
	}
}

// FuzzGlob holds the short cut against the library.
func FuzzGlob(f *testing.F) {
	f.Add("clusters/**", "clusters")
	f.Add("a/**/b", "a/b")
	f.Add(`a\*/[x-z]{c,}d`, "a*/xcd")
	f.Add("a//**", "a")
	f.Fuzz(func(t *testing.T, glob, name string) {
		// Globs come from YAML and names from JSON: both are valid UTF-8.
		if !doublestar.ValidatePattern(glob) || !utf8.ValidString(glob) || !utf8.ValidString(name) {
			return
		}
		want, err := doublestar.Match(glob, name)
		if got := compileGlob(glob).match(name); got != (want && err == nil) {
			t.Errorf("glob %q matches %q = %v, doublestar says %v, %v", glob, name, got, want, err)
		}
	})
}
