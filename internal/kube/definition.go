package kube

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// definition is the informer on the CustomResourceDefinition of a kind. It asks
// for that one by name: that is all that a role needs to allow, and definitions
// are large.
type definition struct {
	name     string
	stream   *stream
	informer cache.SharedIndexInformer
	synced   cache.InformerSynced
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

// follow starts the informer on the kind's definition, in the place of a former
// one if before is given.
func (k *watchedKind) follow(ctx context.Context, before *stream) *definition {
	ctx, cancel := context.WithCancel(ctx)
	client := k.w.connection().client
	d := &definition{
		name:   k.crd(),
		stream: k.newStream(crdResource().GroupResource().String()+" "+k.crd(), before),
		cancel: cancel,
	}
	selector := fields.OneTermEqualSelector("metadata.name", d.name).String()
	d.informer = newInformer(d.stream.listWatch(client, client.Resource(crdResource()), selector), slimCRD)
	nudge := func(any) { k.nudge() }
	// It cannot fail: the informer was neither started nor stopped.
	registration, _ := d.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    nudge,
		UpdateFunc: func(any, any) { k.nudge() },
		DeleteFunc: nudge,
	})
	d.synced = registration.HasSynced
	d.wg.Go(func() { d.informer.RunWithContext(ctx) })
	d.wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			k.nudge()
		}
	})
	return d
}

// stop ends the informer and waits for it.
func (d *definition) stop() {
	d.cancel()
	d.wg.Wait()
}

// version returns the version in which to watch the objects now, or why there
// is none. Known is false until the definition was looked for.
func (d *definition) version() (v, why string, known bool) {
	if !d.synced() {
		return "", "", false
	}
	obj, exists, err := d.informer.GetStore().GetByKey(d.name)
	crd, ok := obj.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return "", "the cluster has no CustomResourceDefinition " + d.name, true
	}
	v, why = servedVersion(crd)
	return v, why, true
}
