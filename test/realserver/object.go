package realserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// fieldManager names the harness as the owner of what it applies.
const fieldManager = "signalbox-test"

// Ref names an object in a cluster.
type Ref struct {
	APIVersion string // As in a manifest, e.g. kustomize.toolkit.fluxcd.io/v1.
	Kind       string
	Namespace  string // Empty for an object of the whole cluster.
	Name       string
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Apply applies the manifests in a YAML stream in their order (server-side apply, taking over fields that
// others own), and returns when their CustomResourceDefinitions can be used. It repeats what fails because
// a kind is not known yet, until ctx is done or for ten seconds.
func (k *Kube) Apply(ctx context.Context, manifests []byte) error {
	objects, err := decode(manifests)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for _, o := range objects {
		ref := refOf(o)
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := k.retryUnknownKind(limited, func() error {
			resource, err := k.resource(ref)
			if err != nil {
				return err
			}
			_, err = resource.Apply(ctx, ref.Name, o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
			return err
		})
		cancel()
		if err != nil {
			return fmt.Errorf("apply %s: %w", ref, err)
		}
		if ref.Kind == "CustomResourceDefinition" {
			if _, err := k.Wait(ctx, ref, HasCondition("Established", "True")); err != nil {
				return err
			}
		}
	}
	return nil
}

// CreateNamespace creates a namespace, unless it exists.
func (k *Kube) CreateNamespace(ctx context.Context, name string) error {
	return k.Apply(ctx, fmt.Appendf(nil, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %q}\n", name))
}

// Delete deletes the objects in a YAML stream, the last first, and returns when they are gone. What does
// not exist is not an error.
func (k *Kube) Delete(ctx context.Context, manifests []byte) error {
	objects, err := decode(manifests)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	for i := range objects {
		ref := refOf(objects[len(objects)-1-i])
		resource, err := k.resource(ref)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", ref, err)
		}
		if err := resource.Delete(ctx, ref.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", ref, err)
		}
		if err := k.WaitGone(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// DeleteAll deletes every object of the kind in the namespace of ref, and returns when they are gone. The
// name in ref is ignored.
func (k *Kube) DeleteAll(ctx context.Context, ref Ref) error {
	resource, err := k.resource(ref)
	if err != nil {
		return fmt.Errorf("delete every %s in %s: %w", ref.Kind, ref.Namespace, err)
	}
	if err := resource.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete every %s in %s: %w", ref.Kind, ref.Namespace, err)
	}
	return poll(ctx, fmt.Sprintf("wait for the end of every %s in %s", ref.Kind, ref.Namespace), func() (bool, string) {
		left, err := resource.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		return len(left.Items) == 0, fmt.Sprintf("there are %d", len(left.Items))
	})
}

// Get reads an object.
func (k *Kube) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	resource, err := k.resource(ref)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	o, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return o, nil
}

// Condition decides whether an object is as awaited. When it is not, why says what is missing.
type Condition func(o *unstructured.Unstructured) (met bool, why string)

// HasCondition is met by an object that carries the condition with that status.
func HasCondition(kind, status string) Condition {
	return func(o *unstructured.Unstructured) (bool, string) {
		c, ok := StatusCondition(o, kind)
		if !ok {
			return false, "it has no condition " + kind
		}
		return string(c.Status) == status, fmt.Sprintf("%s is %s (%s: %s)", kind, c.Status, c.Reason, c.Message)
	}
}

// StatusCondition returns a condition in the status of an object, and whether it is there.
func StatusCondition(o *unstructured.Unstructured, kind string) (metav1.Condition, bool) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok || fields["type"] != kind {
			continue
		}
		text := func(name string) string { s, _ := fields[name].(string); return s }
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		}, true
	}
	return metav1.Condition{}, false
}

// Wait reads an object until the condition is met, and returns it as it was then. It waits for objects
// that do not exist yet and through times in which the API server does not answer. The error at the end of
// ctx says what was missing at last.
func (k *Kube) Wait(ctx context.Context, ref Ref, met Condition) (*unstructured.Unstructured, error) {
	var found *unstructured.Unstructured
	err := poll(ctx, "wait for "+ref.String(), func() (bool, string) {
		o, err := k.Get(ctx, ref)
		if err != nil {
			return false, err.Error()
		}
		found = o
		return met(o)
	})
	return found, err
}

// WaitGone waits until an object does not exist.
func (k *Kube) WaitGone(ctx context.Context, ref Ref) error {
	return poll(ctx, "wait for the end of "+ref.String(), func() (bool, string) {
		_, err := k.Get(ctx, ref)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return true, ""
		}
		return false, fmt.Sprintf("it is still there (error: %v)", err)
	})
}

// poll asks until met or the end of ctx.
func poll(ctx context.Context, what string, check func() (met bool, why string)) error {
	last := "nothing was read"
	for {
		met, why := check()
		if met {
			return nil
		}
		if ctx.Err() == nil {
			last = why // What fails because ctx has ended explains nothing.
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %s", what, ctx.Err(), last)
		case <-time.After(pollInterval):
		}
	}
}

// retryUnknownKind repeats do while the kind is not known to the API server.
func (k *Kube) retryUnknownKind(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pollInterval):
		}
	}
}

// resource returns the client for an object's kind. The cache of kinds is renewed when a kind is missing.
func (k *Kube) resource(ref Ref) (dynamic.ResourceInterface, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	mapping, err := k.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: ref.Kind}, gv.Version)
	if meta.IsNoMatchError(err) {
		k.mapper.Reset()
		mapping, err = k.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: ref.Kind}, gv.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return k.dynamic.Resource(mapping.Resource), nil
	}
	if ref.Namespace == "" {
		return nil, errors.New("the kind lives in a namespace, and none is given")
	}
	return k.dynamic.Resource(mapping.Resource).Namespace(ref.Namespace), nil
}

func refOf(o *unstructured.Unstructured) Ref {
	return Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// decode reads the objects of a YAML stream, without empty documents.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read manifest %d: %w", len(objects)+1, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if o.GetKind() == "" || o.GetName() == "" {
			return nil, fmt.Errorf("read manifest %d: it has no kind or no name", len(objects)+1)
		}
		objects = append(objects, o)
	}
}
