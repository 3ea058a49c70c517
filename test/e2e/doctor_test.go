//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/doctor"
	"signalbox/internal/kube"
	"signalbox/internal/policy"
	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// command runs a command of the program as an operator does, beside the one that
// runs or not, and returns its exit code.
func (b *bot) command(args ...string) (out, errOut string, code int) {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(b.t.Context(), program, append(args, "--config", b.config)...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = b.env, b.dir, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// examine returns what is not fine, as "severity check: what", and the exit
// code.
func (b *bot) examine(args ...string) ([]string, int) {
	b.t.Helper()
	out, errOut, code := b.command(append([]string{"doctor", "-o", "json"}, args...)...)
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		b.t.Fatalf("%v\n%s\n%s", err, out, errOut)
	}
	var found []string
	for _, f := range r.Findings {
		if f.Severity != doctor.OK {
			found = append(found, fmt.Sprintf("%s %s: %s", f.Severity, f.Check, f.What))
		}
	}
	return found, code
}

// finds examines and compares the beginnings of what is not fine.
func (b *bot) finds(code int, want ...string) {
	b.t.Helper()
	found, got := b.examine()
	same := slices.EqualFunc(found, want, func(f, w string) bool { return strings.HasPrefix(f, w) })
	if !same || got != code {
		text, _, _ := b.command("doctor")
		b.t.Errorf("exit code %d, want %d; found\n  %s\nwant\n  %s\n%s", got, code, strings.Join(found, "\n  "), strings.Join(want, "\n  "), text)
	}
}

// doctored is a repository with a policy that leaves nothing to be said, and a
// cluster account with exactly the rights that are needed.
func doctored(t *testing.T, merge bool) (*stage, *bot) {
	t.Helper()
	ctx := t.Context()
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: fmt.Sprintf(`version: 1
preconditions:
  - name: apps are Ready
    flux: {kustomization: default/%s}
approvals:
  - name: keepers
    from: {teams: [ops], users: [alice]}
override: {from: {users: [alice]}}
merge: {enabled: %t}
`, name, merge)})
	if err := world.Kube.Apply(ctx, fmt.Appendf(nil, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: default}
spec: {interval: 10m, path: ./, prune: true, suspend: true, sourceRef: {kind: GitRepository, name: none}}
`, name)); err != nil {
		t.Fatal(err)
	}
	access, err := world.Kube.CreateAccount(ctx, "default", name, kube.RequiredRules())
	if err != nil {
		t.Fatal(err)
	}
	b := newBot(t, st.repo, settings{kubeconfig: kubeconfigOf(t, access)})
	return st, b
}

func kubeconfigOf(t *testing.T, access realserver.Access) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := realserver.WriteKubeconfig(path, map[string]realserver.Access{"prod": access}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDoctorFromFreshToLocked goes the way of somebody who installs signalbox.
func TestDoctorFromFreshToLocked(t *testing.T) {
	st, b := doctored(t, false)
	ctx := t.Context()
	b.finds(1,
		"problem protection: nothing protects the branch",
		"warning webhook: no webhook leads to http://"+b.addr+"/hooks/gitea yet",
		"info bus-directory: "+filepath.Join(b.dir, "data")+" does not exist yet",
	)
	b.start()
	b.finds(1, "problem protection: nothing protects the branch")
	text, _, _ := b.command("doctor")
	t.Logf("before:\n%s", text)

	out, errOut, code := b.command("doctor", "--fix")
	if code != 2 || !strings.Contains(out, "+ signalbox / approval (main)") || !strings.Contains(errOut, "add --yes") {
		t.Errorf("without a terminal: exit code %d\n%s\n%s", code, out, errOut)
	}
	b.finds(1, "problem protection: nothing protects the branch")
	out, errOut, code = b.command("doctor", "--fix", "--yes")
	t.Logf("--fix --yes:\n%s", out)
	if code != 0 || !strings.HasSuffix(out, "The gate holds.\n") {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errOut)
	}
	b.finds(0)

	// It is a lock: a writer cannot push, and an administrator cannot merge.
	st.push(t, "pushed", "origin/main", write("pushed.txt", "1\n"))
	if err := st.clone.Push(ctx, "main"); err == nil {
		t.Error("a writer pushed to main")
	}
	p := st.request(t, "pushed", "main")
	p.shows(patience, "pending", "pending")
	alice := client(t, st.repo, st.repo.Alice)
	merged, _, err := alice.MergePullRequest(st.repo.Owner, st.repo.Name, p.number, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge, ForceMerge: true})
	if err == nil && merged {
		t.Error("an administrator merged against the statuses")
	}

	// Later an administrator loosens it.
	no, yes := false, true
	loosen := func(o sdk.EditBranchProtectionOption) {
		t.Helper()
		if _, _, err := alice.EditBranchProtection(st.repo.Owner, st.repo.Name, "main", o); err != nil {
			t.Fatal(err)
		}
	}
	loosen(sdk.EditBranchProtectionOption{StatusCheckContexts: []string{"signalbox*"}, EnablePush: &yes})
	b.finds(1, `problem protection-contexts: "signalbox / preconditions (main)" and "signalbox / approval (main)" are not required by a pattern of their own`,
		"problem protection-push: everybody who may write can push to the branch")
	loosen(sdk.EditBranchProtectionOption{EnableStatusCheck: &no, EnablePush: &yes, EnablePushWhitelist: &yes, PushWhitelistUsernames: []string{st.repo.Bob.Name}})
	b.finds(1, `problem protection-contexts: "signalbox / preconditions (main)" and "signalbox / approval (main)" are not required`,
		"warning protection-push: "+st.repo.Bob.Name+" can push to the branch")
	if _, code := b.examine("--fix", "--yes"); code != 0 {
		t.Errorf("after another --fix: exit code %d", code)
	}
	b.finds(0, "warning protection-push: "+st.repo.Bob.Name+" can push to the branch")
}

// TestDoctorKeepsWhatAPatternProtects: --fix gives the branch a rule of its own
// that has everything that the pattern had.
func TestDoctorKeepsWhatAPatternProtects(t *testing.T) {
	st, b := doctored(t, true)
	alice := client(t, st.repo, st.repo.Alice)
	_, _, err := alice.CreateBranchProtection(st.repo.Owner, st.repo.Name, sdk.CreateBranchProtectionOption{
		RuleName: "m*", RequiredApprovals: 2, EnableStatusCheck: true, RequireSignedCommits: true, EnablePush: true, UnprotectedFilePatterns: "*.md",
	})
	if err != nil {
		t.Fatal(err)
	}
	b.start()
	b.finds(1, "problem protection-contexts", "problem protection-push", "problem protection-unprotected-files: files that match \"*.md\"",
		"problem protection-admins", "problem protection-merge: everybody who may write can merge, not only signalbox")
	out, errOut, code := b.command("doctor", "--fix", "--yes")
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errOut)
	}
	rule, _, err := alice.GetBranchProtection(st.repo.Owner, st.repo.Name, "main")
	if err != nil {
		t.Fatal(err)
	}
	if rule.RequiredApprovals != 2 || !rule.RequireSignedCommits || rule.EnablePush || rule.UnprotectedFilePatterns != "" || !rule.EnableMergeWhitelist ||
		!slices.Equal(rule.MergeWhitelistUsernames, []string{st.repo.Bot.Name}) ||
		!slices.Equal(rule.StatusCheckContexts, []string{"*", "signalbox / preconditions (main)", "signalbox / approval (main)"}) {
		t.Errorf("the rule is %+v", rule)
	}
	b.finds(0)
}

// TestDoctorOfTheToken looks at what the real server tells of tokens.
func TestDoctorOfTheToken(t *testing.T) {
	st, b := doctored(t, false)
	b.start()
	b.command("doctor", "--fix", "--yes")
	token := func(u realserver.User, scopes ...sdk.AccessTokenScope) {
		t.Helper()
		value, err := world.Gitea.CreateToken(t.Context(), u, world.Name(t), scopes...)
		if err != nil {
			t.Fatal(err)
		}
		b.env[0] = "SIGNALBOX_GITEA_TOKEN=" + value
	}
	b.finds(0)
	token(st.repo.Bot, "all")
	b.finds(0, "warning token-scopes: the token can do more than is needed: read:notification, read:package and read:admin")
	token(st.repo.Bot, append(slices.Clone(scopes), "write:user")...)
	b.finds(0, "warning token-scopes: the token can do more than is needed: write:user")
	token(st.repo.Bot, "write:repository", "read:user")
	found, code := b.examine()
	if code != 1 || len(found) == 0 || found[0] != "problem token-scopes: the token lacks read:organization and write:issue" {
		t.Errorf("exit code %d, found %q", code, found)
	}
	b.env[0] = "SIGNALBOX_GITEA_TOKEN=" + strings.Repeat("0", 40)
	found, code = b.examine()
	if code != 1 || !strings.HasPrefix(found[0], "problem token: Gitea does not accept the token") {
		t.Errorf("exit code %d, found %q", code, found)
	}
}

// TestDoctorOfPeople: a team that signalbox does not belong to, and people who
// do not exist.
func TestDoctorOfPeople(t *testing.T) {
	st, b := doctored(t, false)
	b.start()
	b.command("doctor", "--fix", "--yes")
	alice := client(t, st.repo, st.repo.Alice)
	if _, err := alice.RemoveTeamMember(st.repo.Ops, st.repo.Bot.Name); err != nil {
		t.Fatal(err)
	}
	b.finds(1, "problem approvers: the members of team "+strings.ToLower(st.repo.Owner)+"/ops cannot be read")
	text, _, _ := b.command("doctor")
	if !strings.Contains(strings.Join(strings.Fields(text), " "), "only to members of that very team, to owners of the organisation and to administrators of Gitea") {
		t.Errorf("it does not say who may read them:\n%s", text)
	}
	if _, err := alice.DeleteTeam(st.repo.Ops); err != nil {
		t.Fatal(err)
	}
	b.finds(1, "problem approvers: rules name team "+strings.ToLower(st.repo.Owner)+"/ops, and there is no such team", "warning approvers-enough")
}

// TestDoctorOfDeliveries: Gitea refuses to deliver to an address that it does
// not allow, and nobody but the doctor says so.
func TestDoctorOfDeliveries(t *testing.T) {
	st, b := doctored(t, false)
	config, err := os.ReadFile(b.config)
	if err != nil {
		t.Fatal(err)
	}
	// An address of a network that is kept for documentation.
	config = bytes.Replace(config, []byte(`url: "http://`+b.addr), []byte(`url: "http://192.0.2.1:8080`), 1)
	if err := os.WriteFile(b.config, config, 0o600); err != nil {
		t.Fatal(err)
	}
	b.hooked = false
	b.start()
	alice := client(t, st.repo, st.repo.Alice)
	eventually(t, patience, "the webhook is registered", func() error {
		hooks, _, err := alice.ListRepoHooks(st.repo.Owner, st.repo.Name, sdk.ListHooksOptions{})
		if err == nil && len(hooks) != 1 {
			err = fmt.Errorf("there are %d", len(hooks))
		}
		return err
	})
	found, code := b.examine("--fix", "--yes")
	if code != 1 || !slices.ContainsFunc(found, func(f string) bool {
		return strings.HasPrefix(f, "problem webhook-delivery: Gitea was asked for a test delivery to http://192.0.2.1:8080/hooks/gitea, and none arrived in 8s")
	}) {
		t.Errorf("exit code %d, found %q", code, found)
	}
}

// TestDoctorOfTheCluster looks at rights on the real API server.
func TestDoctorOfTheCluster(t *testing.T) {
	st, b := doctored(t, false)
	ctx := t.Context()
	b.start()
	b.command("doctor", "--fix", "--yes")
	b.finds(0)
	with := func(access realserver.Access) {
		t.Helper()
		b.configure(settings{kubeconfig: kubeconfigOf(t, access)})
	}
	account := func(rules []kube.Rule) realserver.Access {
		t.Helper()
		access, err := world.Kube.CreateAccount(ctx, "default", world.Name(t), rules)
		if err != nil {
			t.Fatal(err)
		}
		return access
	}
	b.configure(settings{}) // The administrator of the cluster.
	b.finds(0, "warning cluster-rights: the account may do everything, as a cluster-admin")
	with(account(append(kube.RequiredRules(), kube.Rule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})))
	b.finds(0, "warning cluster-rights: the account may also get secrets")
	with(account(kube.RequiredRules()[1:]))
	b.finds(1, "problem cluster-rights: the account may not list kustomizations.kustomize.toolkit.fluxcd.io and watch kustomizations.kustomize.toolkit.fluxcd.io")
	bad := account(kube.RequiredRules())
	bad.Token = "nobody's"
	with(bad)
	b.finds(1, "problem cluster-credentials: the API server refuses the credentials")

	with(account(kube.RequiredRules()))
	st.push(t, "other", "origin/main", write(policy.Path, "version: 1\npreconditions: [{name: a, flux: {helmRelease: a/b}}, {name: b, flux: {kustomization: a/b}}]\noverride: {from: {users: [alice]}}\n"))
	alice := client(t, st.repo, st.repo.Alice)
	no := false
	if _, _, err := alice.EditBranchProtection(st.repo.Owner, st.repo.Name, "main", sdk.EditBranchProtectionOption{EnableStatusCheck: &no}); err != nil {
		t.Fatal(err)
	}
	p := st.request(t, "other", "main")
	eventually(t, patience, "the policy is merged", func() error {
		ok, _, err := alice.MergePullRequest(st.repo.Owner, st.repo.Name, p.number, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge})
		if err == nil && !ok {
			err = errors.New("it cannot be merged")
		}
		return err
	})
	b.finds(1, "problem protection-contexts", "problem cluster-kinds: rules ask about a HelmRelease, and the cluster has no CustomResourceDefinition helmreleases.helm.toolkit.fluxcd.io",
		"warning cluster-objects: rules ask about Kustomization a/b, which does not exist")
}

// TestAuditAsksTheOneThatRuns: the folder is in use, and the socket answers.
func TestAuditAsksTheOneThatRuns(t *testing.T) {
	st, b := doctored(t, false)
	out, errOut, code := b.command("audit")
	if code != 2 || !strings.Contains(errOut, "has not run with this folder yet") {
		t.Errorf("before the first start: exit code %d\n%s\n%s", code, out, errOut)
	}
	b.start()
	p := st.open(t, "held", write("clusters/held.yaml", "a: 1\n"))
	p.shows(patience, "pending", "pending")
	carol := client(t, st.repo, st.repo.Carol)
	if _, _, err := carol.CreateIssueComment(st.repo.Owner, st.repo.Name, p.number, sdk.CreateIssueCommentOption{Body: "/hold =the network is down"}); err != nil {
		t.Fatal(err)
	}
	told := func(when string) {
		t.Helper()
		for form, want := range map[string]string{
			"table": "=the network is down", "csv": ",'=the network is down,", "jsonl": `"reason":"=the network is down"`,
		} {
			var out string
			eventually(t, patience, "the hold is in the ledger", func() error {
				var errOut string
				var code int
				if out, errOut, code = b.command("audit", fmt.Sprintf("%s#%d", st.repo, p.number), "--kind", "hold", "--person", "carol", "-o", form); code != 0 {
					return fmt.Errorf("exit code %d: %s", code, errOut)
				}
				if !strings.Contains(out, want) {
					return fmt.Errorf("no %q in:\n%s\n%s", want, out, errOut)
				}
				return nil
			})
			t.Logf("%s, %s:\n%s", when, form, out)
		}
	}
	told("while it runs")
	b.kill()
	told("after a SIGKILL")
	b.start()
	told("after a restart over what the killed one left")
}
