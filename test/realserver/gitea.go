package realserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
)

// adminName is the account with which the harness prepares a Gitea.
const adminName = "site-admin"

// GiteaOptions are the options of a Gitea. The zero value of all but Options.Dir suits most tests.
type GiteaOptions struct {
	Options
	// SubPath serves Gitea below a path, e.g. "git", through a reverse proxy that removes the path, as in
	// many real installations.
	SubPath string
	// Settings overwrite lines of app.ini. A key is the section and the name with a dot between them, e.g.
	// "api.DEFAULT_PAGING_NUM". Webhooks to loopback receivers and Actions are on.
	Settings map[string]string
	// Pages builds the scripts and styles of Gitea's pages, for people who look at them. It needs npx.
	Pages bool
}

// Gitea is a running Gitea with SQLite. Its methods may be called from several goroutines, except where
// the package says otherwise.
type Gitea struct {
	process *process
	front   *http.Server // Serves the sub-path; nil without one.
	ports   []port
	url     string
	admin   string // Token of the administrator.
}

// User is an account on a Gitea, with its secrets.
type User struct {
	ID       int64
	Name     string
	Email    string
	Password string
	Token    string
}

// StartGitea starts a Gitea with an administrator and returns when it answers.
func StartGitea(ctx context.Context, o GiteaOptions) (*Gitea, error) {
	var err error
	if o.Options, err = o.check(); err != nil {
		return nil, err
	}
	program, err := o.Builder.one(ctx, nameGitea)
	if err != nil {
		return nil, err
	}
	ports, err := reservePorts(2)
	if err != nil {
		return nil, err
	}
	g := &Gitea{ports: ports, url: "http://" + ports[0].addr() + "/"}
	if path := strings.Trim(o.SubPath, "/"); path != "" {
		if err := g.serveBelow("/" + path); err != nil {
			releasePorts(ports)
			return nil, fmt.Errorf("start gitea: %w", err)
		}
	}
	if err := g.start(ctx, o, program); err != nil {
		g.Stop()
		return nil, err
	}
	return g, nil
}

func (g *Gitea) start(ctx context.Context, o GiteaOptions, program Built) error {
	work := filepath.Join(o.Dir, "gitea")
	config := filepath.Join(work, "app.ini")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("start gitea: %w", err)
	}
	if o.Pages {
		pages, err := o.Builder.one(ctx, nameGiteaPages)
		if err != nil {
			return err
		}
		if err := linkPages(filepath.Join(work, "custom"), pages.Dir); err != nil {
			return fmt.Errorf("start gitea: %w", err)
		}
	}
	me, err := user.Current()
	if err != nil {
		return fmt.Errorf("start gitea: %w", err)
	}
	ini, err := renderINI(g.settings(work, program.Dir, me.Username), o.Settings)
	if err != nil {
		return fmt.Errorf("start gitea: %w", err)
	}
	if err := os.WriteFile(config, ini, 0o600); err != nil {
		return fmt.Errorf("start gitea: %w", err)
	}

	base := command{
		path: program.Binary(),
		// Git's own settings must not depend on the machine; and Gitea refuses to run as root otherwise.
		env: []string{"GIT_CONFIG_NOSYSTEM=1", "USER=" + me.Username, "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true"},
		dir: work,
		log: o.logFile(nameGitea),
	}
	with := func(name string, args ...string) command {
		c := base
		c.name, c.args = name, append([]string{"--config", config, "--work-path", work}, args...)
		return c
	}
	if _, err := runOnce(ctx, with("gitea migrate", "migrate")); err != nil {
		return fmt.Errorf("prepare gitea's database: %w", err)
	}
	out, err := runOnce(ctx, with("gitea admin user create", "admin", "user", "create", "--admin",
		"--username", adminName, "--password", randomSecret(), "--email", adminName+"@example.org", "--must-change-password=false",
		"--access-token", "--access-token-name", "harness", "--access-token-scopes", "all"))
	if err != nil {
		return fmt.Errorf("create gitea's administrator: %w", err)
	}
	if g.admin, err = tokenIn(out); err != nil {
		return fmt.Errorf("create gitea's administrator: %w", err)
	}
	c := with(nameGitea, "web")
	c.ready = answers(http.DefaultClient, "http://"+g.ports[0].addr()+"/api/v1/version")
	g.process = &process{command: c}
	return g.process.start(ctx)
}

// linkPages makes Gitea find the built scripts and styles: its custom folder comes before its static one.
func linkPages(custom, pages string) error {
	if err := os.MkdirAll(custom, 0o755); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(pages, "public"), filepath.Join(custom, "public"))
}

// serveBelow puts a reverse proxy in front that serves Gitea below a path.
func (g *Gitea) serveBelow(path string) error {
	target, err := url.Parse(g.url)
	if err != nil {
		return err
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}}
	listener, err := g.ports[1].listen()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(path+"/", http.StripPrefix(path, forward))
	g.front = &http.Server{Handler: mux}
	g.url = "http://" + g.ports[1].addr() + path + "/"
	go func() { _ = g.front.Serve(listener) }()
	return nil
}

// URL returns the address at which everybody sees this Gitea, with a slash at the end.
func (g *Gitea) URL() string { return g.url }

// Addr returns the host and port behind URL, the target for a [Proxy].
func (g *Gitea) Addr() string {
	if g.front != nil {
		return g.ports[1].addr()
	}
	return g.ports[0].addr()
}

// Stop ends Gitea for good and gives its ports back.
func (g *Gitea) Stop() {
	if g.process != nil {
		g.process.stop()
	}
	if g.front != nil {
		_ = g.front.Close()
	}
	releasePorts(g.ports)
}

// Kill ends Gitea without warning. Behind a sub-path the reverse proxy stays, and answers 502.
func (g *Gitea) Kill() { g.process.kill() }

// Restart starts Gitea again with the same port and data, ending it first if it runs.
func (g *Gitea) Restart(ctx context.Context) error { return g.process.restart(ctx) }

// Admin returns the SDK's client for the administrator, who may do anything and, for what a person does,
// act as somebody else (SDK option SetSudo).
func (g *Gitea) Admin(ctx context.Context) (*sdk.Client, error) { return g.API(ctx, g.admin) }

// API returns the SDK's client for whoever owns the token; ctx is that of all its requests. Its methods
// are enough to prepare organisations, teams, repositories, collaborators, branch protections, webhooks
// and pull requests.
func (g *Gitea) API(ctx context.Context, token string) (*sdk.Client, error) {
	c, err := sdk.NewClient(g.url, sdk.SetContext(ctx), sdk.SetToken(token))
	if err != nil {
		return nil, fmt.Errorf("connect to gitea: %w", err)
	}
	return c, nil
}

// CreateUser creates an account with a token for all scopes.
func (g *Gitea) CreateUser(ctx context.Context, name string) (User, error) {
	u := User{Name: name, Email: name + "@example.org", Password: randomSecret()}
	admin, err := g.Admin(ctx)
	if err != nil {
		return User{}, err
	}
	stay := false
	created, _, err := admin.AdminCreateUser(sdk.CreateUserOption{
		Username: name, LoginName: name, Email: u.Email, Password: u.Password, MustChangePassword: &stay,
	})
	if err != nil {
		return User{}, fmt.Errorf("create user %s: %w", name, err)
	}
	u.ID = created.ID
	u.Token, err = g.CreateToken(ctx, u, "harness", sdk.AccessTokenScopeAll)
	return u, err
}

// CreateToken creates another token for the user, with the scopes that Gitea knows, e.g. write:repository.
func (g *Gitea) CreateToken(ctx context.Context, u User, name string, scopes ...sdk.AccessTokenScope) (string, error) {
	c, err := sdk.NewClient(g.url, sdk.SetContext(ctx), sdk.SetBasicAuth(u.Name, u.Password))
	if err != nil {
		return "", fmt.Errorf("connect to gitea as %s: %w", u.Name, err)
	}
	t, _, err := c.CreateAccessToken(sdk.CreateAccessTokenOption{Name: name, Scopes: scopes})
	if err != nil {
		return "", fmt.Errorf("create token %s of %s: %w", name, u.Name, err)
	}
	return t.Token, nil
}
