package main

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/kube"
)

func TestWatchedCluster(t *testing.T) {
	several := &config.Config{Clusters: []config.Cluster{{Name: "prod", InCluster: true}, {Name: "dev", Kubeconfig: "dev.yaml"}}}
	one := &config.Config{Clusters: several.Clusters[:1]}
	tests := []struct {
		name    string
		c       *config.Config
		cluster string
		want    string
		fails   string
	}{
		{"the only one", one, "", "prod", ""},
		{"the one that is named", several, "dev", "dev", ""},
		{"none is named", several, "", "", "has several clusters (prod, dev); say which with --cluster"},
		{"another is named", several, "lab", "", `--cluster "lab" is not in the configuration, which has prod, dev`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := watchedCluster(tt.c, tt.cluster)
			if got.Cluster != tt.want || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s, %v", got.Cluster, err)
			}
		})
	}
}

// TestAgentWithoutNATS: an agent that cannot connect ends, and says why and where.
func TestAgentWithoutNATS(t *testing.T) {
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := outpost{cluster: kube.Config{Cluster: "prod"}, nats: bus.External{URLs: []string{"nats://127.0.0.1:1"}}, listener: listener, log: slog.New(slog.DiscardHandler)}
	if err := o.run(t.Context()); err == nil || !strings.Contains(err.Error(), "nats://127.0.0.1:1") || !strings.Contains(err.Error(), "is it running") {
		t.Errorf("it ended with %v", err)
	}
}
