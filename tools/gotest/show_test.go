package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

func TestShow(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/kinds.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	var shown strings.Builder
	c, err := show(&shown, strings.NewReader(files["events"]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files["shown"], shown.String()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(files["count"], c.String()+"\n"); diff != "" {
		t.Errorf("count (-want +got):\n%s", diff)
	}
}
