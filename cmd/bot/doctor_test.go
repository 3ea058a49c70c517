package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/doctor"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/kube"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// goodPolicy leaves nothing to be said.
const goodPolicy = testPolicy + "override: {from: {users: [alice]}}\n"

// clinic is a world with somebody who examines it.
type clinic struct {
	*world
	doctor *examiner
	// deaf makes Gitea forget test deliveries.
	deaf   bool
	probes int
	// excess are rights in the cluster beyond the least.
	excess func(kube.Right) bool
}

func newClinic(t *testing.T, files map[string]string) *clinic {
	t.Helper()
	if files == nil {
		files = map[string]string{".gitea/signalbox.yaml": goodPolicy}
	}
	c := &clinic{world: newWorld(t, worldOptions{alone: true, files: files}), excess: func(kube.Right) bool { return false }}
	c.cluster.Kustomization("flux-system", "platform-config").Ready("main@sha1:" + strings.Repeat("a", 40))
	c.must(os.Chmod(c.dir, 0o700))
	c.forge.Fail(c.answer)
	return c
}

// answer gives what the stand-in leaves out: the refusal that names the scopes
// of the token, test deliveries, and the list of branches.
func (c *clinic) answer(r *http.Request) *giteatest.Response {
	switch {
	case strings.HasSuffix(r.URL.Path, "/notifications/new"):
		return &giteatest.Response{Code: http.StatusForbidden, Body: fmt.Sprintf(
			`{"message":"token does not have at least one of required scope(s), required=[read:notification], token scope=%s"}`,
			strings.Join(gitea.NeededScopes(), ","))}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/tests"):
		if !c.deaf {
			c.probes++
			_, err := c.forge.Push(r.Context(), c.repo, giteatest.Push{
				Branch: fmt.Sprint("probe-", c.probes), From: "main", As: "alice", Files: map[string]string{"probe": fmt.Sprint(c.probes)}, Message: "probe",
			})
			if err != nil {
				return &giteatest.Response{Code: http.StatusInternalServerError, Body: err.Error()}
			}
		}
		return &giteatest.Response{Code: http.StatusNoContent}
	case strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/branches"):
		return &giteatest.Response{
			Code: http.StatusOK, Header: http.Header{"X-Total-Count": {"2"}, "Content-Type": {"application/json"}},
			Body: `[{"name":"main"},{"name":"release/1"}]`,
		}
	}
	return nil
}

// examine looks, and returns what is not fine as "severity check: what".
func (c *clinic) examine() []string {
	c.t.Helper()
	findings, _ := c.look()
	var out []string
	for _, f := range doctor.NewReport(time.Now(), findings).Findings {
		if f.Severity != doctor.OK {
			out = append(out, fmt.Sprintf("%s %s: %s", f.Severity, f.Check, f.What))
		}
	}
	return out
}

func (c *clinic) look() ([]doctor.Finding, []fix) {
	c.t.Helper()
	if c.doctor == nil {
		c.doctor = c.examiner()
	}
	return c.doctor.look(c.t.Context())
}

// examiner is configured as the signalbox of the world is.
func (c *clinic) examiner() *examiner {
	c.t.Helper()
	root, err := url.Parse(c.forge.URL())
	c.must(err)
	addr := c.addr
	if addr == "" {
		addr = "signalbox.example.org"
	}
	self, err := url.Parse("http://" + addr + "/")
	c.must(err)
	cfg := &config.Config{
		Gitea: config.Gitea{
			URL: root, Token: secret.New(c.token), Timeout: 5 * time.Second,
			Webhook: config.Webhook{URL: self, Manage: true, Secret: secret.New("a webhook secret")},
		},
		Repositories: []config.Repository{{Owner: owner, Name: repoName}},
	}
	forge, err := gitea.New(gitea.Config{URL: c.forge.URL(), Token: cfg.Gitea.Token, Attempts: 1}, nil, nil)
	c.must(err)
	client := reviewedCluster{c.cluster.Client(), func(r kube.Right) bool { return leastRight(r) || c.excess(r) }}
	return &examiner{
		config: cfg, forge: forge, deliveryTime: 500 * time.Millisecond,
		clusters: []kube.Config{{Cluster: "prod", Client: client, Probe: c.cluster.Probe, Discovery: c.cluster.Discovery()}},
		bus:      bus.Config{Embedded: bus.Embedded{Dir: c.dir}},
	}
}

// protect sets a rule that leaves nothing to be said, after an edit.
func (c *clinic) protect(edit func(*pull.Protection)) {
	c.t.Helper()
	p := pull.Protection{
		Rule: "main", Priority: 1, Merge: pull.Access{Allowed: true}, Approvers: pull.Access{Allowed: true}, StatusCheck: true, BindsAdmins: true,
		Contexts: []string{"signalbox / preconditions (main)", "signalbox / approval (main)"},
	}
	if edit != nil {
		edit(&p)
	}
	c.must(c.forge.Protect(c.t.Context(), c.repo, p))
}

// reviewedCluster is a stand-in cluster that also answers what an account may
// do there.
type reviewedCluster struct {
	dynamic.Interface
	may func(kube.Right) bool
}

func (r reviewedCluster) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	in := r.Interface.Resource(gvr)
	switch gvr.Resource {
	case "selfsubjectaccessreviews":
		return accessReviews{in, r.may}
	case "selfsubjectreviews":
		return selfReviews{in}
	}
	return in
}

// selfReviews tell that the account is a service account.
type selfReviews struct {
	dynamic.NamespaceableResourceInterface
}

func (selfReviews) Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"userInfo": map[string]any{"username": "system:serviceaccount:signalbox:bot"}},
	}}, nil
}

type accessReviews struct {
	dynamic.NamespaceableResourceInterface
	may func(kube.Right) bool
}

func (r accessReviews) Create(_ context.Context, obj *unstructured.Unstructured, _ metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	a, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "resourceAttributes")
	right := kube.Right{Verb: a["verb"], Group: a["group"], Resource: a["resource"], Namespace: a["namespace"], Name: a["name"]}
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"allowed": r.may(right)}}}, nil
}

// leastRight reports whether a right is one of [kube.RequiredRules].
func leastRight(r kube.Right) bool {
	return slices.ContainsFunc(kube.RequiredRules(), func(rule kube.Rule) bool {
		return slices.Contains(rule.Verbs, r.Verb) && slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource)
	})
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not fine (-want +got):\n%s", diff)
	}
}

// always answers the question of --fix.
func always(yes bool, out *bytes.Buffer) fixOptions {
	return fixOptions{out: out, ask: func(string) (bool, error) { return yes, nil }}
}

func TestDoctorBeforeTheFirstStart(t *testing.T) {
	c := newClinic(t, nil)
	c.dir = filepath.Join(c.dir, "data")
	same(t, []string{
		"problem protection: nothing protects the branch",
		"warning webhook: no webhook leads to http://signalbox.example.org/hooks/gitea yet",
		"info bus-directory: " + c.dir + " does not exist yet; signalbox makes it when it starts",
	}, c.examine())
	if _, err := os.Stat(c.dir); err == nil {
		t.Error("the folder of the bus was made")
	}
	if n := c.forge.Calls()["POST /repos/{owner}/{repo}/hooks"]; n > 0 {
		t.Error("a webhook was registered")
	}
}

func TestDoctorOfARunningSignalbox(t *testing.T) {
	c := newClinic(t, nil)
	c.protect(nil)
	c.start(worldOptions{})
	same(t, nil, c.examine())

	t.Run("Gitea does not deliver", func(t *testing.T) {
		c.deaf = true
		defer func() { c.deaf = false }()
		c.t = t
		got := c.examine()
		if len(got) != 1 || !strings.HasPrefix(got[0], "problem webhook-delivery: Gitea was asked for a test delivery") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("the webhook is switched off", func(t *testing.T) {
		c.t = t
		hooks, err := c.doctor.forge.Hooks(t.Context(), c.repo)
		c.must(err)
		c.rewriteHook(hooks[0].ID, map[string]any{"active": false})
		got := c.examine()
		same(t, []string{"problem webhook: the webhook to http://" + c.addr + "/hooks/gitea is switched off"}, got)
		_, fixes := c.look()
		var out bytes.Buffer
		if done, err := c.doctor.fix(t.Context(), fixes, always(true, &out)); err != nil || len(done) != 1 || done[0].Webhook != "repaired" {
			t.Errorf("set %+v, %v\n%s", done, err, &out)
		}
		same(t, nil, c.examine())
	})
	t.Run("a cluster-admin", func(t *testing.T) {
		c.t = t
		c.excess = func(kube.Right) bool { return true }
		defer func() { c.excess = func(kube.Right) bool { return false } }()
		same(t, []string{"warning cluster-rights: the account may do everything, as a cluster-admin"}, c.examine())
	})
	t.Run("an object that is not there", func(t *testing.T) {
		c.t = t
		c.cluster.Kustomization("flux-system", "platform-config").Delete()
		defer c.cluster.Kustomization("flux-system", "platform-config").Ready("main@sha1:" + strings.Repeat("b", 40))
		same(t, []string{"warning cluster-objects: rules ask about Kustomization flux-system/platform-config, which does not exist"}, c.examine())
	})
	t.Run("an administrator loosens the protection", func(t *testing.T) {
		c.t = t
		c.protect(func(p *pull.Protection) { p.BindsAdmins, p.Contexts = false, p.Contexts[:1] })
		defer c.protect(nil)
		same(t, []string{
			`problem protection-contexts: "signalbox / approval (main)" is not required`,
			"problem protection-admins: administrators can merge whatever signalbox says",
		}, c.examine())
	})
	t.Run("a team that keeps its members to itself", func(t *testing.T) {
		c.t = t
		c.must(c.forge.SetTeam(t.Context(), owner, "others", "signalbox"))
		c.must(c.forge.SetTeam(t.Context(), owner, "maintainers", "carol"))
		defer func() { c.must(c.forge.SetTeam(t.Context(), owner, "maintainers", "carol", "signalbox")) }()
		same(t, []string{"problem approvers: the members of team ops/maintainers cannot be read"}, c.examine())
	})
	t.Run("without administration", func(t *testing.T) {
		c.t = t
		c.must(c.forge.Grant(t.Context(), c.repo, "signalbox", giteatest.Write))
		defer func() { c.must(c.forge.Grant(t.Context(), c.repo, "signalbox", giteatest.Admin)) }()
		got := c.examine()
		if len(got) != 3 || !strings.HasPrefix(got[0], "warning repository-permission: signalbox does not administer") ||
			!strings.HasPrefix(got[1], "unknown webhook: its webhooks cannot be read") || !strings.HasPrefix(got[2], "unknown protection: what protects the branch cannot be read") {
			t.Errorf("got %q", got)
		}
	})
}

// rewriteHook edits a webhook as its administrator does.
func (c *clinic) rewriteHook(id int64, fields map[string]any) {
	c.t.Helper()
	body, err := json.Marshal(fields)
	c.must(err)
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPatch,
		fmt.Sprintf("%sapi/v1/repos/%s/hooks/%d", c.forge.URL(), c.repo, id), bytes.NewReader(body))
	c.must(err)
	req.Header.Set("Authorization", "token "+c.token)
	resp, err := http.DefaultClient.Do(req)
	c.must(err)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		c.t.Fatalf("edit the webhook: %s", resp.Status)
	}
}

func TestDoctorFix(t *testing.T) {
	c := newClinic(t, map[string]string{".gitea/signalbox.yaml": goodPolicy + "merge: {enabled: true}\n"})
	ctx := t.Context()
	_, fixes := c.look()
	var out bytes.Buffer
	if done, err := c.doctor.fix(ctx, fixes, always(false, &out)); err != nil || len(done) != 0 || !strings.Contains(out.String(), "Nothing was set.") {
		t.Errorf("after a no: %+v, %v\n%s", done, err, &out)
	}
	for _, text := range []string{"+ signalbox / approval (main)", "who may merge\n    - everybody who may write\n    + signalbox\n", "+ http://signalbox.example.org/hooks/gitea"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not show %q:\n%s", text, &out)
		}
	}
	if n := c.forge.Calls()["POST /repos/{owner}/{repo}/branch_protections"]; n > 0 {
		t.Error("the protection was set against a no")
	}
	done, err := c.doctor.fix(ctx, fixes, always(true, &out))
	if err != nil || len(done) != 2 {
		t.Fatalf("set %+v, %v\n%s", done, err, &out)
	}
	p, protected, err := c.doctor.forge.Protection(ctx, c.repo, "main")
	if err != nil || !protected || !p.BindsAdmins || p.Push.Allowed || !p.Merge.Limited || !slices.Equal(p.Merge.Users, []string{"signalbox"}) {
		t.Errorf("protected %v, %+v, %v", protected, p, err)
	}
	if again, more := c.look(); len(more) > 0 {
		t.Errorf("there is still something to set: %+v", again)
	}
}

func TestDoctorFixLeavesWhatChangedMeanwhile(t *testing.T) {
	c := newClinic(t, nil)
	_, fixes := c.look()
	c.protect(func(p *pull.Protection) { p.Approvals, p.BindsAdmins = 2, false })
	var out bytes.Buffer
	fixes = slices.DeleteFunc(fixes, func(f fix) bool { return f.branch == nil })
	_, err := c.doctor.fix(t.Context(), fixes, always(true, &out))
	if err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("error %v", err)
	}
	p, _, err := c.doctor.forge.Protection(t.Context(), c.repo, "main")
	if err != nil || p.Approvals != 2 || p.BindsAdmins {
		t.Errorf("the protection became %+v, %v", p, err)
	}
}

func TestDoctorOfOtherBranches(t *testing.T) {
	pol := strings.Replace(goodPolicy, "  - name: platform owners\n", "  - name: platform owners\n    base: [main, \"release/*\"]\n", 1)
	c := newClinic(t, map[string]string{".gitea/signalbox.yaml": pol})
	c.protect(nil)
	_, err := c.forge.Push(t.Context(), c.repo, giteatest.Push{Branch: "release/1", From: "main", As: "alice", Files: map[string]string{"a": "b"}, Message: "a"})
	c.must(err)
	findings, _ := c.look()
	found := slices.ContainsFunc(findings, func(f doctor.Finding) bool {
		return f.Subject == "ops/home-gitops, branch release/1" && f.Severity == doctor.Problem && f.Check == "protection"
	})
	if !found {
		t.Errorf("nothing is said of release/1: %+v", findings)
	}
}

func TestDoctorWhenGiteaIsDown(t *testing.T) {
	c := newClinic(t, nil)
	c.forge.Down(true)
	got := c.examine()
	if len(got) != 2 || !strings.HasPrefix(got[0], "unknown gitea: Gitea at "+c.forge.URL()+" cannot be read") {
		t.Errorf("got %q", got)
	}
	c.forge.Down(false)
	c.must(c.forge.RevokeToken("signalbox"))
	got = c.examine()
	if len(got) != 2 || !strings.HasPrefix(got[0], "problem token: Gitea does not accept the token") {
		t.Errorf("got %q", got)
	}
}

// TestDoctorCommand runs the command as a person does.
func TestDoctorCommand(t *testing.T) {
	c := newClinic(t, map[string]string{".gitea/signalbox.yaml": `version: 1
approvals: [{name: owners, from: {users: [alice, carol]}}]
override: {from: {users: [alice]}}
`})
	path := filepath.Join(t.TempDir(), "signalbox.yaml")
	c.must(os.WriteFile(path, fmt.Appendf(nil, `gitea:
  url: %s
  webhook: {url: "http://127.0.0.1:1/"}
repositories: [{name: ops/home-gitops}]
bus: {embedded: {dir: %s}}
`, c.forge.URL(), filepath.Join(c.dir, "data")), 0o600))
	t.Setenv("SIGNALBOX_GITEA_TOKEN", c.token)
	t.Setenv("SIGNALBOX_WEBHOOK_SECRET", "a secret that is long enough")
	run := func(args ...string) (out, errOut string, code int) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"doctor", "--config", path}, args...))
		root.SetOut(&stdout)
		root.SetErr(&stderr)
		root.SetIn(&bytes.Buffer{})
		err := root.ExecuteContext(t.Context())
		if exit, ok := err.(exitCode); ok { //nolint:errorlint // it is never wrapped
			return stdout.String(), stderr.String(), int(exit)
		}
		if err != nil {
			return stdout.String(), err.Error(), -1
		}
		return stdout.String(), stderr.String(), 0
	}

	out, _, code := run()
	if code != 1 || !strings.HasPrefix(out, "PROBLEM  ops/home-gitops, branch main: nothing protects the branch\n") || strings.Contains(out, "\x1b") ||
		!strings.Contains(out, "WARNING  configuration: ") || !strings.Contains(out, "The gate is not a gate yet.") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if _, errOut, code := run("--fix"); code != -1 || !strings.Contains(errOut, "add --yes") {
		t.Errorf("without a terminal: code %d: %s", code, errOut)
	}
	if _, errOut, code := run("--yes"); code != -1 || !strings.Contains(errOut, "--fix") {
		t.Errorf("--yes alone: code %d: %s", code, errOut)
	}
	out, errOut, code := run("--fix", "--yes", "-o", "json")
	var report doctorReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if code != 2 || report.ExitCode != 2 || len(report.Set) != 2 || report.Counts[doctor.Problem] != 0 || !strings.Contains(errOut, "This would be set in Gitea:") {
		t.Errorf("code %d, report %+v, stderr:\n%s", code, report, errOut)
	}
	// What is left is that nobody runs who could say whether deliveries arrive.
	for _, f := range report.Findings {
		if f.Severity == doctor.Unknown && f.Check != "webhook-delivery" {
			t.Errorf("unknown: %+v", f)
		}
	}
	if out, _, code := run("--fix"); code != 2 || !strings.HasPrefix(out, "There is nothing to set.") {
		t.Errorf("the second time: code %d:\n%s", code, out)
	}
	if _, errOut, code := run("-o", "yaml"); code != -1 || !strings.Contains(errOut, "text or json") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
