package giteatest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
)

func listStatuses(r *request, repo *repo) error {
	var list []*sdk.Status
	for _, st := range repo.statuses[r.PathValue("sha")] {
		list = append(list, r.server.statusJSON(st))
	}
	// The default is by time, the newest first, as is what Gitea calls the least
	// index; what it calls the highest one is the oldest first.
	if r.URL.Query().Get("sort") != "highestindex" {
		slices.Reverse(list)
	}
	return page(r, list)
}

func createStatus(r *request, repo *repo) error {
	if err := r.need(repo, Write, "user should have a permission to write to a repo"); err != nil {
		return err
	}
	var in sdk.CreateStatusOption
	if err := r.body(&in); err != nil {
		return err
	}
	st, err := r.server.setStatus(repo, r.PathValue("sha"), r.doer, status{
		state: string(in.State), context: in.Context, description: in.Description, target: in.TargetURL,
	})
	if err != nil {
		return err
	}
	writeJSON(r.w, http.StatusCreated, r.server.statusJSON(st))
	return nil
}

// resolve finds a commit as Gitea does: a branch goes before a commit id, also
// where it is named like one.
func (r *repo) resolve(ref string) (string, bool) {
	if sha, ok := r.branches[ref]; ok {
		return sha, true
	}
	return ref, r.objects[ref]
}

func contentJSON(path string, f blob) map[string]any {
	return map[string]any{
		"name": path[strings.LastIndex(path, "/")+1:], "path": path, "type": "file", "sha": blobID(f.content),
		"size": len(f.content), "encoding": "base64", "content": base64.StdEncoding.EncodeToString([]byte(f.content)),
	}
}

func getContents(r *request, repo *repo) error {
	ref := r.URL.Query().Get("ref")
	if ref == "" {
		ref = "main"
	}
	sha, ok := repo.resolve(ref)
	if !ok {
		return errNotFound
	}
	path, tree := r.PathValue("path"), r.server.model.treeAt(sha)
	if f, ok := tree[path]; ok {
		writeJSON(r.w, http.StatusOK, contentJSON(path, f))
		return nil
	}
	entries, ok := folder(tree, path)
	if !ok {
		return errNotFound
	}
	var list []any
	for _, e := range entries {
		kind := "file"
		if e.Type == "tree" {
			kind = "dir"
		}
		list = append(list, map[string]any{"name": e.Path, "path": path + "/" + e.Path, "type": kind, "sha": e.SHA})
	}
	writeJSON(r.w, http.StatusOK, list)
	return nil
}

// getTree takes "<commit>:<folder>" as git does: for the commit, whatever
// branches there are.
func getTree(r *request, repo *repo) error {
	ref := r.PathValue("sha")
	sha, dir, _ := strings.Cut(ref, ":")
	entries, ok := folder(r.server.model.treeAt(sha), dir)
	if !ok || !repo.objects[sha] {
		return &apiError{http.StatusBadRequest, fmt.Sprintf("sha not found [%s]", ref)}
	}
	const perPage = 1000
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	from := min((max(n, 1)-1)*perPage, len(entries))
	to := min(from+perPage, len(entries))
	writeJSON(r.w, http.StatusOK, map[string]any{
		"sha": sha, "tree": entries[from:to], "truncated": to < len(entries), "page": max(n, 1), "total_count": len(entries),
	})
	return nil
}

func getBlob(r *request, repo *repo) error {
	for sha := range repo.objects {
		for path, f := range r.server.model.treeAt(sha) {
			if blobID(f.content) == r.PathValue("sha") {
				out := contentJSON(path, f)
				for _, absent := range []string{"name", "path", "type"} {
					delete(out, absent)
				}
				writeJSON(r.w, http.StatusOK, out)
				return nil
			}
		}
	}
	return &apiError{http.StatusBadRequest, "object does not exist"}
}

func getCommit(r *request, repo *repo) error {
	sha := r.PathValue("sha")
	if !repo.objects[sha] {
		return errNotFound
	}
	writeJSON(r.w, http.StatusOK, commitJSON(r.server.model.commits[sha]))
	return nil
}

func commitJSON(c *commit) map[string]any {
	parents := []any{}
	for _, p := range c.parents {
		parents = append(parents, map[string]any{"sha": p})
	}
	return map[string]any{"sha": c.sha, "parents": parents, "commit": map[string]any{"message": c.message}}
}

func getRef(r *request, repo *repo) error {
	name := "refs/" + r.PathValue("ref")
	sha := repo.branches[strings.TrimPrefix(name, "refs/heads/")]
	for _, p := range repo.pulls {
		if name == fmt.Sprintf("refs/pull/%d/head", p.number) {
			sha = p.headSHA
		}
	}
	if sha == "" {
		return errNotFound
	}
	// The filter has no "refs/" in front, so Gitea never finds it equal to the
	// name, and answers with a list.
	writeJSON(r.w, http.StatusOK, []any{map[string]any{"ref": name, "object": map[string]any{"type": "commit", "sha": sha}}})
	return nil
}

// listCommits answers with the commits of "sha" that are not in "not".
func listCommits(r *request, repo *repo) error {
	q := r.URL.Query()
	if !repo.objects[q.Get("sha")] {
		writeJSON(r.w, http.StatusNotFound, nil)
		return nil
	}
	not := q.Get("not")
	if not != "" && !repo.objects[not] {
		return fmt.Errorf("exit status 128 - fatal: bad object %s", not)
	}
	var list []any
	for _, sha := range slices.Backward(r.server.model.between(q.Get("sha"), not)) {
		list = append(list, commitJSON(r.server.model.commits[sha]))
	}
	return page(r, list)
}
