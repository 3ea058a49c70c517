package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/decision"
	"signalbox/internal/events"
	"signalbox/internal/pull"
)

var (
	auditNow   = time.Date(2026, 9, 7, 12, 0, 0, 0, time.UTC)
	auditAlice = pull.Person{ID: 1, Login: "alice"}
	auditHome  = pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
)

// auditSample is a small ledger: one that is older, one of another repository,
// one of a person who was renamed, one of a repository that was renamed.
func auditSample() decision.Ledger {
	entry := func(seq uint64, kind decision.Kind, edit func(*decision.Entry)) decision.Entry {
		e := decision.Entry{
			ID: fmt.Sprintf("comment/%d/0", 100+seq), Kind: kind, By: auditAlice, Place: "comment", Repo: auditHome, Number: 12,
			Base: "main", Head: "0123456789abcdef0123456789abcdef01234567", At: auditNow.Add(time.Duration(seq) * time.Minute), Seq: seq,
		}
		edit(&e)
		return e
	}
	return decision.Ledger{
		entry(1, decision.Approve, func(e *decision.Entry) { e.At = auditNow.AddDate(0, 0, -10) }),
		entry(2, decision.Hold, func(e *decision.Entry) {
			e.Repo = pull.Repo{ID: 8, Owner: "ops", Name: "other"}
			e.Reason = "wait\n\x1b[31m\tfor it"
		}),
		entry(3, decision.Override, func(e *decision.Entry) {
			e.By.Login, e.Reason, e.Until, e.Passes = "alice-admin", "=HYPERLINK(1)", auditNow.Add(4*time.Hour), []string{"precondition: apps", "approval: owners"}
		}),
		entry(4, decision.Refused, func(e *decision.Entry) {
			e.By, e.Repo.Name, e.Number = pull.Person{ID: 2, Login: "mallory"}, "gitops", 13
			e.Command, e.Reason = "/approve", "mallory is not an approver"
		}),
	}
}

func auditIDs(l decision.Ledger) string {
	var out []string
	for _, e := range l {
		out = append(out, fmt.Sprint(e.Seq))
	}
	return strings.Join(out, " ")
}

func TestAuditFilter(t *testing.T) {
	tests := []struct {
		name  string
		flags auditFlags
		args  []string
		want  string
	}{
		{"everything", auditFlags{}, nil, "1 2 3 4"},
		{"a repository by its old name", auditFlags{}, []string{"OPS/home-gitops"}, "1 3 4"},
		{"a repository by its new name", auditFlags{}, []string{"ops/gitops"}, "1 3 4"},
		{"a pull request", auditFlags{}, []string{"ops/home-gitops#12"}, "1 3"},
		{"a person by an old name", auditFlags{person: "@Alice-Admin"}, nil, "1 2 3"},
		{"a person by id", auditFlags{person: "2"}, nil, "4"},
		{"nobody", auditFlags{person: "bob"}, nil, ""},
		{"kinds", auditFlags{kinds: []string{"hold", "override"}}, nil, "2 3"},
		{"since an age", auditFlags{since: "7d"}, nil, "2 3 4"},
		{"since a time", auditFlags{since: "2026-09-07T12:03:00Z"}, nil, "3 4"},
		{"until a time, which is not in it", auditFlags{until: "2026-09-07T12:03:00Z"}, nil, "1 2"},
		{"a day counts whole", auditFlags{since: "2026-09-07", until: "2026-09-07"}, nil, "2 3 4"},
		{"the last", auditFlags{last: 1, kinds: []string{"hold", "override"}}, nil, "3"},
		{"together", auditFlags{person: "alice", since: "36h"}, []string{"ops/home-gitops#12"}, "3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := newAuditFilter(tt.flags, tt.args, auditNow.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if got := auditIDs(f.apply(auditSample())); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for name, bad := range map[string]struct {
		flags auditFlags
		args  []string
		want  string
	}{
		"kind":       {auditFlags{kinds: []string{"overide"}}, nil, `did you mean "override"`},
		"since":      {auditFlags{since: "yesterday"}, nil, "--since"},
		"until":      {auditFlags{until: "-3d"}, nil, "--until"},
		"last":       {auditFlags{last: -1}, nil, "negative"},
		"repository": {auditFlags{}, []string{"home-gitops"}, "OWNER/REPO"},
		"number":     {auditFlags{}, []string{"ops/home-gitops#x"}, "OWNER/REPO#NUMBER"},
	} {
		if _, err := newAuditFilter(bad.flags, bad.args, auditNow); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, bad.want)
		}
	}
}

func TestAuditTable(t *testing.T) {
	var out bytes.Buffer
	if err := auditTable(&out, auditSample()[1:]); err != nil {
		t.Fatal(err)
	}
	want := `SEQ  TIME                  WHO          WHAT      PULL REQUEST        BASE  HEAD        WHERE    UNTIL                 ID               COMMAND   REASON
2    2026-09-07T12:02:00Z  alice        hold      ops/other#12        main  0123456789  comment                        comment/102/0              wait [31m for it
3    2026-09-07T12:03:00Z  alice-admin  override  ops/home-gitops#12  main  0123456789  comment  2026-09-07T16:00:00Z  comment/103/0              =HYPERLINK(1)
4    2026-09-07T12:04:00Z  mallory      refused   ops/gitops#13       main  0123456789  comment                        comment/104/0    /approve  mallory is not an approver
`
	got := out.String()
	// How far a last column is padded is not what this is about.
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(got)); diff != "" || strings.Contains(got, "\x1b") {
		t.Errorf("(-want +got):\n%s\n%s", diff, got)
	}
	out.Reset()
	if err := auditTable(&out, auditSample()[:1]); err != nil || strings.Contains(out.String(), "UNTIL") || strings.Contains(out.String(), "COMMAND") {
		t.Errorf("columns that say nothing are there: %v\n%s", err, &out)
	}
}

func TestAuditCSVIsInert(t *testing.T) {
	var out bytes.Buffer
	if err := auditCSV(&out, auditSample()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 5 || rows[3][14] != "'=HYPERLINK(1)" || rows[3][15] != "2026-09-07T16:00:00Z" || rows[3][16] != "precondition: apps; approval: owners" || rows[2][14] != "wait\n\x1b[31m\tfor it" {
		t.Errorf("rows %q", rows)
	}
}

func TestAuditJSONL(t *testing.T) {
	var out bytes.Buffer
	if err := auditJSONL(&out, auditSample()); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(&out)
	for _, want := range auditSample() {
		var got decision.Line
		if err := lines.Decode(&got); err != nil {
			t.Fatal(err)
		}
		got.Entry.Seq = got.Seq
		if diff := cmp.Diff(want, got.Entry); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// decide appends the sample to a ledger.
func decide(t *testing.T, ledger *bus.Ledger) {
	t.Helper()
	for _, e := range auditSample() {
		if _, err := ledger.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAuditOfARunningSignalbox asks over the socket, and after the end of
// signalbox opens the folder.
func TestAuditOfARunningSignalbox(t *testing.T) {
	w := newWorld(t, worldOptions{})
	c := bus.Config{Embedded: bus.Embedded{Dir: w.dir}}
	if _, err := readLedger(t.Context(), c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first start: %v", err)
	}
	w.start(worldOptions{})
	decide(t, w.app.ledger)
	w.eventually("the socket answers", func() string {
		got, err := newAdminClient(w.dir).decisions(t.Context())
		if err != nil || auditIDs(got) != "1 2 3 4" {
			return fmt.Sprint(auditIDs(got), err)
		}
		return ""
	})
	for path, want := range map[string]fs.FileMode{adminPath(w.dir): 0o600 | fs.ModeSocket, filepath.Dir(adminPath(w.dir)): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	client := newAdminClient(w.dir)
	about, err := client.about(t.Context())
	if err != nil || about.Version != versionText() || about.Unhealthy != "" || time.Since(about.Started) > time.Minute {
		t.Errorf("about %+v, %v", about, err)
	}
	dead, err := client.dead(t.Context())
	if err != nil || dead.Total != 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
	before, err := client.lastPush(t.Context(), w.repo.ID)
	if err != nil {
		t.Error(err)
	}
	e, err := events.New("gitea/x", "gitea", time.Now(), events.BranchPushed{Repo: events.Repo{ID: w.repo.ID, Owner: owner, Name: repoName}, Branch: "other"})
	w.must(err)
	w.must(w.app.bus.Publish(t.Context(), e))
	if after, err := client.lastPush(t.Context(), w.repo.ID); err != nil || after <= before {
		t.Errorf("the last push was at %d and is at %d, %v", before, after, err)
	}

	w.stop()
	if _, err := client.about(t.Context()); !noSocket(err) {
		t.Errorf("after the end the socket answers: %v", err)
	}
	got, err := readLedger(t.Context(), c)
	if err != nil || auditIDs(got) != "1 2 3 4" {
		t.Errorf("from the folder: %s, %v", auditIDs(got), err)
	}
	w.start(worldOptions{})
	w.eventually("the socket answers again", func() string {
		if _, err := client.about(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestAuditWithoutASocket(t *testing.T) {
	dir := t.TempDir()
	bustest.Open(t, bus.Config{Embedded: bus.Embedded{Dir: dir}})
	_, err := readLedger(t.Context(), bus.Config{Embedded: bus.Embedded{Dir: dir}})
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v", err)
	}
}

func TestAdminSocketThatCannotBe(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 110))
	if _, err := listenAdmin(t.Context(), deep); err == nil || !strings.Contains(err.Error(), "shorter folder") {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, adminFolder)); err != nil {
		t.Fatal(err)
	}
	if _, err := listenAdmin(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("error %v", err)
	}
}

func TestAuditCommand(t *testing.T) {
	dir := t.TempDir()
	b := bustest.Open(t, bus.Config{Embedded: bus.Embedded{Dir: dir}})
	ledger, err := bus.OpenLedger(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	decide(t, ledger)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := fmt.Sprintf("gitea: {url: \"https://gitea.example.org/\", webhook: {url: \"https://signalbox.example.org/\"}}\nrepositories: [{name: ops/home-gitops}]\nbus: {embedded: {dir: %s}}\n", dir)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, string, error) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"audit", "--config", path}, args...))
		root.SetOut(&stdout)
		root.SetErr(&stderr)
		err := root.ExecuteContext(t.Context())
		return stdout.String(), stderr.String(), err
	}
	out, _, err := run("ops/home-gitops#12", "--kind", "override", "-o", "csv")
	if err != nil || strings.Count(out, "\n") != 2 || !strings.Contains(out, "'=HYPERLINK(1)") {
		t.Errorf("%v\n%s", err, out)
	}
	out, errOut, err := run("--person", "bob")
	if err != nil || out != "" || !strings.Contains(errOut, "No entries of 4 match.") {
		t.Errorf("%v\n%s\n%s", err, out, errOut)
	}
	if _, _, err := run("-o", "xml"); err == nil || !strings.Contains(err.Error(), "table, jsonl or csv") {
		t.Errorf("error %v", err)
	}
	if !slices.Contains(texts(decision.Kinds()), "override") {
		t.Error("the kinds of the help lack override")
	}
}
