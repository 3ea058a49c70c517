package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// Gitea is a real server as a [Backend]. It acts as people by the right of an
// administrator to do so, and pushes with the git program.
type Gitea struct {
	// Registrar registers runners; without one the cases that need a runner fail.
	Registrar Registrar

	root   string
	admin  string
	client *http.Client

	mu     sync.Mutex
	tokens map[string]string
}

// NewGitea makes a backend of the server at an address. The token belongs to
// an administrator and has all scopes.
func NewGitea(address, adminToken string) *Gitea {
	return &Gitea{
		root:   strings.TrimRight(address, "/"),
		admin:  adminToken,
		client: &http.Client{Timeout: time.Minute},
		tokens: map[string]string{},
	}
}

// URL implements [Backend].
func (g *Gitea) URL() string { return g.root + "/" }

// failure is an answer that is no success.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

// call sends a request, given as "GET /path", as somebody; nobody ("") is the
// administrator. In and out are JSON and may be nil.
func (g *Gitea) call(ctx context.Context, as, request string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	method, path, _ := strings.Cut(request, " ")
	req, err := http.NewRequestWithContext(ctx, method, g.root+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "token "+g.admin)
	if as != "" {
		req.Header.Set("Sudo", as)
	}
	return g.do(req, out)
}

func (g *Gitea) do(req *http.Request, out any) error {
	resp, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &failure{resp.StatusCode, fmt.Sprintf("%s %s as %q: %s: %s", req.Method, req.URL.Path, req.Header.Get("Sudo"), resp.Status, data)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

func repoPath(r pull.Repo) string {
	return "/repos/" + url.PathEscape(r.Owner) + "/" + url.PathEscape(r.Name)
}

func pullPath(r pull.Repo, number int64) string {
	return fmt.Sprintf("%s/pulls/%d", repoPath(r), number)
}

func password(login string) string { return "pw-" + login + "-1234" }

// CreateUser implements [Backend].
func (g *Gitea) CreateUser(ctx context.Context, login string) (pull.Person, string, error) {
	var who struct {
		ID int64 `json:"id"`
	}
	err := g.call(ctx, "", "POST /admin/users", map[string]any{
		"username": login, "email": login + "@example.org", "password": password(login), "must_change_password": false,
	}, &who)
	if err != nil {
		return pull.Person{}, "", err
	}
	data := strings.NewReader(`{"name":"conformance","scopes":["all"]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.root+"/api/v1/users/"+login+"/tokens", data)
	if err != nil {
		return pull.Person{}, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth(login, password(login))
	var token struct {
		Value string `json:"sha1"`
	}
	if err := g.do(req, &token); err != nil {
		return pull.Person{}, "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens[login] = token.Value
	return pull.Person{ID: who.ID, Login: login}, token.Value, nil
}

// DeleteUser implements [Backend].
func (g *Gitea) DeleteUser(ctx context.Context, login string) error {
	return g.call(ctx, "", "DELETE /admin/users/"+login, nil, nil)
}

// CreateOrg implements [Backend].
func (g *Gitea) CreateOrg(ctx context.Context, name string) error {
	return g.call(ctx, "", "POST /orgs", map[string]any{"username": name}, nil)
}

// SetTeam implements [Backend].
func (g *Gitea) SetTeam(ctx context.Context, org, name string, members ...string) error {
	type team struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	var teams []team
	if err := g.call(ctx, "", "GET /orgs/"+org+"/teams?limit=50", nil, &teams); err != nil {
		return err
	}
	var found team
	if i := slices.IndexFunc(teams, func(t team) bool { return strings.EqualFold(t.Name, name) }); i >= 0 {
		found = teams[i]
	} else if err := g.call(ctx, "", "POST /orgs/"+org+"/teams", map[string]any{
		"name": name, "permission": "write", "units": []string{"repo.code", "repo.pulls", "repo.issues"}, "includes_all_repositories": true,
	}, &found); err != nil {
		return err
	}
	var old []struct {
		Login string `json:"login"`
	}
	path := fmt.Sprintf("/teams/%d/members", found.ID)
	if err := g.call(ctx, "", "GET "+path+"?limit=50", nil, &old); err != nil {
		return err
	}
	// In this order, because the last owner of an organisation cannot be removed.
	for _, login := range members {
		if err := g.call(ctx, "", "PUT "+path+"/"+login, nil, nil); err != nil {
			return err
		}
	}
	for _, m := range old {
		if !slices.Contains(members, m.Login) {
			if err := g.call(ctx, "", "DELETE "+path+"/"+m.Login, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

type repoAnswer struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Owner struct {
		Login string `json:"login"`
	} `json:"owner"`
}

func (r repoAnswer) repo() pull.Repo {
	return pull.Repo{ID: r.ID, Owner: r.Owner.Login, Name: r.Name}
}

// CreateRepo implements [Backend].
func (g *Gitea) CreateRepo(ctx context.Context, owner, name string, files map[string]string) (pull.Repo, error) {
	path, as := "/user/repos", owner
	if g.token(owner) == "" {
		path, as = "/orgs/"+owner+"/repos", ""
	}
	var out repoAnswer
	err := g.call(ctx, as, "POST "+path, map[string]any{"name": name, "auto_init": false, "default_branch": "main"}, &out)
	if err != nil {
		return pull.Repo{}, err
	}
	_, err = g.Push(ctx, out.repo(), giteatest.Push{As: as, Branch: "main", Files: files, Message: "Start"})
	return out.repo(), err
}

func (g *Gitea) token(login string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if login == "" {
		return g.admin
	}
	return g.tokens[login]
}

// RenameRepo implements [Backend].
func (g *Gitea) RenameRepo(ctx context.Context, repo pull.Repo, name string) (pull.Repo, error) {
	var out repoAnswer
	err := g.call(ctx, "", "PATCH "+repoPath(repo), map[string]any{"name": name}, &out)
	return out.repo(), err
}

// DeleteRepo implements [Backend].
func (g *Gitea) DeleteRepo(ctx context.Context, repo pull.Repo) error {
	return g.call(ctx, "", "DELETE "+repoPath(repo), nil, nil)
}

// Fork implements [Backend].
func (g *Gitea) Fork(ctx context.Context, repo pull.Repo, owner string) (pull.Repo, error) {
	var out repoAnswer
	err := g.call(ctx, owner, "POST "+repoPath(repo)+"/forks", map[string]any{}, &out)
	return out.repo(), err
}

// SetPrivate implements [Backend].
func (g *Gitea) SetPrivate(ctx context.Context, repo pull.Repo, private bool) error {
	return g.call(ctx, "", "PATCH "+repoPath(repo), map[string]any{"private": private}, nil)
}

// Grant implements [Backend].
func (g *Gitea) Grant(ctx context.Context, repo pull.Repo, login string, p giteatest.Permission) error {
	path := repoPath(repo) + "/collaborators/" + login
	word, ok := map[giteatest.Permission]string{giteatest.Read: "read", giteatest.Write: "write", giteatest.Admin: "admin"}[p]
	if !ok {
		return g.call(ctx, "", "DELETE "+path, nil, nil)
	}
	return g.call(ctx, "", "PUT "+path, map[string]any{"permission": word}, nil)
}

// Push implements [Backend]. It waits until the pull requests from the branch
// have followed.
func (g *Gitea) Push(ctx context.Context, repo pull.Repo, push giteatest.Push) (string, error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	as := push.As
	if as == "" {
		as = "admin"
	}
	remote, err := url.Parse(g.root + "/" + repo.String() + ".git")
	if err != nil {
		return "", err
	}
	remote.User = url.UserPassword(as, g.token(push.As))
	w := workTree{dir: dir, name: as}
	sha, err := w.push(ctx, remote.String(), push)
	if err != nil {
		return "", fmt.Errorf("push to %s of %s: %w", push.Branch, repo, err)
	}
	return sha, g.followed(ctx, repo, push.Branch, sha)
}

// followed waits for what Gitea does after a push.
func (g *Gitea) followed(ctx context.Context, repo pull.Repo, branch, sha string) error {
	return poll(ctx, func() (bool, error) {
		tip, err := g.Tip(ctx, repo, branch)
		if unready(err) || err == nil && tip != sha {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var pulls []struct {
			Number int64 `json:"number"`
			Head   struct {
				Ref  string `json:"ref"`
				SHA  string `json:"sha"`
				Repo struct {
					ID int64 `json:"id"`
				} `json:"repo"`
			} `json:"head"`
		}
		// A list shows the reference of the pull request, not the branch.
		if err := g.call(ctx, "", "GET "+repoPath(repo)+"/pulls?state=open&limit=50", nil, &pulls); err != nil {
			return false, err
		}
		for _, p := range pulls {
			if p.Head.Repo.ID == repo.ID && p.Head.Ref == branch && p.Head.SHA != sha {
				return false, nil
			}
		}
		return true, nil
	})
}

// unready reports whether Gitea does not know a branch yet. After the first
// push to a repository it even answers 500 for a moment.
func unready(err error) bool {
	answer, ok := errors.AsType[*failure](err)
	return ok && (answer.code == http.StatusNotFound || answer.code == http.StatusInternalServerError)
}

// poll asks until the answer is yes, an error, or the context ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for Gitea: %w", context.Cause(ctx))
		}
	}
}

// workTree is a clone to push from.
type workTree struct {
	dir  string
	name string
}

func (w workTree) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-c", "user.name=" + w.name, "-c", "user.email=" + w.name + "@example.org", "-c", "commit.gpgsign=false", "-c", "core.quotepath=off",
	}, args...)...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// push makes the commit of a [giteatest.Push] and pushes it.
func (w workTree) push(ctx context.Context, remote string, push giteatest.Push) (string, error) {
	if _, err := w.git(ctx, "clone", "-q", "--no-checkout", remote, "."); err != nil {
		return "", err
	}
	existing, _ := w.git(ctx, "ls-remote", "origin", "refs/heads/"+push.Branch)
	start := "refs/remotes/origin/" + push.Branch
	if existing == "" || push.Force {
		start = "refs/remotes/origin/" + push.From
		if push.From == "" {
			start = "refs/remotes/origin/main"
		}
		if _, err := w.git(ctx, "rev-parse", "-q", "--verify", start); err != nil && push.From != "" {
			start = push.From
		}
	}
	if _, err := w.git(ctx, "checkout", "-q", "-B", "work", start); err != nil {
		if existing != "" || push.From != "" {
			return "", err
		}
		// The first push to an empty repository.
		if _, err := w.git(ctx, "checkout", "-q", "--orphan", "work"); err != nil {
			return "", err
		}
	}
	if push.Merge != "" {
		if _, err := w.git(ctx, "merge", "-q", "--no-commit", "--no-ff", "-X", "theirs", "refs/remotes/origin/"+push.Merge); err != nil {
			return "", err
		}
	}
	if err := w.change(ctx, push); err != nil {
		return "", err
	}
	message := push.Message
	if message == "" {
		message = "Change files"
	}
	if _, err := w.git(ctx, "commit", "-q", "--allow-empty", "-m", message); err != nil {
		return "", err
	}
	args := []string{"push", "-q", "origin", "HEAD:refs/heads/" + push.Branch}
	if push.Force {
		args = slices.Insert(args, 1, "--force")
	}
	if _, err := w.git(ctx, args...); err != nil {
		return "", err
	}
	return w.git(ctx, "rev-parse", "HEAD")
}

func (w workTree) change(ctx context.Context, push giteatest.Push) error {
	for path, content := range push.Files {
		full := filepath.Join(w.dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, path := range push.Remove {
		if err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	for from, to := range push.Rename {
		full := filepath.Join(w.dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(w.dir, filepath.FromSlash(from)), full); err != nil {
			return err
		}
	}
	for path, mode := range push.Modes {
		if mode != "100755" && mode != "100644" {
			return errors.New("only the mode of a plain file can be set")
		}
		bits := os.FileMode(0o644)
		if mode == "100755" {
			bits = 0o755
		}
		if err := os.Chmod(filepath.Join(w.dir, filepath.FromSlash(path)), bits); err != nil {
			return err
		}
	}
	_, err := w.git(ctx, "add", "--all")
	return err
}

// Tip implements [Backend].
func (g *Gitea) Tip(ctx context.Context, repo pull.Repo, branch string) (string, error) {
	var out struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	err := g.call(ctx, "", "GET "+repoPath(repo)+"/branches/"+url.PathEscape(branch), nil, &out)
	return out.Commit.ID, err
}

// DeleteBranch implements [Backend].
func (g *Gitea) DeleteBranch(ctx context.Context, repo pull.Repo, branch string) error {
	return g.call(ctx, "", "DELETE "+repoPath(repo)+"/branches/"+url.PathEscape(branch), nil, nil)
}

// SetStatus implements [Backend].
func (g *Gitea) SetStatus(ctx context.Context, repo pull.Repo, sha, as string, status pull.Status) error {
	return g.call(ctx, as, "POST "+repoPath(repo)+"/statuses/"+sha, map[string]any{
		"state": status.State, "context": status.Context, "description": status.Description,
	}, nil)
}
