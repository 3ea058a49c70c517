package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// maxDiff bounds a diff that is read, in bytes.
const maxDiff = 64 << 20

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

// Diff returns the identity of the change that a pull request makes, taken
// from the merge base to the commit that [Client.Head] tells. Whoever keeps it
// for a head makes sure that Head told that commit before and after.
func (c *Client) Diff(ctx context.Context, repo pull.Repo, number int64) (pull.Diff, error) {
	const operation = "read the diff of %s#%d"
	resp, err := c.get(ctx, call{route: "/repos/:owner/:repo/pulls/:n.diff", stream: true, limit: maxDiff},
		fmt.Sprintf("%s/pulls/%d.diff", repoPath(repo), number), url.Values{"binary": {"true"}})
	if err != nil {
		return pull.Diff{}, c.fail(err, nil, operation, repo, number)
	}
	defer func() { _ = resp.Body.Close() }()
	d, err := pull.ReadDiff(resp.Body)
	return d, c.fail(err, nil, operation, repo, number)
}

// RawFile returns a file on a branch, or [ErrNotFound]. The reference is the
// name of a branch. A full commit id is understood too and costs more calls,
// because Gitea's short way prefers a branch that is named like the commit.
func (c *Client) RawFile(ctx context.Context, repo pull.Repo, ref, path string) ([]byte, error) {
	const operation = "read file %s of %s at %s"
	if ref == "" || path == "" || strings.HasPrefix(path, "/") {
		return nil, c.fail(errors.New("a reference and a path inside the repository are needed"), nil, operation, path, repo, ref)
	}
	data, err := c.rawFile(ctx, repo, ref, path)
	return data, c.fail(err, nil, operation, path, repo, ref)
}

func (c *Client) rawFile(ctx context.Context, repo pull.Repo, ref, path string) ([]byte, error) {
	resp, err := c.get(ctx, call{route: "/repos/:owner/:repo/raw/:path", limit: maxFile},
		repoPath(repo)+"/raw/"+escapePath(path), url.Values{"ref": {ref}})
	if err != nil {
		return nil, err
	}
	return readAll(resp), nil
}
