package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/backup"
	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/digest"
	"signalbox/internal/events"
	"signalbox/internal/handlers"
	"signalbox/internal/policy"
	"signalbox/internal/schedule"
)

// settingsFor writes a configuration whose store is in a folder.
func settingsFor(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "signalbox.yaml")
	text := fmt.Sprintf("gitea: {url: \"https://gitea.example.org/\", webhook: {url: \"https://signalbox.example.org/\"}}\nrepositories: [{name: ops/home-gitops}]\nbus: {embedded: {dir: %q}}\n", dir)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bot runs a command of the program.
func bot(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errOut)
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// gunzip returns the lines of a backup.
func gunzip(t testing.TB, path string) string {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// openAll starts signalbox with a chat and a digest.
func (l *lounge) openAll(told chat.Room) {
	l.t.Helper()
	daily, err := schedule.Parse("@daily", "UTC")
	l.must(err)
	l.open2(func(c *config.Config) {
		c.Digests = []config.Digest{{Name: "morning", Times: daily, About: config.About{Sections: []digest.Section{digest.Gate}}, Rooms: []chat.Room{told}}}
	})
}

// morning lets the digest be due at a time.
func (l *lounge) morning(at time.Time) {
	l.t.Helper()
	tick := events.Tick{Name: handlers.DigestTick + "morning", At: at}
	e, err := events.New(tick.ID(), "clock", tick.At, tick)
	l.must(err)
	l.must(l.app.bus.Publish(l.t.Context(), e))
}

// entries are the ledger, by place and id.
func (w *world) entries() (out []string) {
	for _, e := range w.app.ledger.All() {
		out = append(out, fmt.Sprint(e.Seq, " ", e.ID, " ", e.Kind, " ", e.By.Login))
	}
	return out
}

// saidCauses counts what signalbox has said in the chat, by its cause.
func (l *lounge) saidCauses() map[string]int {
	l.parlor.mu.Lock()
	defer l.parlor.mu.Unlock()
	out := map[string]int{}
	for _, s := range l.parlor.posts {
		out[s.room.ID+" "+s.cause]++
	}
	return out
}

// TestRestoreGoesOn backs up a signalbox that runs, lets people go on, and restores to
// another folder: what was decided counts, comments that were written since are found
// again, what was said in a chat since is gone, and nothing is said or done twice.
func TestRestoreGoesOn(t *testing.T) {
	l := &lounge{world: newWorld(t, worldOptions{files: map[string]string{policy.Path: deciding}}), parlor: &parlor{}, room: chat.Room{Platform: chat.Slack, ID: "C1"}}
	told := chat.Room{Platform: chat.Slack, ID: "C2"}
	l.ready()
	l.openAll(told)
	one, two := l.open("one", clusterChange), l.open("two", docsChange("two"))
	three := l.open("three", map[string]string{"clusters/base/three.yaml": "c: 3\n"})
	l.reacts(l.say(one, "carol", "/approve"), "+1")
	l.hears(l.says("bob", fmt.Sprintf("hold home-gitops#%d the node is away", two)), "done")
	l.hears(l.says("bob", "subscribe home-gitops clusters/**"), "clusters/**")
	l.approve(three, "alice")
	l.shows(one, "success", "success", "Approved by carol")
	held := l.shows(two, "success", "pending", "the node is away")
	l.shows(three, "success", "success")
	for _, number := range []int64{one, two, three} {
		l.card(number)
	}
	due := time.Now().Truncate(time.Second)
	l.morning(due)
	l.eventually("the digest is sent", func() string {
		if n := len(l.parlor.in(told)); n != 1 {
			return fmt.Sprintf("%d messages", n)
		}
		return ""
	})
	l.quiet()
	decided, since := l.entries(), l.app.ledger.Since()

	settings := settingsFor(t, l.dir)
	file := filepath.Join(t.TempDir(), "signalbox.backup")
	out, _, err := bot(t, "backup", "--config", settings, file)
	l.must(err)
	if !strings.Contains(out, fmt.Sprintf("decisions      %6d", len(decided))) || !strings.Contains(out, "subscriptions       1") {
		t.Errorf("bot backup says\n%s", out)
	}
	l.holdsNoSecret(file)

	// What comes after it: taken back in a comment, and in the chat.
	cancel := l.say(one, "carol", "/approve cancel")
	l.reacts(cancel, "+1")
	l.shows(one, "success", "pending")
	l.hears(l.says("bob", fmt.Sprintf("unhold home-gitops#%d", two)), "done")
	l.shows(two, "success", "success")
	l.quiet()
	replies, causes := l.replies(two, "hold"), l.saidCauses()
	l.stop()
	// The same change on another head: that alice has seen it is in the backup alone.
	moved := l.push("three", nil)

	l.dir = t.TempDir()
	out, _, err = bot(t, "restore", "--config", settingsFor(t, l.dir), file)
	if err != nil || !strings.Contains(out, "It is restored") {
		t.Fatalf("bot restore: %v\n%s", err, out)
	}
	l.openAll(told)
	l.shows(one, "success", "pending", "Needs 1 approval")
	again := l.shows(two, "success", "pending", "the node is away")
	l.shows(three, "success", "success", "alice")
	if held.comments[0].ID != again.comments[0].ID {
		t.Errorf("the comment was %d and is %d", held.comments[0].ID, again.comments[0].ID)
	}
	l.reacts(cancel, "+1")
	l.morning(due) // Who ticks anew ticks the same.
	l.quiet()

	want := append(slices.Clone(decided), fmt.Sprintf("%d comment/%d/0 approve-cancel carol", len(decided)+1, cancel))
	if diff := cmp.Diff(want, l.entries()); diff != "" {
		t.Errorf("the ledger after the restore (-want +got):\n%s", diff)
	}
	if got := l.app.ledger.Since(); !got.Equal(since) {
		t.Errorf("the ledger was begun at %s and is said to be at %s", since, got)
	}
	if n := l.replies(two, "hold"); n != replies {
		t.Errorf("there were %d replies and are %d", replies, n)
	}
	for cause, n := range l.saidCauses() {
		if n != max(causes[cause], 1) || causes[cause] == 0 && !strings.Contains(cause, moved) {
			t.Errorf("it was said %d times and now %d: %s", causes[cause], n, cause)
		}
	}
	// It goes on from there.
	l.hears(l.says("bob", fmt.Sprintf("unhold home-gitops#%d", two)), "done")
	l.shows(two, "success", "success")
	l.reacts(l.say(one, "alice", "/approve"), "+1")
	l.shows(one, "success", "success", "Approved by alice")
}

// holdsNoSecret looks for everything that is secret in this world in a backup, which is
// for its owner alone.
func (w *world) holdsNoSecret(file string) {
	w.t.Helper()
	text := gunzip(w.t, file)
	secrets := []string{w.token, w.app.config.Gitea.Webhook.Secret.Reveal()}
	for _, s := range secrets {
		if s == "" || strings.Contains(text, s) {
			w.t.Errorf("the backup holds the secret %q", s)
		}
	}
	for _, name := range []string{bucketSessions, bucketSignIns, bucketCodes} {
		if strings.Contains(text, fmt.Sprintf(`{"bucket":{"name":%q`, name)) {
			w.t.Errorf("the backup holds the bucket %s", name)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		w.t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

// filled makes a store with the sample of the ledger, and says where.
func filled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	b := bustest.Open(t, bus.Config{Embedded: bus.Embedded{Dir: dir}})
	ledger, err := bus.OpenLedger(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	decide(t, ledger)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBackupOfAStoppedSignalbox opens the folder. The standard output has the backup and
// nothing else.
func TestBackupOfAStoppedSignalbox(t *testing.T) {
	settings := settingsFor(t, filled(t))
	out, errOut, err := bot(t, "backup", "-c", settings, "-")
	if err != nil || !strings.Contains(errOut, "decisions           4") {
		t.Fatalf("%v\n%s", err, errOut)
	}
	head, end, err := backup.Check(strings.NewReader(out))
	if err != nil || head.Layout != bus.LayoutVersion || head.Version != versionText() {
		t.Errorf("%+v, %v", head, err)
	}
	if diff := cmp.Diff([]backup.Total{{Name: "decisions", Entries: 4, Last: 4}}, end.Buckets); diff != "" {
		t.Error(diff)
	}
}

func TestBackupRefuses(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "old.backup")
	if err := os.WriteFile(file, []byte("the good one"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bustest.Open(t, bus.Config{Embedded: bus.Embedded{Dir: dir}})
	for name, tt := range map[string]struct {
		dir, file, want string
	}{
		"to write over one":     {filled(t), file, "is there already"},
		"without a store":       {t.TempDir(), filepath.Join(folder, "a"), "signalbox has not run with this folder yet"},
		"without being allowed": {dir, filepath.Join(folder, "b"), "run bot backup as the user"},
		"without a folder":      {filled(t), filepath.Join(folder, "none", "c"), "no such file"},
	} {
		if _, _, err := bot(t, "backup", "--config", settingsFor(t, tt.dir), tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tt.want)
		}
	}
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); len(left) != 1 || string(text) != "the good one" {
		t.Errorf("it left %v, and wrote %q, %v", left, text, err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	source := settingsFor(t, filled(t))
	file := filepath.Join(t.TempDir(), "good.backup")
	if _, _, err := bot(t, "backup", "--config", source, file); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	turned := bytes.Clone(good)
	turned[len(turned)/2] ^= 4
	running := t.TempDir()
	bustest.Open(t, bus.Config{Embedded: bus.Embedded{Dir: running}})
	for name, tt := range map[string]struct {
		dir, file string
		want      []string
	}{
		"no file":           {t.TempDir(), filepath.Join(t.TempDir(), "none"), []string{"open the backup"}},
		"another file":      {t.TempDir(), write("config.yaml", []byte("a: 1\n")), []string{"config.yaml", "not a whole backup"}},
		"one that is cut":   {t.TempDir(), write("cut", good[:len(good)-9]), []string{"not a whole backup", "ends too early"}},
		"one with a flip":   {t.TempDir(), write("turned", turned), []string{"not a whole backup"}},
		"over a store":      {filled(t), file, []string{"there is a store already", "KV_decisions with 4 messages"}},
		"under a signalbox": {running, file, []string{"in use by another process"}},
	} {
		_, _, err := bot(t, "restore", "--config", settingsFor(t, tt.dir), tt.file)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one about %q", name, err, want)
			}
		}
		if _, err := os.Stat(filepath.Join(tt.dir, "jetstream")); tt.dir != running && name != "over a store" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a store now: %v", name, err)
		}
	}

	out, _, err := bot(t, "restore", "--check", file)
	if err != nil || !strings.Contains(out, "decisions           4") || strings.Contains(out, "restored") {
		t.Errorf("--check: %v\n%s", err, out)
	}
}

// TestBackupOfABrokenAnswer: what breaks off, or is no backup, does not become a file.
func TestBackupOfABrokenAnswer(t *testing.T) {
	good, _, err := bot(t, "backup", "-c", settingsFor(t, filled(t)), "-")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ answer, want string }{
		"half of it":  {good[:len(good)/2], "ends too early"},
		"all but one": {good[:len(good)-1], "ends too early"},
		"a text":      {"all is well\n", "not a whole backup"},
		"nothing":     {"", "ends too early"},
	} {
		dir := t.TempDir()
		listener, err := listenAdmin(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		running := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.answer) })}
		ended := make(chan error, 1)
		go func() { ended <- running.Serve(listener) }()
		path := filepath.Join(t.TempDir(), "broken.backup")
		_, _, err = bot(t, "backup", "-c", settingsFor(t, dir), path)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tt.want)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
			t.Errorf("%s: it left %v, %v", name, left, err)
		}
		if err := running.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}
}

// TestBackupOfARunningSignalboxThatCannot: who asks is told why.
func TestBackupOfARunningSignalboxThatCannot(t *testing.T) {
	b := bustest.New(t)
	a := &app{bus: b, appConfig: appConfig{log: slog.New(slog.DiscardHandler)}}
	answer := httptest.NewRecorder()
	a.serveBackup(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/backup", nil))
	if answer.Code != http.StatusInternalServerError || !strings.Contains(answer.Body.String(), "there is no ledger yet") {
		t.Errorf("it answers %d: %s", answer.Code, answer.Body)
	}
}

// TestEveryBucketIsDecidedAbout compares what a signalbox with everything keeps with
// what a backup holds, and with what the document says of both.
func TestEveryBucketIsDecidedAbout(t *testing.T) {
	text, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (yes|no) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = m[2] == "yes"
	}
	kept := map[string]bool{"decisions": true}
	for _, k := range keptBuckets() {
		kept[k.Name] = true
	}

	l := &lounge{world: newWorld(t, worldOptions{}), parlor: &parlor{}, room: chat.Room{Platform: chat.Slack, ID: "C1"}}
	l.ready()
	l.open2(func(c *config.Config) { c.Web.URL, c.Web.Public = c.Gitea.Webhook.URL, true })
	for _, name := range []string{bucketMatrix, bucketWishes} { // What Matrix and agents need.
		_, err = bus.OpenBucket[string](t.Context(), l.app.bus, name)
		l.must(err)
	}
	streams, err := os.ReadDir(filepath.Join(l.dir, "jetstream", "$G", "streams"))
	l.must(err)
	there := map[string]bool{}
	for _, s := range streams {
		name := strings.TrimPrefix(s.Name(), "KV_")
		there[name] = kept[name]
	}
	if diff := cmp.Diff(there, documented); diff != "" {
		t.Errorf("what a backup holds, and what docs/backup.md says (-is +says):\n%s", diff)
	}
	for name := range maps.Keys(kept) {
		if _, ok := there[name]; !ok {
			t.Errorf("a backup would hold %s, which nothing makes", name)
		}
	}
}
