package kube

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Object names an object of Flux.
type Object struct{ Kind, Namespace, Name string }

// Right is a right of the account in a cluster.
type Right struct {
	// Resource may be a subresource, such as "pods/log".
	Verb, Group, Resource string
	// Namespace and Name are empty for all.
	Namespace, Name string
}

// String is the right in the words of kubectl.
func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" && r.Group != "*" {
		s += "." + r.Group
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// Inspection is what a look at a cluster has shown.
type Inspection struct {
	// Fault is why nothing could be read, in one line, or empty; Refused says
	// that the API server answered and refused the credentials.
	Fault   string
	Refused bool
	// Version is such as "v1.36.3", or empty where it does not tell. Date is the
	// time of its clock, cut to seconds, or zero; Before and After are the times
	// here between which it told it.
	Version             string
	Date, Before, After time.Time
	// Kinds holds every kind that is watched.
	Kinds []InspectedKind
	// Missing are rights that signalbox needs and the account lacks. Excess are
	// some that it has and signalbox has no use for. RightsFault is why the
	// rights could not be asked for, or empty.
	Missing, Excess []Right
	RightsFault     string
	// Absent are the objects that were asked about and are not there. Unread
	// are those that could not be looked for.
	Absent, Unread []Object
}

// InspectedKind is a kind of Flux on a cluster.
type InspectedKind struct {
	Kind string
	// Version is the one that is read, or empty; then Why says why it is.
	Version, Why string
	// Unread says that the definition could not be looked for.
	Unread bool
}

// Inspect looks at a cluster once: whether it answers, which kinds it has,
// whether the given objects exist, and what the account may do. It writes
// nothing but reviews of the account's own rights, which are kept nowhere. An
// error is of the configuration itself.
func Inspect(ctx context.Context, cfg Config, objects []Object) (*Inspection, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	i := &inspector{cfg: cfg, out: &Inspection{}}
	var err error
	if i.conn, err = cfg.connect(); err != nil {
		return nil, err
	}
	if err := i.ask(ctx); err != nil {
		f := explain("list", crdResource().GroupResource().String(), err)
		i.out.Fault, i.out.Refused = f.message, f.kind == failureUnauthorized || f.kind == failureForbidden
		return i.out, nil
	}
	i.kinds(ctx)
	i.objects(ctx, objects)
	i.rights(ctx, objects)
	return i.out, nil
}

type inspector struct {
	cfg  Config
	conn *connection
	out  *Inspection
}

// ask reads the version and the clock, and makes sure that the credentials are
// accepted.
func (i *inspector) ask(ctx context.Context) error {
	if i.cfg.Client == nil {
		if err := i.version(ctx); err != nil {
			return err
		}
	}
	_, err := i.conn.probe(ctx)
	return err
}

// version reads the version from the endpoint that answers anybody.
func (i *inspector) version(ctx context.Context) error {
	cfg, err := i.cfg.rest(&connection{})
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return err
	}
	i.out.Before = time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	i.out.After = time.Now()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		i.out.Date = date
	}
	var told struct {
		GitVersion string `json:"gitVersion"`
	}
	// Not all clusters tell it, and nothing depends on it.
	if data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16)); err == nil && json.Unmarshal(data, &told) == nil {
		i.out.Version = oneLine(told.GitVersion)
	}
	return nil
}

// kinds looks for the definition of every kind.
func (i *inspector) kinds(ctx context.Context) {
	for _, k := range kinds() {
		o := InspectedKind{Kind: k.kind}
		found, err := i.conn.client.Resource(crdResource()).List(ctx, byName(k.crd()))
		switch {
		case err != nil:
			o.Unread, o.Why = true, explain("list", crdResource().GroupResource().String()+" "+k.crd(), err).message
		case len(found.Items) == 0:
			o.Why = "the cluster has no CustomResourceDefinition " + k.crd()
		default:
			o.Version, o.Why = servedVersion(&found.Items[0])
		}
		i.out.Kinds = append(i.out.Kinds, o)
	}
}

func byName(name string) metav1.ListOptions {
	return metav1.ListOptions{Limit: 1, FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
}

// objects looks for the objects with the right that the watches need, which is
// to list.
func (i *inspector) objects(ctx context.Context, objects []Object) {
	for _, o := range objects {
		at := slices.IndexFunc(kinds(), func(k kind) bool { return k.kind == o.Kind })
		if at < 0 || i.out.Kinds[at].Version == "" {
			i.out.Unread = append(i.out.Unread, o)
			continue
		}
		k := kinds()[at]
		gvr := schema.GroupVersionResource{Group: k.group, Version: i.out.Kinds[at].Version, Resource: k.resource}
		found, err := i.conn.client.Resource(gvr).Namespace(o.Namespace).List(ctx, byName(o.Name))
		switch {
		case err != nil:
			i.out.Unread = append(i.out.Unread, o)
		case len(found.Items) == 0:
			i.out.Absent = append(i.out.Absent, o)
		}
	}
}

// required are the rights of [RequiredRules], one by one.
func required() []Right {
	var rights []Right
	for _, rule := range RequiredRules() {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				r := Right{Verb: verb, Group: rule.APIGroups[0], Resource: resource}
				if len(rule.ResourceNames) == 0 {
					rights = append(rights, r)
				}
				for _, name := range rule.ResourceNames {
					r.Name = name
					rights = append(rights, r)
				}
			}
		}
	}
	return rights
}

// needless are rights that whoever steals the credentials would like to have,
// the strongest first: one that includes others goes before them.
func needless(objects []Object) []Right {
	rights := []Right{{Verb: "*", Group: "*", Resource: "*"}, {Verb: "get", Resource: "secrets"}, {Verb: "list", Resource: "secrets"}}
	var namespaces []string
	for _, o := range objects {
		if !slices.Contains(namespaces, o.Namespace) {
			namespaces = append(namespaces, o.Namespace)
		}
	}
	for _, n := range namespaces {
		rights = append(rights, Right{Verb: "get", Resource: "secrets", Namespace: n}, Right{Verb: "list", Resource: "secrets", Namespace: n})
	}
	rights = append(rights,
		Right{Verb: "create", Resource: "pods"},
		Right{Verb: "create", Group: "apps", Resource: "deployments"},
		Right{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		Right{Verb: "impersonate", Resource: "users"},
	)
	for _, k := range kinds() {
		rights = append(rights, Right{Verb: "patch", Group: k.group, Resource: k.resource})
	}
	return rights
}

// reviews is the resource by which an account asks what it may do.
var reviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// rights asks for each right by a review of its own: a list of rules can be
// incomplete, and does not know what a webhook decides.
func (i *inspector) rights(ctx context.Context, objects []Object) {
	if i.out.Missing, i.out.RightsFault = i.lacks(ctx, required()); i.out.RightsFault != "" {
		return
	}
	for _, r := range needless(objects) {
		if slices.ContainsFunc(i.out.Excess, func(has Right) bool { return has.covers(r) }) {
			continue
		}
		allowed, err := i.allowed(ctx, r)
		if err != nil {
			i.out.RightsFault = explain("create", reviews.GroupResource().String(), err).message
			return
		}
		if allowed {
			i.out.Excess = append(i.out.Excess, r)
		}
	}
}

// covers reports whether whoever has a right has another one too.
func (r Right) covers(o Right) bool {
	return r.Verb == "*" && r.Resource == "*" || r.Namespace == "" && r.Verb == o.Verb && r.Group == o.Group && r.Resource == o.Resource
}

func (i *inspector) allowed(ctx context.Context, r Right) (bool, error) {
	attributes := map[string]any{"verb": r.Verb}
	for field, value := range map[string]string{"group": r.Group, "namespace": r.Namespace, "name": r.Name} {
		if value != "" {
			attributes[field] = value
		}
	}
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	attributes["resource"] = resource
	if subresource != "" {
		attributes["subresource"] = subresource
	}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": reviews.GroupVersion().String(), "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": attributes},
	}}
	out, err := i.conn.client.Resource(reviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	// An evaluationError beside a refusal is of bindings that name no role; the
	// refusal stands.
	return flag(out.Object, "status", "allowed"), nil
}
