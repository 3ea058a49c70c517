package realserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Names of npm's files, and the oldest Node.js that what is installed runs on.
const (
	packageFile = "package.json"
	lockFile    = "package-lock.json"
	nodeMajor   = 20
)

// installPackage installs an npm package with exactly the dependencies of the lock file, and without
// running any script of theirs. Its program is found under the package's name in out.
//
// The lock file names no registry, so npm takes everything from the one it is configured for and checks it
// against the sums of the lock file.
func installPackage(ctx context.Context, module, name, out string) error {
	if err := checkNode(ctx); err != nil {
		return err
	}
	for _, file := range []string{packageFile, lockFile} {
		content, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return fmt.Errorf("read the package: %w", err)
		}
		if err := os.WriteFile(filepath.Join(out, file), content, 0o644); err != nil {
			return fmt.Errorf("copy the package: %w", err)
		}
	}
	if _, err := toolCommand(ctx, out, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return err
	}
	program := filepath.Join("node_modules", ".bin", name)
	if !exists(filepath.Join(out, program)) {
		return fmt.Errorf("npm installed no program %s", name)
	}
	return os.Symlink(program, filepath.Join(out, name))
}

// checkNode reports what is missing to install and run npm packages, and how to get it.
func checkNode(ctx context.Context) error {
	help := fmt.Sprintf("install Node.js %d or later with npm, on Debian with: apt-get install nodejs npm", nodeMajor)
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("there is no %s on this machine; %s", tool, help)
		}
	}
	version, err := toolCommand(ctx, os.TempDir(), nil, "node", "--version")
	if err != nil {
		return err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < nodeMajor {
		return fmt.Errorf("node on this machine is %s, which is too old; %s", version, help)
	}
	return nil
}

// packageVersion returns the version that package.json asks for.
func packageVersion(module, name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(module, packageFile))
	if err != nil {
		return "", fmt.Errorf("read the package: %w", err)
	}
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(content, &p); err != nil {
		return "", fmt.Errorf("read %s: %w", filepath.Join(module, packageFile), err)
	}
	version, ok := p.Dependencies[name]
	if !ok {
		return "", errors.New("read the package: " + packageFile + " does not depend on " + name)
	}
	return version, nil
}
