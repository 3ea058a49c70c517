package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const output = `goos: linux
goarch: amd64
pkg: signalbox/cmd/bot
cpu: Some Processor
BenchmarkFactWakes/pulls=20-2         	  244698	      4529 ns/op	    1234 B/op	      12 allocs/op
BenchmarkFactWakes/pulls=2000-2       	  244698	    340000000 ns/op
BenchmarkEval/a||b-2   	       6	       100 ns/op
BenchmarkLarge-2   	       1	7828317148 ns/op	         0.5946 all-s	      4860 calls/h	         0.8020 calls/poll
PASS
ok  	signalbox/cmd/bot	8.558s
`

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(file, []byte("# Speed\n\n"+beginMark+"old\n"+endMark+"\nThe end.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(file, []byte(output), "a machine"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Speed\n\n" + beginMark + `
Measured on a machine.

| Benchmark | Package | One operation | Beside that |
|---|---|---|---|
| ` + "`FactWakes/pulls=20` | `cmd/bot`" + ` | 4.53 µs | 1234 B/op, 12 allocs/op |
| ` + "`FactWakes/pulls=2000` | `cmd/bot`" + ` | 340 ms |  |
| ` + "`Eval/a\\|\\|b` | `cmd/bot`" + ` | 100 ns |  |
| ` + "`Large` | `cmd/bot`" + ` | 7.83 s | 0.595 all-s, 4860 calls/h, 0.802 calls/poll |

` + endMark + "\nThe end.\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := write(file, []byte("PASS\n"), "a machine"); err == nil || !strings.Contains(err.Error(), "no benchmark ran") {
		t.Errorf("without a benchmark: %v", err)
	}
	if err := os.WriteFile(file, []byte("# Speed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(file, []byte(output), "a machine"); err == nil || !strings.Contains(err.Error(), "lacks the marks") {
		t.Errorf("without the marks: %v", err)
	}
}
