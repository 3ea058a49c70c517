package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"signalbox/internal/fact"
)

func (s *server) registerClusters(api huma.API) {
	register(api, huma.Operation{
		OperationID: "list-clusters", Path: "/clusters", Tags: []string{tagClusters},
		Summary:     "List the clusters",
		Description: "Every configured cluster in the order of the configuration: whether it is heard from, and how its objects of Flux stand.",
	}, s.listClusters)
	register(api, huma.Operation{
		OperationID: "get-cluster", Path: "/clusters/{name}", Tags: []string{tagClusters},
		Summary:     "Show a cluster",
		Description: "Whether it is heard from, how its objects of Flux stand, and what is watched on it.",
		Errors:      []int{http.StatusNotFound},
	}, s.getCluster)
	register(api, huma.Operation{
		OperationID: "list-objects", Path: "/clusters/{name}/objects", Tags: []string{tagClusters},
		Summary:     "List the objects of Flux on a cluster",
		Description: "Sorted by kind, namespace and name. Where a kind cannot be seen now, its objects are unknown and show what was known last; blind says so also where there are none.",
		Errors:      []int{http.StatusNotFound},
	}, s.listObjects)
}

// nothing is the input of a resource without parameters.
type nothing struct{}

func (s *server) listClusters(context.Context, *nothing) (Page[ClusterSummary], error) {
	out := Page[ClusterSummary]{Items: []ClusterSummary{}, Total: len(s.Clusters)}
	for _, name := range s.Clusters {
		out.Items = append(out.Items, s.look(name).summary())
	}
	return out, nil
}

// ClusterPath names a cluster.
type ClusterPath struct {
	Name string `path:"name" maxLength:"253" example:"prod" doc:"The name of the cluster in the configuration of signalbox."`
}

// known reports whether a cluster is configured, as an error of 404.
func (s *server) known(name string) error {
	if slices.Contains(s.Clusters, name) {
		return nil
	}
	if len(s.Clusters) == 0 {
		return huma.Error404NotFound("signalbox watches no cluster")
	}
	return huma.Error404NotFound(fmt.Sprintf("signalbox watches no cluster %q; it watches %s", clip(name), strings.Join(s.Clusters, ", ")))
}

func (s *server) getCluster(_ context.Context, at *ClusterPath) (Cluster, error) {
	if err := s.known(at.Name); err != nil {
		return Cluster{}, err
	}
	c := s.look(at.Name)
	out := Cluster{ClusterSummary: c.summary(), Watches: []Watch{}}
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		out.Watches = append(out.Watches, newWatch(kind, c.kinds[kind]))
	}
	return out, nil
}

// ObjectsQuery says which objects are wanted.
type ObjectsQuery struct {
	ClusterPath
	Kind      []string `query:"kind" enum:"Kustomization,HelmRelease,GitRepository,OCIRepository,HelmRepository,HelmChart,Bucket" maxItems:"7" doc:"Only these kinds, separated by commas."`
	State     []string `query:"state" enum:"ready,not-ready,suspended,deleting,unknown" maxItems:"5" doc:"Only those in one of these states, separated by commas."`
	Namespace string   `query:"namespace" maxLength:"253" example:"flux-system" doc:"Only those in this namespace."`
	Paging
}

func (s *server) listObjects(_ context.Context, q *ObjectsQuery) (ObjectPage, error) {
	if err := s.known(q.Name); err != nil {
		return ObjectPage{}, err
	}
	at, err := place("objects", q.Cursor, 3)
	if err != nil {
		return ObjectPage{}, err
	}
	c := s.look(q.Name)
	total := 0
	var rest []fact.Fact
	out := ObjectPage{Blind: []BlindKind{}}
	for _, kind := range fluxKinds() {
		if len(q.Kind) > 0 && !slices.Contains(q.Kind, kind) {
			continue
		}
		if why := c.blind(kind); why != "" {
			out.Blind = append(out.Blind, BlindKind{Kind: kind, Why: why})
		}
		for _, f := range c.objects(kind) {
			if (q.Namespace != "" && f.Key.Namespace != q.Namespace) ||
				(len(q.State) > 0 && !slices.Contains(q.State, c.state(kind, f))) {
				continue
			}
			total++
			if at == nil || slices.Compare([]string{kind, f.Key.Namespace, f.Key.Name}, at) > 0 {
				rest = append(rest, f)
			}
		}
	}
	out.Page = paged(rest, total, q.Paging, c.object, func(f fact.Fact) string {
		return cursor("objects", spelled(f.Key.Kind), f.Key.Namespace, f.Key.Name)
	})
	return out, nil
}

// fluxKinds are the kinds of Flux that signalbox watches, sorted.
func fluxKinds() []string {
	return []string{"Bucket", "GitRepository", "HelmChart", "HelmRelease", "HelmRepository", "Kustomization", "OCIRepository"}
}

// spelled is a kind as Kubernetes spells it.
func spelled(kind string) string {
	for _, k := range fluxKinds() {
		if strings.EqualFold(k, kind) {
			return k
		}
	}
	return kind
}

// look is one look at a cluster.
type look struct {
	name  string
	facts Facts
	// heardState is whether it is heard from, and heard when it last was, if it is not.
	heardState string
	heard      time.Time
	kinds      map[string]fact.Watch
	problem    string
}

// States of a cluster.
const (
	heard     = "heard"
	silent    = "silent"
	unknown   = "unknown"
	ready     = "ready"
	notReady  = "not-ready"
	suspended = "suspended"
	deleting  = "deleting"
)

func (s *server) look(name string) *look {
	c := &look{name: name, facts: s.Facts, heardState: unknown, problem: "it has not been heard from yet"}
	beat, ok := s.Facts.Lookup(fact.HeartbeatKey(name))
	if ok && !beat.Absent && beat.Heartbeat != nil {
		switch {
		case !beat.Heartbeat.Silent:
			c.heardState, c.problem = heard, ""
		case !beat.Heartbeat.LastHeard.IsZero():
			c.heardState, c.heard = silent, utc(beat.Heartbeat.LastHeard)
			c.problem = "nothing has been heard from it since " + c.heard.Format(time.RFC3339)
		}
	}
	watched, ok := s.Facts.Lookup(fact.ClusterKey(name))
	if ok && !watched.Absent && watched.Cluster != nil && watched.Problem == "" {
		c.kinds = watched.Cluster.Kinds
	} else if c.problem == "" {
		c.problem = "it is not known yet what it has"
		if watched.Problem != "" {
			c.problem = clip(watched.Problem)
		}
	}
	return c
}

// blind says why the objects of a kind are not known now, or nothing if they are.
func (c *look) blind(kind string) string {
	if c.problem != "" {
		return c.problem
	}
	w, ok := c.kinds[strings.ToLower(kind)]
	switch {
	case !ok:
		return "signalbox does not watch it"
	case w.State == fact.WatchSynced, w.State == fact.WatchNotInstalled:
		// A cluster without the kind has none of its objects, and that is known.
		return ""
	case w.State == fact.WatchSyncing:
		return "its list has not arrived yet"
	default:
		return "it cannot be watched: " + clip(w.Message)
	}
}

// objects are those of a kind, sorted by namespace and name.
func (c *look) objects(kind string) []fact.Fact {
	facts := c.facts.Select(fact.SourceKube, c.name, strings.ToLower(kind))
	out := make([]fact.Fact, 0, len(facts))
	for _, f := range facts {
		if !f.Absent && f.Key.Name != "" {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b fact.Fact) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}

// state is how an object stands, by the rules that a precondition of Flux has.
func (c *look) state(kind string, f fact.Fact) string {
	if c.blind(kind) != "" || f.Problem != "" || f.Flux == nil {
		return unknown
	}
	switch o := f.Flux; {
	case o.Deleting:
		return deleting
	case o.Suspended:
		return suspended
	case o.Ready.Status == "", o.Ready.Status == fact.False, o.Generation != o.ObservedGeneration:
		return notReady
	case o.Ready.Status == fact.True:
		return ready
	default:
		return unknown
	}
}

func (c *look) summary() ClusterSummary {
	out := ClusterSummary{Name: c.name, State: c.heardState, LastHeardAt: c.heard, Problem: c.problem}
	for _, kind := range fluxKinds() {
		if why := c.blind(kind); why != "" && c.problem == "" {
			out.Blind++
		}
		for _, f := range c.objects(kind) {
			out.Objects.Total++
			switch c.state(kind, f) {
			case ready:
				out.Objects.Ready++
			case notReady:
				out.Objects.NotReady++
			case suspended:
				out.Objects.Suspended++
			case deleting:
				out.Objects.Deleting++
			default:
				out.Objects.Unknown++
			}
		}
	}
	if c.problem != "" {
		out.Blind = len(fluxKinds())
	}
	return out
}
