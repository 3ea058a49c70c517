package gitea

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// maxFile bounds a file that is read, in bytes.
const maxFile = 1 << 20

// Files returns all files that a pull request changes, at one head. See
// [Client.FilesAt] to be sure which.
func (c *Client) Files(ctx context.Context, repo pull.Repo, number int64) ([]pull.File, error) {
	return c.FilesAt(ctx, repo, number, "")
}

// FilesAt returns all files that a pull request changes at the given head. It
// is [ErrIncomplete] when Gitea lists the files of another head: after a push
// it tells the new head before it lists its files.
func (c *Client) FilesAt(ctx context.Context, repo pull.Repo, number int64, head string) ([]pull.File, error) {
	const operation = "list files of %s#%d"
	list, err := exact(ctx, pages[sdk.ChangedFile]{
		client: c,
		route:  "/repos/:owner/:repo/pulls/:n/files",
		path:   fmt.Sprintf("%s/pulls/%d/files", repoPath(repo), number),
	}, func(f sdk.ChangedFile) string { return f.Filename })
	if err != nil {
		return nil, c.fail(err, nil, operation, repo, number)
	}
	out := make([]pull.File, 0, len(list))
	for _, f := range list {
		switch at := listedHead(f); {
		case at == "":
		case head == "":
			head = at
		case at != head:
			return nil, c.fail(fmt.Errorf("%w: it is of head %s, not %s", ErrIncomplete, at, head),
				nil, operation, repo, number)
		}
		out = append(out, pull.File{Path: f.Filename, Previous: f.PreviousFilename, Change: change(f.Status)})
	}
	return out, nil
}

// listedHead returns the commit that an entry of the list belongs to, which
// only its addresses tell, or "" where they tell none.
func listedHead(f sdk.ChangedFile) string {
	u, err := url.Parse(f.ContentsURL)
	if err != nil {
		return ""
	}
	if ref := u.Query().Get("ref"); checkCommit(ref) == nil {
		return ref
	}
	return ""
}

// change converts the status of a file. Gitea says "changed" for what others
// call modified; a word that is not known still is a change.
func change(status string) pull.Change {
	switch c := pull.Change(status); c {
	case pull.Added, pull.Deleted, pull.Renamed, pull.Copied, pull.Unchanged:
		return c
	}
	return pull.Modified
}

// RawFile returns a file, or [ErrNotFound]. The reference is the name of a
// branch, or a full commit id: that always means the commit, also where a
// branch has the same name, and costs one call more.
//
// It does not use Gitea's raw endpoint, which answers with the default branch
// when there is no such branch, and with a branch named like the commit when
// there is one: any writer could choose what is read.
func (c *Client) RawFile(ctx context.Context, repo pull.Repo, ref, file string) ([]byte, error) {
	const operation = "read %s at %s in %s"
	if ref == "" || !fs.ValidPath(file) || file == "." {
		return nil, c.fail(errors.New("a reference and a path inside the repository are needed"), nil, operation, file, ref, repo)
	}
	read := c.fileOnBranch
	if checkCommit(ref) == nil {
		read = c.fileInCommit
	}
	content, err := read(ctx, repo, ref, file)
	if err != nil {
		return nil, c.fail(err, nil, operation, file, ref, repo)
	}
	data, err := content.decode()
	return data, c.fail(err, nil, operation, file, ref, repo)
}

// content is a file as Gitea gives it within JSON.
type content struct {
	// Type is missing on a blob that was asked for by its id.
	Type     string  `json:"type"`
	Size     int64   `json:"size"`
	Encoding *string `json:"encoding"`
	Content  *string `json:"content"`
}

// maxContent bounds the JSON around a file of maxFile bytes.
const maxContent = 2 * maxFile

func (f content) decode() ([]byte, error) {
	switch {
	case f.Type != "" && f.Type != "file":
		return nil, fmt.Errorf("it is a %s: %w", f.Type, ErrNotFound)
	case f.Size > maxFile:
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, f.Size)
	case f.Content == nil || f.Encoding == nil || *f.Encoding != "base64":
		return nil, errors.New("answer of Gitea lacks the content")
	}
	data, err := base64.StdEncoding.DecodeString(*f.Content)
	if err != nil {
		return nil, fmt.Errorf("answer of Gitea: %w", err)
	}
	return data, nil
}

// fileOnBranch reads a file on a branch.
func (c *Client) fileOnBranch(ctx context.Context, repo pull.Repo, branch, file string) (content, error) {
	var raw json.RawMessage
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/contents/:path", limit: maxContent},
		repoPath(repo)+"/contents/"+escapePath(file), url.Values{"ref": {branch}}, &raw)
	if err != nil {
		return content{}, err
	}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		return content{}, fmt.Errorf("it is a folder: %w", ErrNotFound)
	}
	var out content
	if err := json.Unmarshal(raw, &out); err != nil {
		return content{}, fmt.Errorf("answer of Gitea: %w", err)
	}
	return out, nil
}

// fileInCommit finds a file through the tree of a commit.
func (c *Client) fileInCommit(ctx context.Context, repo pull.Repo, commit, file string) (content, error) {
	dir, name := path.Split(file)
	entry, err := c.treeEntry(ctx, repo, commit+":"+strings.TrimSuffix(dir, "/"), name)
	if err != nil {
		return content{}, err
	}
	if entry.Type != "blob" || entry.Mode == "120000" {
		return content{}, fmt.Errorf("it is no file: %w", ErrNotFound)
	}
	var out content
	_, err = c.getJSON(ctx, call{route: "/repos/:owner/:repo/git/blobs/:sha", limit: maxContent},
		repoPath(repo)+"/git/blobs/"+url.PathEscape(entry.SHA), nil, &out)
	return out, err
}

// treeEntry is an entry of a tree.
type treeEntry struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Type string `json:"type"`
	SHA  string `json:"sha"`
}

// treeEntry finds an entry of a tree, which is given in git's way:
// "<commit>:<folder>".
func (c *Client) treeEntry(ctx context.Context, repo pull.Repo, tree, name string) (treeEntry, error) {
	for n := 1; n <= maxPages; n++ {
		var list struct {
			Entries   []treeEntry `json:"tree"`
			Truncated bool        `json:"truncated"`
		}
		_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/git/trees/:sha"},
			repoPath(repo)+"/git/trees/"+url.PathEscape(tree), url.Values{"page": {strconv.Itoa(n)}}, &list)
		var answer *answerError
		if errors.As(err, &answer) && answer.code == http.StatusBadRequest {
			// So Gitea says that there is no such commit or folder.
			return treeEntry{}, ErrNotFound
		}
		if err != nil {
			return treeEntry{}, err
		}
		if i := slices.IndexFunc(list.Entries, func(e treeEntry) bool { return e.Path == name }); i >= 0 {
			return list.Entries[i], nil
		}
		if !list.Truncated || len(list.Entries) == 0 {
			return treeEntry{}, ErrNotFound
		}
	}
	return treeEntry{}, fmt.Errorf("%w: the folder has more than %d pages", ErrIncomplete, maxPages)
}
