package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"signalbox/internal/agent"
	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/handlers"
)

// bucketWishes holds what each replica wishes for of clusters that have an agent.
const bucketWishes = "wishes"

// agentsOf are the clusters that have an agent.
func agentsOf(c *config.Config) []string {
	var out []string
	for _, cl := range c.Clusters {
		if cl.Agent {
			out = append(out, cl.Name)
		}
	}
	return out
}

// wireHub makes what speaks with the agents of clusters, and returns the clusters to
// whoever wishes for facts of them.
func (a *app) wireHub(ctx context.Context) (map[string]handlers.ClusterCollector, error) {
	collectors := clusterCollectors(a.clusters, a.watchers)
	if len(a.agents) == 0 {
		return collectors, nil
	}
	wishes, err := bus.OpenBriefBucket[agent.Wished](ctx, a.bus, bucketWishes, agent.WishAge)
	if err != nil {
		return nil, err
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "signalbox_agent_requests_total", Help: "Requests of agents, by cluster, what was asked, and result (ok, refused).",
	}, []string{"cluster", "request", "result"})
	if err := a.registry.Register(requests); err != nil {
		return nil, fmt.Errorf("register the metrics of agents: %w", err)
	}
	a.hub = &agent.Hub{
		Line: a.bus.Line(), Facts: a.bus.Facts(), Wishes: wishes, Made: a.bus.Facts().Made,
		Beat: func(ctx context.Context, cluster, by string, at time.Time) error {
			return a.bus.Beats().Send(ctx, bus.Beat{Cluster: cluster, Replica: by, At: at})
		},
		Conflict: isConflict, Clusters: a.agents, Replica: replica(), Now: time.Now, Log: a.log,
		Answered: func(cluster, request string, err error) {
			result := "ok"
			if err != nil {
				result = "refused"
			}
			requests.WithLabelValues(cluster, request, result).Inc()
		},
	}
	a.bus.Facts().OnChange(a.hub.FactChanged)
	wishes.OnChange(a.hub.WishesChanged)
	for _, name := range a.agents {
		collectors[name] = a.hub.Collector(name)
	}
	return collectors, nil
}
