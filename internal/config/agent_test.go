package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
)

func TestLoadForAnAgent(t *testing.T) {
	const text = `clusters:
  - {name: prod, inCluster: true}
bus:
  nats: {urls: [tls://nats-0.example.org:4222, tls://nats-1.example.org:4222]}
`
	for _, purpose := range []config.Purpose{config.Agent, config.ValidateAgent} {
		c, warnings, problems := load(t, text, nil, purpose)
		if len(warnings)+len(problems) > 0 {
			t.Fatalf("%s%s", lines(warnings), lines(problems))
		}
		if diff := cmp.Diff([]config.Cluster{{Name: "prod", InCluster: true}}, c.Clusters); diff != "" {
			t.Errorf("clusters (-want +got):\n%s", diff)
		}
		if c.Bus.NATS == nil || c.Listen != ":8080" {
			t.Errorf("bus %+v, listens on %s", c.Bus, c.Listen)
		}
	}
	if _, _, problems := load(t, text, nil, config.Validate); len(problems) == 0 {
		t.Error("it is taken for the configuration of signalbox")
	}
	for _, text := range []string{"agent", ""} {
		_, _, problems := load(t, text, nil, config.Agent)
		if len(problems) == 0 {
			t.Errorf("%q is a configuration", text)
		}
	}
}

func TestProblemsOfAgents(t *testing.T) {
	const head = `gitea: {url: "https://gitea.example.org/", webhook: {manage: false}}
repositories: [{name: ops/home}]
`
	tests := []struct {
		name, text string
		purpose    config.Purpose
		want       string
	}{
		{
			"an agent, and a way round it", head + "clusters:\n  - {name: prod, agent: true, inCluster: true}\nbus: {nats: {urls: [nats://nats.example.org]}}\n", config.Validate,
			"c.yaml:4: clusters[0]: has an agent, and says how to reach the cluster without one (give agent, or how to reach it)",
		},
		{
			"no bus to connect to", head + "clusters:\n  - {name: prod, agent: true}\nbus: {embedded: {dir: /tmp}}\n", config.Validate,
			"c.yaml:4: clusters[0].agent: needs a bus that the agent can connect to, and the embedded one takes no connections (use bus.nats)",
		},
		{
			"the agent's own", "clusters:\n  - {name: prod, agent: true}\nbus: {nats: {urls: [nats://nats.example.org]}}\n", config.Agent,
			"c.yaml:2: clusters[0].agent: is for the configuration of signalbox; this one is the agent's (say how the agent reaches the cluster: kubeconfig, or inCluster: true)",
		},
		{
			"an embedded bus", "clusters:\n  - {name: prod, inCluster: true}\nbus: {embedded: {dir: /tmp}}\n", config.Agent,
			"c.yaml:3: bus.nats: is missing (give the NATS of signalbox, to which the agent tells what it sees)",
		},
		{
			"no cluster", "bus: {nats: {urls: [nats://nats.example.org]}}\n", config.Agent,
			"c.yaml:1: clusters: is missing (name the cluster that the agent watches; or set SIGNALBOX_KUBECONFIG)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, problems := load(t, tt.text, nil, tt.purpose)
			if diff := cmp.Diff(tt.want, lines(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
