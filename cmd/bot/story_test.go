package main

import (
	"testing"

	"signalbox/internal/gitea/giteatest"
)

// TestStory plays the story of the README with stand-ins: what a person does
// to the cluster and to the pull request, and what signalbox makes of it.
func TestStory(t *testing.T) {
	w := newWorld(t, worldOptions{})
	ctx := t.Context()
	base, err := w.forge.Tip(ctx, w.repo, "main")
	w.must(err)
	config := w.cluster.Kustomization("flux-system", "platform-config")
	config.Ready("main@sha1:"+base).Failing("ReconciliationFailed", noMatches)
	w.start(worldOptions{})

	number := w.open("cdi", map[string]string{"clusters/base/platform-config-cdi.yaml": "c: 1\n"})
	w.shows(number, "pending", "pending",
		"Kustomization flux-system/platform-config on prod is not Ready", `no matches for kind "StorageProfile"`,
		"platform owners", "Needs 1 approval by alice or carol")

	config.Ready("main@sha1:" + base)
	w.shows(number, "success", "pending", "flux-system/platform-config on prod is Ready")

	_, err = w.forge.Review(ctx, w.repo, number, "alice", "APPROVED", "")
	w.must(err)
	w.shows(number, "success", "success", "Clear to merge", "Approved by alice")

	_, err = w.forge.Push(ctx, w.repo, giteatest.Push{Branch: "cdi", As: "bob", Files: map[string]string{"clusters/base/more.yaml": "d: 1\n"}, Message: "more"})
	w.must(err)
	w.shows(number, "success", "pending", "alice: was given on", "the diff is another")

	config.Failing("BuildFailed", "kustomize build failed")
	w.shows(number, "pending", "pending", "BuildFailed: kustomize build failed")
}
