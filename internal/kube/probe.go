package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// newProbe returns the probe of a real API server: it lists the metadata of
// one CustomResourceDefinition, by name. The health and version endpoints
// would answer anybody. This needs no right beside those of the watches, is
// refused once the credentials expire, and reads from the store, so that an
// API server that has lost it does not count.
func newProbe(cfg *rest.Config) (func(context.Context) error, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("metadata client: %w", err)
	}
	o := metav1.ListOptions{Limit: 1, FieldSelector: fields.OneTermEqualSelector("metadata.name", kinds()[0].crd()).String()}
	return func(ctx context.Context) error {
		_, err := client.Resource(crdResource()).List(ctx, o)
		if apierrors.IsForbidden(err) && !anonymous(err) {
			// The API server knows us; which right is missing is told by the
			// state of the watches.
			return nil
		}
		return err
	}, nil
}

// beat probes the API server until ctx ends and passes each success on.
func (w *Watcher) beat(ctx context.Context) {
	ticker := time.NewTicker(w.limits.ProbeEvery)
	defer ticker.Stop()
	var last failureKind
	for {
		f := w.probeOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case f.kind == last:
		case f.kind == failureNone:
			w.log.Info("the cluster is heard from again")
		default:
			w.log.Warn("the cluster is not heard from", "error", f.message)
		}
		last = f.kind
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *Watcher) probeOnce(ctx context.Context) failure {
	pctx, cancel := context.WithTimeoutCause(ctx, w.limits.Probe, errNoAnswer)
	defer cancel()
	if err := w.probe(pctx); err != nil {
		w.metrics.probeFailures.Inc()
		return explain("list", crdResource().GroupResource().String(), err)
	}
	if err := w.sink.Beat(ctx, w.cluster, time.Now().UTC()); err != nil {
		return failure{failureOther, "write the heartbeat: " + oneLine(err.Error())}
	}
	return failure{}
}
