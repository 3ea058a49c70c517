//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/doctor"
	"signalbox/internal/kube"
	"signalbox/test/realserver/seed"
)

// TestDoctorOfWhatRulesAsk looks at what kinds beyond Flux need, and gives the
// account the roles that it prints.
func TestDoctorOfWhatRulesAsk(t *testing.T) {
	ctx := t.Context()
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: `version: 1
preconditions:
  - {name: nodes, objects: {kind: nodes, min: 0}}
  - {name: one map, objects: {kind: configmaps, namespace: default, name: not-there}}
  - {name: widgets, objects: {kind: widgets.example.org}}
  - {name: it ran, workflow: {file: not-there.yaml}}
  - {name: it says so, status: {context: not-there}}
  - {name: by day, window: {deny: "23:00-07:00", timezone: Europe/Berlin}}
approvals: [{name: keepers, from: {teams: [ops], users: [alice]}}]
override: {from: {users: [alice]}}
`})
	access, err := world.Kube.CreateAccount(ctx, "default", name, kube.RequiredRules())
	if err != nil {
		t.Fatal(err)
	}
	b := newBot(t, st.repo, settings{kubeconfig: kubeconfigOf(t, access)})
	b.start()
	b.command("doctor", "--fix", "--yes")
	const (
		noFile   = `warning workflow: main has no workflow not-there.yaml, and precondition "it ran" asks about it`
		noKind   = `warning cluster-resources: precondition "widgets" is unknown until it is installed: the cluster has no resource widgets.example.org; it has no API group example.org`
		noMap    = `warning cluster-objects: precondition "one map" asks about configmaps not-there in default, which does not exist`
		runners  = "info actions-visible: "
		noStatus = `info status: no status on the tip of main is called "not-there", which precondition "it says so" asks for`
	)
	b.finds(1, `problem cluster-rights: each of the preconditions "nodes", "one map" and "widgets" reads what the account may not: `, noFile, noKind, runners, noStatus)

	role := b.remedy("cluster-rights")
	t.Logf("the roles:\n%s", role)
	if !strings.Contains(role, "name: "+name+"\n") {
		t.Errorf("it does not bind the account %s", name)
	}
	var list struct{ Items []map[string]any }
	if err := yaml.Unmarshal([]byte(role), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		manifest, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		if err := world.Kube.Apply(ctx, manifest); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, patience, "the account has the rights", func() error {
		if found, _ := b.examine(); slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "problem") }) {
			return fmt.Errorf("found %q", found)
		}
		return nil
	})
	b.finds(0, noFile, noKind, noMap, runners, noStatus)
}

// remedy returns what the doctor prints to mend the problem of a check, without
// its first line.
func (b *bot) remedy(check string) string {
	b.t.Helper()
	out, errOut, _ := b.command("doctor", "-o", "json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		b.t.Fatalf("%v\n%s\n%s", err, out, errOut)
	}
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.Check == check && f.Severity == doctor.Problem })
	if i < 0 {
		b.t.Fatalf("there is no problem of %s:\n%s", check, out)
	}
	_, rest, _ := strings.Cut(r.Findings[i].Remedy, "\n")
	return rest
}
