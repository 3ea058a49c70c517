package realserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNodeIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := checkNode(t.Context())
	if err == nil || !strings.Contains(err.Error(), "there is no node on this machine; install Node.js 20 or later with npm") {
		t.Errorf("got %v", err)
	}
}

func TestNodeIsTooOld(t *testing.T) {
	bin := t.TempDir()
	for name, content := range map[string]string{"node": "#!/bin/sh\necho v18.20.4\n", "npm": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	err := checkNode(t.Context())
	if err == nil || !strings.Contains(err.Error(), "v18.20.4, which is too old") {
		t.Errorf("got %v", err)
	}
}

// TestPackagesArePinned reads what Build would install: every package with its sum, and none from an address
// that only one machine has.
func TestPackagesArePinned(t *testing.T) {
	root, err := serversFolder()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes() {
		if r.module != "" {
			continue
		}
		module := filepath.Join(root, r.folder())
		version, err := packageVersion(module, r.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if version == "" || strings.Trim(version, "0123456789.") != "" {
			t.Errorf("%s asks for version %q, which is not one version", r.name, version)
		}
		lock, err := os.ReadFile(filepath.Join(module, lockFile))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(lock), `"node_modules/`+r.name+`": {`+"\n"+`      "version": "`+version+`"`) {
			t.Errorf("the lock file of %s is not that of version %s", r.name, version)
		}
		if strings.Contains(string(lock), `"resolved"`) {
			t.Errorf("the lock file of %s names addresses; write it with npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved", r.name)
		}
	}
}
