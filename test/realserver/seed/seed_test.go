package seed

import (
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestEveryKustomizationIsComplete builds the repository before and after the pull request on paper: each
// kustomization.yaml lists exactly the files beside it, and each Flux Kustomization has its folder.
func TestEveryKustomizationIsComplete(t *testing.T) {
	v := values{Namespace: "home", CloneURL: "http://127.0.0.1:3000/ops/home-gitops.git"}
	before, err := render("repository", v)
	if err != nil {
		t.Fatal(err)
	}
	change, err := render("change", v)
	if err != nil {
		t.Fatal(err)
	}
	after := maps.Clone(before)
	maps.Copy(after, change)
	after["platform-config-cdi/storage-profiles.yaml"] = after["platform-config/storage-profiles.yaml"]
	delete(after, "platform-config/storage-profiles.yaml")

	for name, tree := range map[string]map[string]string{"before": before, "after": after} {
		t.Run(name, func(t *testing.T) {
			for folder, listed := range kustomizations(t, tree) {
				var there []string
				for file := range tree {
					if path.Dir(file) == folder && path.Base(file) != "kustomization.yaml" {
						there = append(there, path.Base(file))
					}
				}
				slices.Sort(there)
				if diff := cmp.Diff(there, listed); diff != "" {
					t.Errorf("%s/kustomization.yaml (-files +listed):\n%s", folder, diff)
				}
			}
			for file, text := range tree {
				var object struct {
					Spec struct{ Path, TargetNamespace string }
				}
				if path.Ext(file) == ".yaml" && path.Dir(file) == "clusters/base" {
					if err := yaml.Unmarshal([]byte(text), &object); err != nil {
						t.Errorf("%s: %v", file, err)
					}
				}
				if folder := path.Clean(object.Spec.Path); object.Spec.Path != "" && tree[folder+"/kustomization.yaml"] == "" {
					t.Errorf("%s applies %s, which has no kustomization.yaml", file, folder)
				}
			}
		})
	}
}

// kustomizations returns the files that each kustomization.yaml lists, by its folder.
func kustomizations(t *testing.T, tree map[string]string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for file, text := range tree {
		if path.Base(file) != "kustomization.yaml" {
			continue
		}
		var content struct{ Resources []string }
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		files := slices.DeleteFunc(content.Resources, func(r string) bool { return path.Ext(r) == "" })
		slices.Sort(files)
		all[path.Dir(file)] = files
	}
	return all
}
