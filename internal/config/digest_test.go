package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/schedule"
)

var chatSecrets = map[string]string{"SIGNALBOX_SLACK_BOT_TOKEN": "xoxb-1", "SIGNALBOX_SLACK_APP_TOKEN": "xapp-1"}

func TestDigests(t *testing.T) {
	c, problems := loadChat(t, `clusters: [{name: prod, inCluster: true}]
chat: {slack: {}}
digests:
  - name: morning
    schedule: "0 8 * * 1-5"
    timezone: Europe/Berlin
    sections: [flux, gate]
    clusters: prod
    repositories: Ops/home
    to: [{slack: C0123456}, {issue: ops/home}]
    chart: false
  - {name: night, schedule: "@daily", to: [{slack: C0123456}]}
alerts:
  - {name: urgent, sections: flux, after: 0s, to: [{slack: C0123456}]}
watch:
  kured: [{name: reboots}]
  checks:
    - {name: databases, text: is not healthy, kind: clusters.postgresql.cnpg.io, severity: notable, after: 10m, all: "object.status.phase == 'x'"}
  renovate:
    - {repository: ops/home, workflow: renovate.yaml}
    - {cluster: prod, namespace: renovate, cronJob: renovate}
`, chatSecrets)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	room := []chat.Room{{Platform: chat.Slack, ID: "C0123456"}}
	digests := []config.Digest{
		{
			Name: "morning", About: config.About{Sections: []digest.Section{digest.Flux, digest.Gate}, Clusters: []string{"prod"}, Repositories: []string{"Ops/home"}},
			Rooms: room, Issues: []string{"ops/home"},
		},
		{Name: "night", About: config.About{Sections: digest.Sections()}, Rooms: room, Chart: true},
	}
	times := cmp.Transformer("times", func(t *schedule.Times) string {
		if t == nil {
			return ""
		}
		return t.String()
	})
	for i, want := range []string{"0 8 * * 1-5 Europe/Berlin", "@daily UTC"} {
		if got := c.Digests[i].Times.String(); got != want {
			t.Errorf("the times are %s, want %s", got, want)
		}
		c.Digests[i].Times = nil
	}
	if diff := cmp.Diff(digests, c.Digests, times); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
	alerts := []config.Alert{{
		Name: "urgent", About: config.About{Sections: []digest.Section{digest.Flux}}, Settle: 2 * time.Minute, Rooms: room,
	}}
	if diff := cmp.Diff(alerts, c.Alerts); diff != "" {
		t.Errorf("alerts (-want +got):\n%s", diff)
	}
	watch := config.Watch{
		Kured: []digest.Kured{{Query: fact.KuredQuery{Namespace: "kube-system", Name: "reboots"}}},
		Checks: []digest.Check{{
			Name: "databases", Text: "is not healthy", Section: digest.Storage, Severity: digest.Notable, Grace: 10 * time.Minute,
			Query: fact.ObjectsQuery{Resource: "clusters.postgresql.cnpg.io", Test: "object.status.phase == 'x'"},
		}},
		Renovate: []config.Renovate{{Repository: "ops/home", Workflow: "renovate.yaml"}, {Cluster: "prod", Namespace: "renovate", CronJob: "renovate"}},
	}
	if diff := cmp.Diff(watch, c.Watch); diff != "" {
		t.Errorf("watch (-want +got):\n%s", diff)
	}
}

func TestDigestProblems(t *testing.T) {
	_, problems := loadChat(t, `chat: {slack: {}}
digests:
  - {name: Morning, schedule: "0 25 * * *", sections: [fluks, gate, gate], clusters: [prod], to: []}
  - {name: a, schedule: "@daily", timezone: Europe/Bern, to: [{slack: C0123456, issue: ops/home}, {issue: ops/other}, {}]}
  - {name: a, schedule: "@every 1h", repositories: [ops/other], to: [{matrix: "!abc:example.org"}]}
  - {name: now, schedule: "@daily", to: [{issue: ops/home}]}
alerts:
  - {name: urgent, settle: 1s, to: []}
watch:
  checks:
    - {name: ready, text: "", kind: Nodes, section: flux, severity: bad, all: "1 +"}
  renovate:
    - {repository: ops/home}
    - {repository: ops/home, workflow: x.yaml, cluster: prod}
    - {}
    - {cluster: prod, namespace: renovate, cronJob: renovate}
`, chatSecrets)
	want := []string{
		`c.yaml:6: digests[0].clusters[0]: "prod" is no cluster of this configuration`,
		`c.yaml:6: digests[0].name: "Morning" does not name a digest (use up to 63 lower-case letters, digits and hyphens, with no hyphen at the ends)`,
		`c.yaml:6: digests[0].schedule: schedule "0 25 * * *" cannot be read: end of range (25) above maximum (23): 25; write five fields as in crontab, such as "0 8 * * 1-5" for weekdays at eight`,
		`c.yaml:6: digests[0].sections[0]: "fluks" is no section (did you mean "flux"?)`,
		`c.yaml:6: digests[0].sections[2]: "gate" is given twice`,
		`c.yaml:6: digests[0].to: is missing (name at least one place)`,
		`c.yaml:7: digests[1].timezone: unknown time zone "Europe/Bern"; write a name of the IANA database, such as Europe/Berlin or UTC`,
		`c.yaml:7: digests[1].to[0]: names more than one place (give each an entry of its own)`,
		`c.yaml:7: digests[1].to[1].issue: "ops/other" is no repository of this configuration`,
		`c.yaml:7: digests[1].to[2]: needs one place (give slack, matrix or issue)`,
		`c.yaml:8: digests[2].name: "a" is the name of an earlier digest`,
		`c.yaml:8: digests[2].repositories[0]: "ops/other" is no repository of this configuration`,
		`c.yaml:8: digests[2].schedule: schedule "@every 1h" has no fixed times; write five fields as in crontab, such as "0 8 * * 1-5" for weekdays at eight`,
		`c.yaml:8: digests[2].to[0]: is on a platform that signalbox is not connected to (configure it as chat.slack or chat.matrix)`,
		`c.yaml:9: digests[3].name: "now" stands for how things stand at this moment (take another name)`,
		`c.yaml:11: alerts[0].settle: 1s is not from 10s to 24h (the default is 2m)`,
		`c.yaml:11: alerts[0].to: is missing (name at least one room)`,
	}
	if diff := cmp.Diff(want, problems[:min(len(want), len(problems))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	watch := problems[min(len(want), len(problems)):]
	for _, field := range []string{"checks[0].all", "checks[0].kind", "checks[0].name", "checks[0].section", "checks[0].severity", "checks[0].text", "renovate[0]", "renovate[1]", "renovate[2]", "renovate[3].cluster"} {
		if !containsField(watch, "watch."+field+":") {
			t.Errorf("nothing is said of watch.%s: %q", field, watch)
		}
	}
}
