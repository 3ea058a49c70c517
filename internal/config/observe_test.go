package config_test

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/config"
	"signalbox/internal/policy"
)

// small is a configuration that is complete and short.
const small = `gitea: {url: "https://gitea.example.org/", webhook: {manage: false}}
repositories: [{name: ops/home-gitops}]
clusters: [{name: prod, inCluster: true}]
bus: {embedded: {dir: data}}
`

func TestTracingIsOffByDefault(t *testing.T) {
	c, _, problems := load(t, small, with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"), config.Run)
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	if c.Tracing.Endpoint != nil {
		t.Errorf("traces go to %s, and nobody asked for them", c.Tracing.Endpoint)
	}
}

func TestTracingAndBudget(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"all is traced", "tracing: {endpoint: http://localhost:4318}", "http://localhost:4318/v1/traces 1"},
		{"a part is traced", "tracing: {endpoint: https://otel.example.org/x/, sampleRatio: 0}", "https://otel.example.org/x/v1/traces 0"},
		{"no endpoint", "tracing: {sampleRatio: 1}", "c.yaml:5: tracing.endpoint: is missing (write it like http://localhost:4318/; leave tracing out to trace nothing)"},
		{"not over HTTP", "tracing: {endpoint: \"grpc://localhost:4317\"}", "c.yaml:5: tracing.endpoint: does not start with https:// or http:// (write it like https://example.org/git/)"},
		{"the whole path", "tracing: {endpoint: http://localhost:4318/v1/traces}", "c.yaml:5: tracing.endpoint: is the address for traces (leave out /v1/traces: signalbox adds it)"},
		{"a password", "tracing: {endpoint: \"http://me:hunter2@localhost:4318\"}", "c.yaml:5: tracing.endpoint: holds a user or password (remove what stands before the @; what is secret comes from the environment)"},
		{"more than all", "tracing: {endpoint: http://localhost:4318, sampleRatio: 1.5}", "c.yaml:5: tracing.sampleRatio: 1.5 is not from 0 to 1 (1 traces everything, 0.1 a tenth)"},
		{"not a number", "tracing: {endpoint: http://localhost:4318, sampleRatio: .nan}", "c.yaml:5: tracing.sampleRatio: NaN is not from 0 to 1 (1 traces everything, 0.1 a tenth)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, problems := load(t, small+tt.text+"\n", secrets, config.Run)
			var got string
			if c == nil {
				got = problems.Err().Error()
			} else {
				got = fmt.Sprint(c.Tracing.Endpoint, " ", c.Tracing.SampleRatio)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	_, _, problems := load(t, strings.Replace(small, "gitea: {", "gitea: {budget: 0, ", 1), secrets, config.Run)
	if want := "c.yaml:1: gitea.budget: 0 is not 1 or more (the default is 5000)"; problems.Err() == nil || problems.Err().Error() != want {
		t.Errorf("got  %v\nwant %s", problems.Err(), want)
	}
}

// TestPolicyText tells that the operator's policy can be written out and read again.
func TestPolicyText(t *testing.T) {
	c, _, problems := load(t, small+`policy:
  version: 1 # a comment
  approvals:
    - &a {name: a, from: {users: [alice]}}
    - {name: b, from: {users: [bob]}, paths: ["x/**"]}
`, secrets, config.Run)
	if len(problems) > 0 {
		t.Fatal(problems.Err())
	}
	p, problems := policy.Load("operator", []byte(c.PolicyText))
	if len(problems) > 0 {
		t.Fatalf("%v in\n%s", problems.Err(), c.PolicyText)
	}
	if strings.Contains(c.PolicyText, "comment") || strings.ContainsAny(c.PolicyText, "&") || p == nil {
		t.Errorf("it is not alone:\n%s", c.PolicyText)
	}
}
