package config

import (
	"fmt"
	"os"
	"strings"
	"unicode"

	"signalbox/internal/secret"
	"signalbox/internal/yamlfile"
)

// Variables of the environment. Those that hold a secret also exist with
// [fileSuffix].
const (
	EnvGiteaToken            = "SIGNALBOX_GITEA_TOKEN"
	EnvWebhookSecret         = "SIGNALBOX_WEBHOOK_SECRET"
	EnvWebhookSecretPrevious = "SIGNALBOX_WEBHOOK_SECRET_PREVIOUS"

	EnvGiteaURL     = "SIGNALBOX_GITEA_URL"
	EnvWebhookURL   = "SIGNALBOX_WEBHOOK_URL"
	EnvRepositories = "SIGNALBOX_REPOSITORIES"
	EnvKubeconfig   = "SIGNALBOX_KUBECONFIG"
	EnvCluster      = "SIGNALBOX_CLUSTER"
	EnvDataDir      = "SIGNALBOX_DATA_DIR"
	EnvListen       = "SIGNALBOX_LISTEN"
)

const (
	// fileSuffix ends the variable that holds the path of a secret's file.
	fileSuffix = "_FILE"
	// inCluster is the value of [EnvKubeconfig] for the pod's own cluster.
	inCluster = "in-cluster"
	// defaultCluster is the name of the cluster of [EnvKubeconfig].
	defaultCluster = "default"
)

// override puts what the environment gives into the file's place.
func (l *loader) override(f *File) {
	l.overrideText(EnvGiteaURL, &f.Gitea.URL, "gitea", "url")
	l.overrideText(EnvWebhookURL, &f.Gitea.Webhook.URL, "gitea", "webhook", "url")
	l.overrideText(EnvListen, &f.HTTP.Listen, "http", "listen")
	if dir, _ := l.env(EnvDataDir); dir != "" {
		if f.Bus.Embedded == nil {
			f.Bus.Embedded = &EmbeddedFile{}
		}
		l.overrideText(EnvDataDir, &f.Bus.Embedded.Dir, "bus", "embedded", "dir")
	}
	l.overrideRepositories(f)
	l.overrideClusters(f)
}

func (l *loader) overrideText(name string, field *string, at ...any) {
	if value, _ := l.env(name); value != "" {
		*field = value
		l.overridden[yamlfile.Path(at).String()] = name
	}
}

// overrideRepositories keeps the word of the file that a repository is only
// observed: replacing the list must not start to post.
func (l *loader) overrideRepositories(f *File) {
	value, _ := l.env(EnvRepositories)
	if value == "" {
		return
	}
	observed := map[string]bool{}
	for _, r := range f.Repositories {
		observed[strings.ToLower(r.Name)] = r.Observe
	}
	f.Repositories = nil
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		f.Repositories = append(f.Repositories, RepositoryFile{Name: name, Observe: observed[strings.ToLower(name)]})
	}
	l.overridden["repositories"] = EnvRepositories
}

func (l *loader) overrideClusters(f *File) {
	kubeconfig, _ := l.env(EnvKubeconfig)
	name, _ := l.env(EnvCluster)
	if kubeconfig == "" {
		if name != "" {
			l.envProblem(EnvCluster, "names a cluster without saying where it is", "set "+EnvKubeconfig+" too")
		}
		return
	}
	c := ClusterFile{Name: defaultCluster, Kubeconfig: kubeconfig}
	if kubeconfig == inCluster {
		c = ClusterFile{Name: defaultCluster, InCluster: true}
	}
	l.overridden["clusters"] = EnvKubeconfig
	if name != "" {
		c.Name = name
		l.overridden["clusters[0].name"] = EnvCluster
	}
	f.Clusters = []ClusterFile{c}
}

// secrets reads what the purpose needs of the secrets.
func (l *loader) secrets(g *Gitea) {
	if l.purpose == Validate {
		return
	}
	g.Token = l.secret(EnvGiteaToken, "the token of the account that signalbox uses")
	if l.purpose == Check {
		return
	}
	g.Webhook.Secret = l.secret(EnvWebhookSecret, "the key that Gitea signs webhooks with, such as the output of: openssl rand -hex 32")
	g.Webhook.PreviousSecret = l.secret(EnvWebhookSecretPrevious, "")
	if n := len(g.Webhook.Secret.Reveal()); n > 0 && n < minSecret {
		l.envWarn(EnvWebhookSecret, fmt.Sprintf("is shorter than %d bytes and could be guessed", minSecret), "openssl rand -hex 32 makes a good one")
	}
	if !g.Webhook.PreviousSecret.Empty() && g.Webhook.PreviousSecret == g.Webhook.Secret {
		l.envWarn(EnvWebhookSecretPrevious, "is the same as "+EnvWebhookSecret, "remove it once every webhook has the new one")
	}
}

// minSecret is the length in bytes below which a key is warned of: 128 bits
// as a random generator gives them.
const minSecret = 16

func (l *loader) envProblem(name, message, hint string) {
	l.problems = append(l.problems, yamlfile.Problem{File: environment, Path: name, Message: message, Hint: hint})
}

func (l *loader) envWarn(name, message, hint string) {
	l.warnings = append(l.warnings, yamlfile.Problem{File: environment, Path: name, Message: message, Hint: hint})
}

// secret reads one secret from its variable or from the file of the variable
// with [fileSuffix]. An empty description makes it optional.
func (l *loader) secret(name, description string) secret.Value {
	value, set := l.env(name)
	path, _ := l.env(name + fileSuffix)
	switch {
	case value != "" && path != "":
		l.envProblem(name, "is set, and so is "+name+fileSuffix, "set one of them")
		return secret.Value{}
	case path != "":
		name += fileSuffix
		var ok bool
		if value, ok = l.secretFile(name, path); !ok {
			return secret.Value{}
		}
	case value == "" && description != "":
		message := "is not set"
		if set {
			message = "is empty"
		}
		l.envProblem(name, message, fmt.Sprintf("set it, or %s to the path of a file, to %s", name+fileSuffix, description))
		return secret.Value{}
	}
	if strings.TrimSpace(value) != value || strings.ContainsFunc(value, unicode.IsControl) {
		l.envProblem(name, "has white space around it or a control character in it", "check how it was pasted")
		return secret.Value{}
	}
	return secret.New(value)
}

// maxSecret bounds the file of a secret, in bytes.
const maxSecret = 64 << 10

// secretFile does not show the path: somebody may have put the secret there.
func (l *loader) secretFile(name, path string) (string, bool) {
	data, err := readLimited(path, maxSecret+1)
	if err != nil {
		l.envProblem(name, "the file it names "+cannotRead(err), "")
		return "", false
	}
	if len(data) > maxSecret {
		l.envProblem(name, fmt.Sprintf("the file it names is larger than %d bytes", maxSecret), "name a file that holds the secret alone")
		return "", false
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		l.envProblem(name, "the file it names is empty", "write the secret into it")
		return "", false
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		l.envWarn(name, "the file it names can be read by every user of its machine", "chmod 0400, or defaultMode: 0400 of a Kubernetes volume")
	}
	return value, true
}
