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

// Probe asks the API server for a sign of life that needs valid credentials.
// It returns the resourceVersion that the server's store is at, or "" if it
// does not tell.
type Probe func(context.Context) (version string, err error)

// newProbe returns the probe of a real API server: it lists the metadata of
// one CustomResourceDefinition, by name. The health and version endpoints
// would answer anybody. This needs no right beside those of the watches, is
// refused once the credentials expire, and reads from the store, so that an
// API server that has lost it does not count.
func newProbe(cfg *rest.Config) (Probe, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("metadata client: %w", err)
	}
	o := metav1.ListOptions{Limit: 1, FieldSelector: fields.OneTermEqualSelector("metadata.name", kinds()[0].crd()).String()}
	return func(ctx context.Context) (string, error) {
		l, err := client.Resource(crdResource()).List(ctx, o)
		if apierrors.IsForbidden(err) && !anonymous(err) {
			// The API server knows us; which right is missing is told by the
			// state of the watches.
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return l.ResourceVersion, nil
	}, nil
}

// pulse is what the last probe has shown.
type pulse struct {
	failure failureKind
	version string
}

// beat probes the API server until ctx ends and passes each success on.
func (w *Watcher) beat(ctx context.Context) {
	ticker := time.NewTicker(w.limits.ProbeEvery)
	defer ticker.Stop()
	var last pulse
	for {
		last = w.probeOnce(ctx, last)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *Watcher) probeOnce(ctx context.Context, last pulse) pulse {
	limited, cancel := context.WithTimeoutCause(ctx, w.limits.Probe, errNoAnswer)
	defer cancel()
	version, err := w.connection().probe(limited)
	if ctx.Err() != nil {
		return last
	}
	if err != nil {
		w.metrics.probeFailures.Inc()
		f := explain("list", crdResource().GroupResource().String(), err)
		if f.kind != last.failure {
			w.log.WarnContext(ctx, "the cluster is not heard from", "error", f.message)
		}
		w.reconnect()
		return pulse{f.kind, last.version}
	}
	if last.failure != failureNone {
		w.log.InfoContext(ctx, "the cluster is heard from again")
	}
	if older(version, last.version) {
		// A watch that asks for what comes after a version of the former
		// history is accepted and never hears anything.
		w.log.WarnContext(ctx, "the API server has another history, as after a restore; everything is listed anew",
			"version", version, "before", last.version)
		w.restart()
	}
	limited, cancel = context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := w.sink.Beat(limited, w.cluster, time.Now().UTC()); err != nil && ctx.Err() == nil {
		w.metrics.writeFailures.Inc()
		w.log.WarnContext(ctx, "a heartbeat could not be written", "error", err)
	}
	if version == "" {
		version = last.version
	}
	return pulse{failureNone, version}
}

// restart makes everything be listed anew.
func (w *Watcher) restart() {
	for _, k := range w.kinds {
		k.restart()
	}
	w.wishes.restart()
}
