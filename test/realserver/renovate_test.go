package realserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRegistryKnowsVersions(t *testing.T) {
	registry := StartRegistry(map[string][]string{"@scope/pad": {"1.0.0", "1.1.0"}})
	defer registry.Close()
	resp, err := http.Get(registry.URL + "/@scope%2Fpad")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got struct {
		Tags     map[string]string         `json:"dist-tags"`
		Versions map[string]map[string]any `json:"versions"`
		Time     map[string]time.Time      `json:"time"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"latest": "1.1.0"}, got.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if len(got.Versions) != 2 || got.Versions["1.0.0"]["version"] != "1.0.0" {
		t.Errorf("versions %v", got.Versions)
	}
	if !got.Time["1.0.0"].Before(got.Time["1.1.0"]) {
		t.Errorf("times %v", got.Time)
	}
	other, err := http.Get(registry.URL + "/unknown")
	if err != nil {
		t.Fatal(err)
	}
	_ = other.Body.Close()
	if other.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown package is answered with %s", other.Status)
	}
}

func TestRunLines(t *testing.T) {
	run := func(script string, line func(string) error) (int, error) {
		return runLines(t.Context(), command{name: "sh", path: "/bin/sh", args: []string{"-c", script}, dir: t.TempDir()}, line)
	}
	var lines []string
	keep := func(line string) error { lines = append(lines, line); return nil }
	code, err := run("echo one; echo; echo two >&2; printf last; exit 3", keep)
	if code != 3 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	if diff := cmp.Diff([]string{"one", "", "two", "last"}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}

	lines = nil
	if _, err := run("head -c 300000 /dev/zero | tr '\\0' x", keep); err != nil {
		t.Error(err)
	}
	if len(lines) != 1 || len(lines[0]) != 300000 {
		t.Errorf("a long line came as %d lines", len(lines))
	}

	full := errors.New("full")
	if _, err := run("echo one; exec sleep 60", func(string) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

func TestRenovateSeesNothingOfTheMachine(t *testing.T) {
	t.Setenv("RENOVATE_TOKEN", "of the machine")
	o := RenovateOptions{Gitea: &Gitea{url: "http://127.0.0.1:1/"}, Repository: "a/b", Registry: "http://127.0.0.1:2/", Env: []string{"LOG_FORMAT=json"}}
	env := o.environment(t.TempDir())
	if all := strings.Join(env, "\n"); strings.Contains(all, "of the machine") || env[len(env)-1] != "LOG_FORMAT=json" {
		t.Errorf("environment:\n%s", all)
	}
}
