package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

func identity(t *testing.T, e env) {
	self, err := e.client.Self(e.ctx)
	must(t, err)
	same(t, "Self", e.bot, self)

	version, err := e.client.Version(e.ctx)
	must(t, err)
	if !strings.HasPrefix(version, "1.26.") {
		t.Errorf("version %q: the suite was written for 1.26", version)
	}

	want := e.repo(t, "identity")
	r, branch, err := e.client.Repo(e.ctx, strings.ToUpper(want.Owner), strings.ToUpper(want.Name))
	must(t, err)
	same(t, "Repo by a name in other letter case", want, r)
	same(t, "default branch", "main", branch)
	r, branch, err = e.client.RepoByID(e.ctx, want.ID)
	must(t, err)
	same(t, "RepoByID", want, r)
	same(t, "default branch", "main", branch)

	_, _, err = e.client.Repo(e.ctx, want.Owner, "none")
	wantError(t, "a missing repository", err, gitea.ErrNotFound)
	_, _, err = e.client.RepoByID(e.ctx, 1<<40)
	wantError(t, "a missing repository id", err, gitea.ErrNotFound)

	_, err = e.clientOf(t, "0123456789012345678901234567890123456789").Self(e.ctx)
	wantError(t, "a wrong token", err, gitea.ErrUnauthorized)
	if err != nil && strings.Contains(err.Error(), "0123456789") {
		t.Errorf("the error tells the token: %v", err)
	}
}

func pullRequest(t *testing.T, e env) {
	r := e.repo(t, "pull")
	start, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	number, head := e.open(t, r, "feature/x")

	get := func() pull.Pull {
		t.Helper()
		p, err := e.client.Pull(e.ctx, r, number)
		must(t, err)
		return p
	}
	got := get()
	want := pull.Pull{
		Repo: r, Number: number, Title: "Change feature/x", Body: "Because.", Author: e.alice, State: pull.Open,
		URL:       fmt.Sprintf("%s%s/pulls/%d", e.URL(), r, number),
		Head:      pull.Branch{Repo: r.String(), Name: "feature/x", SHA: head},
		Base:      pull.Branch{Repo: r.String(), Name: "main", SHA: start},
		MergeBase: start,
		CreatedAt: got.CreatedAt, UpdatedAt: got.UpdatedAt,
	}
	same(t, "an opened pull request", want, got)
	if got.CreatedAt.IsZero() || got.UpdatedAt.Before(got.CreatedAt) {
		t.Errorf("created %v, updated %v", got.CreatedAt, got.UpdatedAt)
	}

	must(t, e.EditPull(e.ctx, r, number, e.alice.Login, giteatest.Edit{Title: "WIP: later", Body: "Because of that."}))
	must(t, e.SetLabels(e.ctx, r, number, e.bot.Login, "urgent"))
	_, err = e.Comment(e.ctx, r, number, e.bob.Login, "Fine?")
	must(t, err)
	got = get()
	same(t, "title", "WIP: later", got.Title)
	same(t, "body", "Because of that.", got.Body)
	same(t, "draft", true, got.Draft)
	same(t, "labels", []string{"urgent"}, got.Labels)
	same(t, "comments", 1, got.Comments)

	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, false))
	same(t, "state after closing", pull.Closed, get().State)
	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, true))
	must(t, e.EditPull(e.ctx, r, number, e.alice.Login, giteatest.Edit{Title: "Now", Body: ""}))
	same(t, "state after opening again", pull.Open, get().State)

	head = e.push(t, r, giteatest.Push{Branch: "feature/x", Files: map[string]string{"more.yaml": "y: 1\n"}})
	same(t, "head after a push", head, get().Head.SHA)
	at, err := e.client.Head(e.ctx, r, number)
	must(t, err)
	same(t, "Head", head, at)

	moved := e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "main", Files: map[string]string{"other.yaml": "z: 1\n"}})
	got = get()
	same(t, "base after a push to it", moved, got.Base.SHA)
	same(t, "merge base after a push to the base", start, got.MergeBase)

	merge, err := e.Merge(e.ctx, r, number, e.bot.Login)
	must(t, err)
	same(t, "state after merging", pull.Merged, get().State)
	tip, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	same(t, "base branch after merging", merge, tip)
	must(t, e.DeleteBranch(e.ctx, r, "feature/x"))
	got = get()
	same(t, "head after its branch was deleted", pull.Branch{Repo: r.String(), Name: "feature/x", SHA: head}, got.Head)

	_, err = e.client.Pull(e.ctx, r, 99)
	wantError(t, "a missing pull request", err, gitea.ErrNotFound)
	_, err = e.client.Head(e.ctx, r, 99)
	wantError(t, "the head of a missing pull request", err, gitea.ErrNotFound)
}

func pullList(t *testing.T, e env) {
	r := e.repo(t, "list")
	list, err := e.client.OpenPulls(e.ctx, r)
	must(t, err)
	same(t, "pull requests of a new repository", 0, len(list))
	first, _ := e.open(t, r, "one")
	second, head := e.open(t, r, "two")
	third, _ := e.open(t, r, "three")
	must(t, e.SetOpen(e.ctx, r, first, e.alice.Login, false))
	list, err = e.client.OpenPulls(e.ctx, r)
	must(t, err)
	if len(list) != 2 {
		t.Fatalf("%d pull requests, want 2", len(list))
	}
	same(t, "numbers", []int64{second, third}, []int64{list[0].Number, list[1].Number})
	one, err := e.client.Pull(e.ctx, r, second)
	must(t, err)
	same(t, "one of the list against itself", one, list[0])
	same(t, "its head", head, list[0].Head.SHA)
}

func fork(t *testing.T, e env) {
	r := e.repo(t, "forked")
	copied, err := e.Fork(e.ctx, r, e.bob.Login)
	must(t, err)
	head := e.push(t, copied, giteatest.Push{As: e.bob.Login, Branch: "patch", Files: map[string]string{"new.yaml": "n: 1\n"}})
	number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.bob.Login, Title: "From a fork", Head: "patch", Fork: copied})
	must(t, err)
	p, err := e.client.Pull(e.ctx, r, number)
	must(t, err)
	same(t, "head in a fork", pull.Branch{Repo: copied.String(), Name: "patch", SHA: head}, p.Head)

	must(t, e.DeleteRepo(e.ctx, copied))
	p, err = e.client.Pull(e.ctx, r, number)
	must(t, err)
	same(t, "head in a deleted fork", pull.Branch{Name: "patch", SHA: head}, p.Head)
	list, err := e.client.FilesAt(e.ctx, r, number, head)
	must(t, err)
	same(t, "files from a deleted fork", []pull.File{{Path: "new.yaml", Change: pull.Added}}, list)
}

func files(t *testing.T, e env) {
	r := e.repo(t, "files")
	odd := `odd "né" #%.yaml`
	head := e.push(t, r, giteatest.Push{
		Branch: "change",
		Files: map[string]string{
			"clusters/base/app.yaml": strings.Replace(base["clusters/base/app.yaml"], "b: 2", "b: 3", 1),
			"logo.png":               "\x89PNG\x00\x01",
			odd:                      "x\n",
		},
		Remove: []string{"README.md"},
		Rename: map[string]string{"clusters/base/old name.txt": "apps/new name.txt"},
		Modes:  map[string]string{"run.sh": "100755"},
	})
	number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.alice.Login, Title: "Files", Head: "change"})
	must(t, err)
	list, err := e.client.FilesAt(e.ctx, r, number, head)
	must(t, err)
	want := []pull.File{
		{Path: "README.md", Change: pull.Deleted},
		{Path: "apps/new name.txt", Previous: "clusters/base/old name.txt", Change: pull.Renamed},
		{Path: "clusters/base/app.yaml", Change: pull.Modified},
		{Path: "logo.png", Change: pull.Added},
		{Path: odd, Change: pull.Added},
		{Path: "run.sh", Change: pull.Unchanged},
	}
	slices.SortFunc(list, func(a, b pull.File) int { return strings.Compare(a.Path, b.Path) })
	same(t, "files", want, list)

	_, err = e.client.FilesAt(e.ctx, r, number, strings.Repeat("1", 40))
	wantError(t, "files of another head", err, gitea.ErrIncomplete)
	_, err = e.client.Files(e.ctx, r, 99)
	wantError(t, "files of a missing pull request", err, gitea.ErrNotFound)
}

func manyFiles(t *testing.T, e env) {
	r := e.repo(t, "many")
	for _, n := range []int{31, 51, 120} {
		branch := fmt.Sprintf("many-%d", n)
		written := map[string]string{}
		for i := range n - 1 {
			written[fmt.Sprintf("a/%03d.yaml", i)] = fmt.Sprintf("i: %d-%d\n", n, i)
		}
		written["zz/last.yaml"] = "last: true\n"
		head := e.push(t, r, giteatest.Push{Branch: branch, Files: written})
		number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.alice.Login, Title: branch, Head: branch})
		must(t, err)
		list, err := e.client.FilesAt(e.ctx, r, number, head)
		must(t, err)
		got := map[string]bool{}
		for _, f := range list {
			got[f.Path] = true
		}
		same(t, branch, slices.Sorted(maps.Keys(written)), slices.Sorted(maps.Keys(got)))
	}
}

func diff(t *testing.T, e env) {
	r := e.repo(t, "diff")
	app := base["clusters/base/app.yaml"]
	change := giteatest.Push{Branch: "change", Files: map[string]string{
		"clusters/base/app.yaml": strings.Replace(app, "g: 7", "g: 8", 1),
		"logo.png":               "\x89PNG\x00\x01" + strings.Repeat("\x02\x03", 200),
		"no newline.txt":         "end",
	}, Modes: map[string]string{"run.sh": "100755"}}
	e.push(t, r, change)
	number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.alice.Login, Title: "Diff", Head: "change"})
	must(t, err)
	// Gitea takes a moment to find the new merge base, and says so to nobody.
	read := func() pull.Diff {
		t.Helper()
		var d pull.Diff
		e.eventually(t, "a diff of the head", func() bool {
			p, err := e.client.Pull(e.ctx, r, number)
			must(t, err)
			d, err = e.client.DiffAt(e.ctx, p)
			if !errors.Is(err, gitea.ErrIncomplete) {
				must(t, err)
			}
			return err == nil
		})
		return d
	}
	first := read()
	same(t, "files in the diff", 4, len(first.Files))
	if !first.Same(read()) {
		t.Error("the same diff, read twice, is not the same")
	}

	// The base changes in the same file, and the branch is rebased onto it.
	e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "main", Files: map[string]string{
		"clusters/base/app.yaml": strings.Replace(app, "a: 1\n", "a: 1\nnew: 0\n", 1),
	}})
	change.Force, change.From = true, "main"
	change.Files["clusters/base/app.yaml"] = strings.NewReplacer("a: 1\n", "a: 1\nnew: 0\n", "g: 7", "g: 8").Replace(app)
	e.push(t, r, change)
	if rebased := read(); !first.Same(rebased) {
		t.Errorf("a rebase changed the diff:\n%+v\n%+v", first, rebased)
	}

	// The base moves on elsewhere, and the branch takes it in by a merge.
	e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "main", Files: map[string]string{"elsewhere.yaml": "e: 1\n"}})
	e.push(t, r, giteatest.Push{Branch: "change", Merge: "main"})
	if merged := read(); !first.Same(merged) {
		t.Errorf("a merge of the base changed the diff:\n%+v\n%+v", first, merged)
	}

	e.push(t, r, giteatest.Push{Branch: "change", Files: map[string]string{"no newline.txt": "end."}})
	if first.Same(read()) {
		t.Error("another change has the same diff")
	}
	_, err = e.client.Diff(e.ctx, r, 99)
	wantError(t, "the diff of a missing pull request", err, gitea.ErrNotFound)
}

// diffText has what a text patch can hold, and the identity that a real Gitea
// gives it. Binary files are not in it: their identity depends on how the
// server compresses.
func diffText(t *testing.T, e env) {
	r := e.repo(t, "identity-of-diff")
	e.push(t, r, giteatest.Push{
		Branch: "change",
		Files: map[string]string{
			"clusters/base/app.yaml": strings.NewReplacer("a: 1\n", "", "g: 7", "g: 8").Replace(base["clusters/base/app.yaml"]),
			"new file.yaml":          "x: 1\ny: 2\n",
			"no newline":             "end",
			"empty":                  "",
			"ünï\t\"code\".yaml":     "u: 1\n",
		},
		Remove: []string{"README.md"},
		Rename: map[string]string{"clusters/base/old name.txt": "apps/new name.txt"},
		Modes:  map[string]string{"run.sh": "100755"},
	})
	number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: e.alice.Login, Title: "Diff", Head: "change"})
	must(t, err)
	got, err := e.client.Diff(e.ctx, r, number)
	must(t, err)
	same(t, "identity", pull.Diff{Files: []pull.FileDiff{
		{Header: "2aedb69afe73518fc6044c7337250817", Old: "2fd89ce", New: "0000000", Hunks: "1e0a484e371b518981dc664de972048d"},
		{Header: "54f9ba904b741b4ff5b71dc816d7a31e"},
		{Header: "363c1ed66a347a303d01a15670a20e49", Old: "3e1edb0", New: "937a399", Hunks: "6a35cd0cc91449b2fb2108e7f074549c"},
		{Header: "9a3a232816f23230d829d514a9bfa6c4", Old: "0000000", New: "e69de29"},
		{Header: "d6bf2e0e69e1405cef720dbf3a9b06da", Old: "0000000", New: "a464ffd", Hunks: "2de992ca985e7de8dfb8512582020c64"},
		{Header: "996233f117511d1f319a11c68bd2762b", Old: "0000000", New: "e32b0df", Hunks: "5f3c2cfca4814d3e9b8054d0374d2da2"},
		{Header: "63f1db63fbfa672ccab9f54eacf62498"},
		{Header: "640cb04fb7decdddb312e8726b545194", Old: "0000000", New: "b1b2614", Hunks: "a4b0fdea08dd3947574d3d984f64659e"},
	}}, got)
}
