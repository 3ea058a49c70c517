package realserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Clone is somebody's working copy of a repository. It talks to Gitea over HTTP as that person. Its
// methods must not be called concurrently.
type Clone struct {
	// Dir is the working tree.
	Dir  string
	user User
	env  []string
}

// Clone clones a repository ("owner/name") into dir, which must not exist or be empty, as the user. A test
// that looks for races keeps one clone for each of its goroutines.
func (g *Gitea) Clone(ctx context.Context, u User, repository, dir string) (*Clone, error) {
	header := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Name+":"+u.Token))
	c := &Clone{Dir: dir, user: u, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		// Through the environment the token neither shows in the process list nor stays in the clone.
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=" + header,
		"GIT_CONFIG_KEY_1=advice.detachedHead", "GIT_CONFIG_VALUE_1=false",
	}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("clone %s: %w", repository, err)
	}
	if _, err := c.Git(ctx, "clone", "--quiet", g.url+repository+".git", "."); err != nil {
		return nil, fmt.Errorf("clone %s as %s: %w", repository, u.Name, err)
	}
	return c, nil
}

// Git runs a git command in the working tree and returns its standard output without the last line break.
func (c *Clone) Git(ctx context.Context, args ...string) (string, error) {
	return c.git(ctx, nil, args...)
}

func (c *Clone) git(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.Dir
	cmd.Env = append(append([]string{
		"GIT_AUTHOR_NAME=" + c.user.Name, "GIT_AUTHOR_EMAIL=" + c.user.Email,
		"GIT_COMMITTER_NAME=" + c.user.Name, "GIT_COMMITTER_EMAIL=" + c.user.Email,
	}, c.env...), env...)
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, lastLines(complaints.String(), 10))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Change is what one commit does. Paths are relative to the working tree and may hold any character that
// a file name may. What is renamed can also be written.
type Change struct {
	// Message of the commit. It must not be empty.
	Message string
	// Rename maps old paths to new ones.
	Rename map[string]string
	// Write maps paths to new contents. Folders are created.
	Write map[string]string
	// Mode sets the mode of files; of it git keeps only whether the owner may execute.
	Mode map[string]fs.FileMode
	// Remove lists files and folders.
	Remove []string
	// Date is the author's and the committer's date. Zero means now.
	Date time.Time
	// Author and Committer are written "Name <mail>"; empty means the owner of the clone.
	Author, Committer string
}

// Commit makes a change on the current branch and returns the commit's id. A commit that changes nothing
// is an error.
func (c *Clone) Commit(ctx context.Context, change Change) (string, error) {
	if err := c.edit(change); err != nil {
		return "", fmt.Errorf("commit %q: %w", change.Message, err)
	}
	var env []string
	if !change.Date.IsZero() {
		date := change.Date.Format(time.RFC3339)
		env = append(env, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	}
	for role, person := range map[string]string{"AUTHOR": change.Author, "COMMITTER": change.Committer} {
		if person == "" {
			continue
		}
		name, mail, ok := strings.Cut(strings.TrimSuffix(person, ">"), " <")
		if !ok {
			return "", fmt.Errorf("commit %q: %q is not of the form Name <mail>", change.Message, person)
		}
		env = append(env, "GIT_"+role+"_NAME="+name, "GIT_"+role+"_EMAIL="+mail)
	}
	if _, err := c.Git(ctx, "add", "--all"); err != nil {
		return "", fmt.Errorf("commit %q: %w", change.Message, err)
	}
	if _, err := c.git(ctx, env, "commit", "--quiet", "--message", change.Message); err != nil {
		return "", fmt.Errorf("commit %q: %w", change.Message, err)
	}
	return c.Head(ctx)
}

func (c *Clone) edit(change Change) error {
	path := func(name string) string { return filepath.Join(c.Dir, filepath.FromSlash(name)) }
	for from, to := range change.Rename {
		if err := os.MkdirAll(filepath.Dir(path(to)), 0o755); err != nil {
			return err
		}
		if err := os.Rename(path(from), path(to)); err != nil {
			return err
		}
	}
	for name, content := range change.Write {
		if err := os.MkdirAll(filepath.Dir(path(name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path(name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	for name, mode := range change.Mode {
		if err := os.Chmod(path(name), mode); err != nil {
			return err
		}
	}
	for _, name := range change.Remove {
		if _, err := os.Lstat(path(name)); err != nil {
			return err
		}
		if err := os.RemoveAll(path(name)); err != nil {
			return err
		}
	}
	return nil
}

// Head returns the id of the current commit.
func (c *Clone) Head(ctx context.Context) (string, error) { return c.Git(ctx, "rev-parse", "HEAD") }

// Branch makes a branch that starts at from (a branch such as origin/main, or a commit) and goes there. An
// existing branch of that name is moved.
func (c *Clone) Branch(ctx context.Context, name, from string) error {
	_, err := c.Git(ctx, "checkout", "--quiet", "--no-track", "-B", name, from)
	return err
}

// Checkout goes to an existing branch or commit.
func (c *Clone) Checkout(ctx context.Context, name string) error {
	_, err := c.Git(ctx, "checkout", "--quiet", name)
	return err
}

// Fetch learns what others have pushed.
func (c *Clone) Fetch(ctx context.Context) error {
	_, err := c.Git(ctx, "fetch", "--quiet", "--prune", "origin")
	return err
}

// Rebase puts the current branch on top of another, e.g. origin/main. A conflict is an error and leaves
// the branch as it was.
func (c *Clone) Rebase(ctx context.Context, onto string) error {
	if _, err := c.Git(ctx, "rebase", "--quiet", onto); err != nil {
		_, _ = c.Git(ctx, "rebase", "--abort")
		return err
	}
	return nil
}

// Push pushes the current commit to a branch of Gitea.
func (c *Clone) Push(ctx context.Context, branch string) error {
	_, err := c.Git(ctx, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	return err
}

// ForcePush pushes the current commit to a branch of Gitea, whatever is there now.
func (c *Clone) ForcePush(ctx context.Context, branch string) error {
	_, err := c.Git(ctx, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	return err
}
