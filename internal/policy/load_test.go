package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/policy"
)

func TestLoadReportsEveryProblem(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"no version", "preconditions: []\n", "p.yaml:1: version: is missing (write version: 1)"},
		{"another version", "version: 2\n", "p.yaml:1: version: version 2 is not known (this signalbox reads version 1)"},
		{
			"globs",
			`version: 1
preconditions:
  - name: a
    paths: ["/clusters/**", "clusters/", "a//b", "./a", "", "a[", "a{b"]
    flux: {kustomization: flux-system/a}
`,
			strings.Join([]string{
				`p.yaml:4: preconditions[0].paths[0]: "/clusters/**" has a leading slash; paths start at the root of the repository without one (write "clusters/**")`,
				`p.yaml:4: preconditions[0].paths[1]: "clusters/" ends with a slash and would match no file (write "clusters/**" for all that is in the folder)`,
				`p.yaml:4: preconditions[0].paths[2]: "a//b" is not a clean path (write the path from the root of the repository)`,
				`p.yaml:4: preconditions[0].paths[3]: "./a" is not a clean path (write the path from the root of the repository)`,
				`p.yaml:4: preconditions[0].paths[4]: is empty (write ** for every file)`,
				`p.yaml:4: preconditions[0].paths[5]: "a[" is not a valid glob (check its brackets and braces)`,
				`p.yaml:4: preconditions[0].paths[6]: "a{b" is not a valid glob (check its brackets and braces)`,
			}, "\n"),
		},
		{
			"a misspelt kind",
			"version: 1\npreconditions:\n  - flux: {kustomizations: a/b}\n",
			`p.yaml:3: preconditions[0].flux.kustomizations: unknown field (did you mean "kustomization"?)`,
		},
		{
			"preconditions",
			`version: 1
preconditions:
  - name: a
  - name: a
    flux: {}
  - name: b
    flux: {kustomization: apps}
  - name: c
    flux: {helmRelease: a/b, bucket: a/b}
  - name: d
    flux: {helmRelease: a/b, contains: base}
  - name: e
    unless: {}
    flux: {kustomization: a/b, contains: head}
  - flux: {kustomization: a/b}
`,
			strings.Join([]string{
				`p.yaml:3: preconditions[0]: has 0 kinds of check (give exactly one of: flux, renovate, status, workflow, kured, objects, window, dependsOn)`,
				`p.yaml:4: preconditions[1].name: "a" is the name of an earlier rule (names tell the rules apart)`,
				`p.yaml:5: preconditions[1].flux: names 0 objects (give exactly one, such as kustomization: flux-system/apps)`,
				`p.yaml:7: preconditions[2].flux.kustomization: "apps" does not name an object (write "namespace/name")`,
				`p.yaml:9: preconditions[3].flux: names 2 objects (give exactly one, such as kustomization: flux-system/apps)`,
				`p.yaml:11: preconditions[4].flux.contains: a HelmRelease follows no branch of Git (ask it of a kustomization or a gitRepository)`,
				`p.yaml:13: preconditions[5].unless: is empty (give paths, base, labels or author)`,
				`p.yaml:14: preconditions[5].flux.contains: "head" is not known (write contains: base)`,
				`p.yaml:15: preconditions[6].name: is missing (say in a few words what must be true)`,
			}, "\n"),
		},
		{
			"approvals and targets",
			`version: 1
targets:
  - {cluster: prod}
  - {paths: [a]}
approvals:
  - name: owners
    count: -1
    from: {}
    survive: identical-dif
  - name: others
    from: {teams: [a/b/c, " ops"]}
`,
			strings.Join([]string{
				"p.yaml:3: targets[0].paths: is missing (name at least one path)",
				"p.yaml:4: targets[1].cluster: is missing (name a cluster of the configuration of signalbox)",
				"p.yaml:7: approvals[0].count: is -1; it must be at least 1",
				"p.yaml:8: approvals[0].from: names nobody (name teams or users)",
				`p.yaml:9: approvals[0].survive: "identical-dif" is not known (did you mean "identical-diff"?)`,
				`p.yaml:11: approvals[1].from.teams[0]: "a/b/c" has more than one slash (write "team" or "organisation/team")`,
				`p.yaml:11: approvals[1].from.teams[1]: " ops" is empty or has space around it`,
			}, "\n"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, problems := policy.Load("p.yaml", []byte(tt.in))
			if p != nil {
				t.Error("an invalid policy was loaded")
			}
			var got []string
			for _, problem := range problems {
				got = append(got, problem.Error())
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("version: 1\npreconditions:\n- name: a\n  flux: {kustomization: a/b}\n"))
	f.Add([]byte("version: 1\napprovals:\n- name: a\n  from: {users: [alice]}\n  count: 2\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, problems := policy.Load("p.yaml", in)
		if (p == nil) == (len(problems) == 0) {
			t.Errorf("policy %v with problems %v", p, problems)
		}
	})
}
