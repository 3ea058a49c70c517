//go:build e2e

package realserver_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

func plant(ctx context.Context, t *testing.T) *seed.Repository {
	t.Helper()
	name := world.Name(t)
	repo, err := seed.Plant(ctx, world, seed.Options{Owner: name, Namespace: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := repo.Uproot(ctx); err != nil {
			t.Error(err)
		}
	})
	return repo
}

func TestServersComeBack(t *testing.T) {
	ctx := limit(t, 3*time.Minute)
	repo := plant(ctx, t)
	if err := repo.Bootstrap(ctx); err != nil {
		t.Fatal(err)
	}
	clock := time.Now()
	lap := func(what string) {
		t.Logf("%-50s %6.2fs", what, time.Since(clock).Seconds())
		clock = time.Now()
	}

	world.Gitea.Kill()
	if resp, err := http.Get(world.Gitea.URL()); err == nil {
		_ = resp.Body.Close()
		t.Errorf("a killed Gitea answers %s", resp.Status)
	}
	lap("killed Gitea")
	if _, err := world.Kube.Wait(ctx, repo.Source(), realserver.HasCondition("Ready", "False")); err != nil {
		t.Fatal(err)
	}
	lap("Flux misses it")
	if err := world.Gitea.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	lap("restarted Gitea")
	if _, err := repo.Clone(ctx, repo.Mallory, t.TempDir()); err != nil {
		t.Errorf("the repository is not as it was: %v", err)
	}
	if _, err := world.Kube.Wait(ctx, repo.Source(), realserver.HasCondition("Ready", "True")); err != nil {
		t.Fatal(err)
	}
	lap("Flux has it again")

	world.Kube.Kill()
	if _, err := world.Kube.Get(ctx, repo.Source()); err == nil {
		t.Error("a killed API server answers")
	}
	lap("killed the API server")
	if err := world.Kube.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	lap("restarted the API server")

	// That Flux works again shows in a push that reaches the cluster.
	clone, err := repo.Clone(ctx, repo.Alice, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	head, err := clone.Commit(ctx, realserver.Change{Message: "Say more", Write: map[string]string{"README.md": "more\n"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := clone.Push(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	if _, err := world.Kube.Wait(ctx, repo.Kustomization("platform"), applied(head)); err != nil {
		t.Fatal(err)
	}
	lap("Flux applied a push")
	world.Flux.Kill()
	if err := world.Flux.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	lap("killed and restarted Flux")
}

func TestMergedPullRequestReachesTheCluster(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	repo := plant(ctx, t)
	if err := repo.InstallStorageProfiles(ctx); err != nil {
		t.Fatal(err)
	}
	if err := repo.Bootstrap(ctx); err != nil {
		t.Fatal(err)
	}
	pull, _, err := repo.OpenMove(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	alice, err := world.Gitea.API(ctx, repo.Alice.Token)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := alice.ListPullRequestFiles(repo.Owner, repo.Name, pull.Index, sdk.ListPullRequestFilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		got[f.Filename] = f.Status
	}
	want := map[string]string{
		"clusters/base/apps.yaml":                   "changed",
		"clusters/base/kustomization.yaml":          "changed",
		"clusters/base/platform-config-cdi.yaml":    "added",
		"platform-config/kustomization.yaml":        "changed",
		"platform-config-cdi/kustomization.yaml":    "added",
		"platform-config-cdi/storage-profiles.yaml": "renamed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of the pull request (-want +got):\n%s", diff)
	}
	if err := merge(ctx, alice, repo, pull.Index); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	if _, err := world.Kube.Wait(ctx, repo.Kustomization("platform-config-cdi"), realserver.HasCondition("Ready", "True")); err != nil {
		t.Fatal(err)
	}
	t.Logf("from the merge to platform-config-cdi Ready: %s", time.Since(started).Round(10*time.Millisecond))
}

// merge merges a pull request as soon as Gitea has finished looking for conflicts.
func merge(ctx context.Context, c *sdk.Client, repo *seed.Repository, index int64) error {
	for {
		merged, _, err := c.MergePullRequest(repo.Owner, repo.Name, index, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge})
		if err != nil || merged {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("Gitea did not merge the pull request")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestGiteaBelowAPath(t *testing.T) {
	ctx := limit(t, time.Minute)
	started := time.Now()
	g, err := realserver.StartGitea(ctx, realserver.GiteaOptions{
		Options:  realserver.Options{Dir: t.TempDir()},
		SubPath:  "git",
		Settings: map[string]string{"api.DEFAULT_PAGING_NUM": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	t.Logf("a second Gitea started in %s", time.Since(started).Round(10*time.Millisecond))
	if !strings.HasSuffix(g.URL(), "/git/") {
		t.Errorf("its URL is %s", g.URL())
	}
	bob, err := g.CreateUser(ctx, "bob")
	if err != nil {
		t.Fatal(err)
	}
	api, err := g.API(ctx, bob.Token)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two", "three"} {
		repo, _, err := api.CreateRepo(sdk.CreateRepoOption{Name: name, AutoInit: true})
		if err != nil {
			t.Fatal(err)
		}
		if want := g.URL() + "bob/" + name; repo.HTMLURL != want {
			t.Errorf("the page of the repository is %s, want %s", repo.HTMLURL, want)
		}
	}
	// Without a page the SDK asks for what is the default.
	repos, _, err := api.ListMyRepos(sdk.ListReposOptions{ListOptions: sdk.ListOptions{Page: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if len(repos) != 2 {
		t.Errorf("a page has %d repositories, want the 2 of the settings", len(repos))
	}
	clone, err := g.Clone(ctx, bob, "bob/one", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clone.Commit(ctx, realserver.Change{Message: "More", Write: map[string]string{"more.txt": "more"}}); err != nil {
		t.Fatal(err)
	}
	if err := clone.Push(ctx, "main"); err != nil {
		t.Error(err)
	}
}

func TestWebhookReachesTheTest(t *testing.T) {
	ctx := limit(t, time.Minute)
	repo := plant(ctx, t)
	type delivery struct{ event, signature, body string }
	deliveries := make(chan delivery, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		deliveries <- delivery{r.Header.Get("X-Gitea-Event"), r.Header.Get("X-Gitea-Signature"), string(body)}
	}))
	defer receiver.Close()
	alice, err := world.Gitea.API(ctx, repo.Alice.Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := alice.CreateRepoHook(repo.Owner, repo.Name, sdk.CreateHookOption{
		Type: sdk.HookTypeGitea, Active: true, Events: []string{"pull_request"},
		Config: map[string]string{"url": receiver.URL, "content_type": "json", "secret": "s3cret"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := repo.OpenMove(ctx, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	opened := time.Now()
	select {
	case d := <-deliveries:
		t.Logf("the webhook came after %s", time.Since(opened).Round(time.Millisecond))
		if d.event != "pull_request" || len(d.signature) != 64 || !strings.Contains(d.body, `"action": "opened"`) {
			t.Errorf("got event %q, signature %q, body %.200s", d.event, d.signature, d.body)
		}
	case <-ctx.Done():
		t.Fatal("no webhook came")
	}
}

func TestCloneCanDoWhatPeopleDo(t *testing.T) {
	ctx := limit(t, time.Minute)
	repo := plant(ctx, t)
	clone, err := repo.Clone(ctx, repo.Bob, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(clone.Branch(ctx, "work", "origin/main"))
	odd := []string{"with space.txt", `with "quotes".txt`, "ünïcode.txt", "100%.txt", "a#b.txt", "new\nline.txt"}
	write := map[string]string{}
	for _, name := range odd {
		write["odd/"+name] = name
	}
	date := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	_, err = clone.Commit(ctx, realserver.Change{
		Message: "Odd names", Write: write, Date: date, Author: "Carol <carol@example.org>",
		Rename: map[string]string{"README.md": "docs/README.md"},
		Remove: []string{"apps/controller-vm.yaml"},
		Mode:   map[string]fs.FileMode{"platform/gateway.yaml": 0o755},
	})
	must(err)
	show, err := clone.Git(ctx, "show", "--no-patch", "--format=%an %ae %at %cn %ct")
	must(err)
	if want := "Carol carol@example.org 981173106 bob 981173106"; show != want {
		t.Errorf("the commit says %q, want %q", show, want)
	}
	changes, err := clone.Git(ctx, "show", "--format=", "--raw", "--no-abbrev", "-z")
	must(err)
	for _, want := range []string{
		"R100\x00README.md\x00docs/README.md\x00", "D\x00apps/controller-vm.yaml\x00", "A\x00odd/new\nline.txt\x00",
		":100644 100755 ",
	} {
		if !strings.Contains(changes, want) {
			t.Errorf("the commit lacks %q in %q", want, changes)
		}
	}
	must(clone.Push(ctx, "work"))

	// Meanwhile main moves on.
	other, err := repo.Clone(ctx, repo.Alice, t.TempDir())
	must(err)
	moved, err := other.Commit(ctx, realserver.Change{Message: "Move on", Write: map[string]string{"NOTES.md": "x\n"}})
	must(err)
	must(other.Push(ctx, "main"))
	must(clone.Fetch(ctx))
	must(clone.Rebase(ctx, "origin/main"))
	if base, err := clone.Git(ctx, "merge-base", "HEAD", "origin/main"); err != nil || base != moved {
		t.Errorf("after the rebase the branch starts at %s (%v), want %s", base, err, moved)
	}
	if err := clone.Push(ctx, "work"); err == nil {
		t.Error("a push that loses commits succeeded")
	}
	must(clone.ForcePush(ctx, "work"))
	if _, err := clone.Commit(ctx, realserver.Change{Message: "Nothing"}); err == nil {
		t.Error("a commit of nothing succeeded")
	}
	config, err := os.ReadFile(filepath.Join(clone.Dir, ".git", "config"))
	must(err)
	if strings.Contains(string(config), repo.Bob.Token) {
		t.Error("the token is in the clone")
	}

	outsider, err := repo.Clone(ctx, repo.Mallory, t.TempDir())
	must(err)
	_, err = outsider.Commit(ctx, realserver.Change{Message: "Mine now", Write: map[string]string{"README.md": "mine\n"}})
	must(err)
	if err := outsider.Push(ctx, "main"); err == nil || strings.Contains(err.Error(), repo.Mallory.Token) {
		t.Errorf("an outsider's push gave %v", err)
	}
}

func TestAccountMayDoWhatItsRulesAllow(t *testing.T) {
	ctx := limit(t, time.Minute)
	namespace := world.Name(t)
	if err := world.Kube.CreateNamespace(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	access, err := world.Kube.CreateAccount(ctx, namespace, "reader", []map[string][]string{
		{"apiGroups": {""}, "resources": {"configmaps"}, "verbs": {"list"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := realserver.NewProxy(world.Kube.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	config, err := access.Via(proxy.Addr()).Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func(resource string) error {
		_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list("configmaps"); err != nil {
		t.Errorf("what the role allows failed: %v", err)
	}
	if err := list("secrets"); !apierrors.IsForbidden(err) {
		t.Errorf("what the role does not allow gave %v", err)
	}
	if err := world.Kube.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).
		Namespace(namespace).Delete(ctx, "reader", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	for !apierrors.IsUnauthorized(list("configmaps")) {
		select {
		case <-ctx.Done():
			t.Fatal("the token of a deleted service account is still good")
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Logf("the token was revoked after %s", time.Since(started).Round(100*time.Millisecond))
}
