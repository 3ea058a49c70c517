package seed

import (
	"context"
	"fmt"

	"signalbox/test/realserver"
)

// Bootstrap makes Flux apply the repository, and returns when the objects of its tiers exist.
func (r *Repository) Bootstrap(ctx context.Context) error {
	content, err := render("repository", r.values())
	if err != nil {
		return err
	}
	if err := r.World.Kube.CreateNamespace(ctx, r.Namespace); err != nil {
		return err
	}
	if err := r.World.Kube.Apply(ctx, []byte(content["clusters/prod/sync.yaml"])); err != nil {
		return err
	}
	_, err = r.World.Kube.Wait(ctx, r.Kustomization("flux-system"), realserver.HasCondition("Ready", "True"))
	return err
}

// Kustomization names one of the repository's Flux Kustomizations: flux-system, platform,
// platform-config, apps or, once the pull request is merged, platform-config-cdi.
func (r *Repository) Kustomization(name string) realserver.Ref {
	return realserver.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: r.Namespace, Name: name}
}

// Source names the Flux GitRepository.
func (r *Repository) Source() realserver.Ref {
	return realserver.Ref{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: r.Namespace, Name: "flux-system"}
}

// InstallStorageProfiles teaches the cluster the kind StorageProfile.
func (r *Repository) InstallStorageProfiles(ctx context.Context) error {
	crd, err := files.ReadFile("storageprofile-crd.yaml")
	if err != nil {
		return err
	}
	return r.World.Kube.Apply(ctx, crd)
}

// RemoveStorageProfiles removes the kind StorageProfile and all objects of it. A Flux that has used the
// kind remembers it until it is restarted, and complains in other words than about one it never knew: "the
// server could not find the requested resource".
func (r *Repository) RemoveStorageProfiles(ctx context.Context) error {
	crd, err := files.ReadFile("storageprofile-crd.yaml")
	if err != nil {
		return err
	}
	return r.World.Kube.Delete(ctx, crd)
}

// Uproot takes the repository's Flux objects and what they created out of the cluster, so that Flux has no
// work with them while other tests run. Flux must be running.
func (r *Repository) Uproot(ctx context.Context) error {
	for _, ref := range []realserver.Ref{r.Kustomization("flux-system"), r.Source()} {
		if err := r.World.Kube.DeleteAll(ctx, ref); err != nil {
			return fmt.Errorf("uproot %s: %w", r, err)
		}
	}
	return nil
}
