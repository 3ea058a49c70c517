package realserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Names of what can be built.
const (
	nameEtcd                = "etcd"
	nameDendrite            = "dendrite"
	nameNATS                = "nats-server"
	nameGitea               = "gitea"
	nameGiteaPages          = "gitea-pages"
	nameKubeAPIServer       = "kube-apiserver"
	nameSourceController    = "source-controller"
	nameKustomizeController = "kustomize-controller"
	nameRenovate            = "renovate"
)

// recipe says how one server is built.
type recipe struct {
	name    string   // In messages and in the cache, and file name of the program.
	module  string   // Go module that the server comes from. Empty for what npm installs.
	program string   // Package of its main function. Empty for the pages of Gitea and for what npm installs.
	tags    string   // Build tags.
	linked  []string // Variables set by the linker; %s stands for the version without its v.
	folders []string // Folders of the module that are needed at run time.
	cold    string   // How long the first build takes on 2 cores.
}

// recipes returns how everything is built: the quick ones first, and last what needs more than Go.
func recipes() []recipe {
	return []recipe{
		{
			name: nameEtcd, module: "go.etcd.io/etcd/server/v3", program: "go.etcd.io/etcd/server/v3",
			cold: "a minute",
		},
		{
			name: nameNATS, module: "github.com/nats-io/nats-server/v2", program: "github.com/nats-io/nats-server/v2",
			cold: "a minute",
		},
		{
			name: nameDendrite, module: "github.com/matrix-org/dendrite", program: "github.com/matrix-org/dendrite/cmd/dendrite",
			cold: "2 minutes",
		},
		{
			// Without a version the SDK refuses to talk to the server.
			name: nameGitea, module: "code.gitea.io/gitea", program: "code.gitea.io/gitea",
			tags:    "sqlite sqlite_unlock_notify",
			linked:  []string{"main.Version=%s"},
			folders: []string{"options", "public", "templates"},
			cold:    "5 minutes",
		},
		{
			name: nameGiteaPages, module: "code.gitea.io/gitea",
			cold: "a minute",
		},
		{
			name: nameKubeAPIServer, module: "k8s.io/kubernetes", program: "k8s.io/kubernetes/cmd/kube-apiserver",
			linked: []string{"k8s.io/component-base/version.gitVersion=v%s"},
			cold:   "6 minutes",
		},
		{
			name: nameSourceController, module: "github.com/fluxcd/source-controller", program: "github.com/fluxcd/source-controller",
			folders: []string{crdFolder},
			cold:    "4 minutes",
		},
		{
			name: nameKustomizeController, module: "github.com/fluxcd/kustomize-controller", program: "github.com/fluxcd/kustomize-controller",
			folders: []string{crdFolder},
			cold:    "4 minutes",
		},
		{
			name: nameRenovate,
			cold: "a minute",
		},
	}
}

// Names returns the names of all servers, among which Renovate counts, although it is a program that ends.
// There is one more thing to build, gitea-pages: the scripts and styles of Gitea's pages, without which
// only people miss something. Renovate and the pages need Node.js.
func Names() []string {
	var names []string
	for _, r := range recipes() {
		if r.name != nameGiteaPages {
			names = append(names, r.name)
		}
	}
	return names
}

func recipeOf(name string) (recipe, error) {
	all := recipes()
	i := slices.IndexFunc(all, func(r recipe) bool { return r.name == name })
	if i < 0 {
		return recipe{}, fmt.Errorf("no server is named %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return all[i], nil
}

// folder returns the name of the module's folder under test/servers.
func (r recipe) folder() string { return strings.TrimSuffix(r.name, "-pages") }

// key identifies everything that decides what a build yields.
func (r recipe) key(module string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, r.name, r.program, r.flags("v0"), r.folders)
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if r.name == nameGiteaPages {
		fmt.Fprintln(h, pagesTools())
	}
	for _, name := range r.pins() {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("read the module: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(content))
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// pins returns the files of the module's folder that say what is built, to the last dependency.
func (r recipe) pins() []string {
	if r.module == "" {
		return []string{packageFile, lockFile}
	}
	return []string{"go.mod", "go.sum"}
}

// version returns the version of what is built.
func (r recipe) version(ctx context.Context, module string) (string, error) {
	if r.module == "" {
		return packageVersion(module, r.name)
	}
	return goCommand(ctx, module, "list", "-mod=readonly", "-m", "-f", "{{.Version}}", r.module)
}

func (r recipe) flags(version string) []string {
	var flags []string
	if r.tags != "" {
		flags = append(flags, "-tags="+r.tags)
	}
	var link strings.Builder
	link.WriteString("-ldflags=-s -w")
	for _, variable := range r.linked {
		fmt.Fprintf(&link, " -X "+variable, strings.TrimPrefix(version, "v"))
	}
	return append(flags, link.String())
}

func (r recipe) build(ctx context.Context, module, version, out string) error {
	switch {
	case r.module == "":
		return installPackage(ctx, module, r.name, out)
	case r.program == "":
		return r.buildPages(ctx, module, out)
	}
	args := append([]string{"build", "-mod=readonly", "-buildvcs=false"}, r.flags(version)...)
	if _, err := goCommand(ctx, module, append(args, "-o", filepath.Join(out, r.name), r.program)...); err != nil {
		return err
	}
	if len(r.folders) == 0 {
		return nil
	}
	source, err := r.source(ctx, module)
	if err != nil {
		return err
	}
	return copyFolders(out, source, r.folders...)
}

// source returns the folder of the server's module in the module cache.
func (r recipe) source(ctx context.Context, module string) (string, error) {
	if _, err := goCommand(ctx, module, "mod", "download", r.module); err != nil {
		return "", err
	}
	return goCommand(ctx, module, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", r.module)
}

// pagesTools returns the npm packages that build Gitea's pages: Gitea 1.26 asks for Node 22 and for this
// pnpm in its package.json.
func pagesTools() []string { return []string{"node@22.23.3", "pnpm@10.33.0"} }

// buildPages builds the scripts and styles of Gitea's pages, which its module leaves out.
func (r recipe) buildPages(ctx context.Context, module, out string) error {
	source, err := r.source(ctx, module)
	if err != nil {
		return err
	}
	work := filepath.Join(out, "work")
	if err := copyFolders(work, source, "assets", "public", "templates", "web_src"); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "pnpm-lock.yaml", "tailwind.config.ts", "tsconfig.json", "vite.config.ts"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return fmt.Errorf("copy %s of %s: %w", name, r.module, err)
		}
		if err := os.WriteFile(filepath.Join(work, name), content, 0o644); err != nil {
			return fmt.Errorf("copy %s of %s: %w", name, r.module, err)
		}
	}
	npx := []string{"--yes"}
	for _, tool := range pagesTools() {
		npx = append(npx, "-p", tool)
	}
	for _, command := range [][]string{
		{"pnpm", "install", "--frozen-lockfile", "--prod", "--ignore-scripts"},
		{"node", "node_modules/vite/bin/vite.js", "build", "--logLevel=warn"},
	} {
		env := []string{"NODE_ENV=production", "ENABLE_SOURCEMAP=false", "CI=true"}
		if _, err := toolCommand(ctx, work, env, "npx", append(npx, command...)...); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(work, "public"), filepath.Join(out, "public")); err != nil {
		return err
	}
	return os.RemoveAll(work)
}

func copyFolders(to, from string, folders ...string) error {
	for _, folder := range folders {
		if err := os.CopyFS(filepath.Join(to, folder), os.DirFS(filepath.Join(from, folder))); err != nil {
			return fmt.Errorf("copy %s: %w", folder, err)
		}
	}
	return nil
}
