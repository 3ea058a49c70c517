// Package bot builds signalbox and runs it against the servers of package realserver, as an operator
// would: with a configuration file, secrets in the environment, a token that has no more than the
// documented scopes and a cluster account that has no more than the documented rules.
package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/kube"
	"signalbox/test/realserver"
)

// Build builds signalbox from the current state of the repository into a folder, and returns the program.
// The flags are further flags of go build, such as -race.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	path := filepath.Join(dir, "signalbox")
	args := append(append([]string{"build"}, flags...), "-o", path, "signalbox/cmd/bot")
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build signalbox: %w\n%s", err, out)
	}
	return path, nil
}

// Scopes returns the scopes that the token of signalbox's account needs.
func Scopes() []sdk.AccessTokenScope {
	return []sdk.AccessTokenScope{"write:repository", "write:issue", "read:organization", "read:user"}
}

// Options say what signalbox is to look at.
type Options struct {
	// Program is the file that Build returned.
	Program string
	// Dir is an existing folder for the configuration, the data and the log.
	Dir string
	// GiteaURL is Gitea's address, or that of a tap or proxy in front of it.
	GiteaURL string
	// Token is that of signalbox's account.
	Token string
	// Repositories are written owner/name.
	Repositories []string
	// Clusters maps the names that policies use to access.
	Clusters map[string]realserver.Access
	// Secret signs its webhooks; empty means one of its own. Receiver is where Gitea delivers them; empty means
	// signalbox itself. Replicas share both.
	Secret, Receiver string
	// Bus is what follows "bus:" in the configuration, a flow mapping in YAML; empty means an embedded one.
	Bus string
	// More is added to the end of the configuration: further top-level fields in YAML.
	More string
}

// Bot is a running signalbox.
type Bot struct {
	*realserver.Program
	// URL is its address, with a slash at the end.
	URL string
	// Config is the path of its configuration.
	Config string
	// Secret is the one that its webhooks are signed with.
	Secret  string
	env     []string
	release func()
}

// Start writes a configuration and starts signalbox with it. It returns when signalbox is ready.
func Start(ctx context.Context, o Options) (*Bot, error) {
	addr, release, err := realserver.ReserveAddr()
	if err != nil {
		return nil, err
	}
	b := &Bot{
		URL: "http://" + addr + "/", Config: filepath.Join(o.Dir, "signalbox.yaml"),
		Secret: cmp.Or(o.Secret, secret()), release: release,
	}
	o.Receiver = cmp.Or(o.Receiver, b.URL)
	kubeconfig := filepath.Join(o.Dir, "kubeconfig")
	if err := errors.Join(
		realserver.WriteKubeconfig(kubeconfig, o.Clusters),
		os.WriteFile(b.Config, configuration(o, addr, kubeconfig), 0o600),
	); err != nil {
		release()
		return nil, fmt.Errorf("configure signalbox: %w", err)
	}
	b.env = []string{"SIGNALBOX_GITEA_TOKEN=" + o.Token, "SIGNALBOX_WEBHOOK_SECRET=" + b.Secret}
	b.Program, err = realserver.StartProgram(ctx, realserver.ProgramOptions{
		Name: "signalbox", Path: o.Program, Dir: o.Dir,
		Args:  []string{"run", "--config", b.Config},
		Env:   b.env,
		Ready: b.URL + "readyz",
	})
	if err != nil {
		release()
		return nil, err
	}
	return b, nil
}

// Environment is what another command of the program needs to be given, with the secrets.
func (b *Bot) Environment() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, b.env...)
}

// Stop ends signalbox for good and gives its address back.
func (b *Bot) Stop() {
	b.Program.Stop()
	b.release()
}

// configuration is the file that an operator would write.
func configuration(o Options, addr, kubeconfig string) []byte {
	var c strings.Builder
	fmt.Fprintf(&c, "gitea:\n  url: %s\n  webhook:\n    url: %s\n", o.GiteaURL, o.Receiver)
	c.WriteString("repositories:\n")
	for _, name := range o.Repositories {
		fmt.Fprintf(&c, "  - name: %s\n", name)
	}
	if len(o.Clusters) > 0 {
		c.WriteString("clusters:\n")
	}
	for name := range o.Clusters {
		fmt.Fprintf(&c, "  - {name: %s, kubeconfig: %s, context: %s}\n", name, kubeconfig, name)
	}
	fmt.Fprintf(&c, "bus: %s\n", cmp.Or(o.Bus, fmt.Sprintf("{embedded: {dir: %q}}", filepath.Join(o.Dir, "data"))))
	fmt.Fprintf(&c, "http:\n  listen: %s\n", addr)
	return []byte(c.String() + o.More)
}

// Account creates signalbox's account in a cluster, in an existing namespace, and returns access as it.
func Account(ctx context.Context, k *realserver.Kube, namespace string) (realserver.Access, error) {
	return k.CreateAccount(ctx, namespace, "signalbox", kube.RequiredRules())
}

func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // Never fails.
	return hex.EncodeToString(b)
}
