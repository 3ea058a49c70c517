package config

import (
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/policy"
	"signalbox/internal/yamlfile"
)

const (
	// minSync and maxSync bound the interval of [Sync].
	minSync = 10 * time.Millisecond
	maxSync = 10 * time.Minute
	// restlessSilence is two heartbeats of a cluster, which come every 10s, and
	// the time for a slow answer.
	restlessSilence = 30 * time.Second

	defaultListen = ":8080"
)

// config makes the configuration of a file, with the environment already in
// it, and reports what is wrong.
func (l *loader) config(f *File) *Config {
	if l.purpose.agent() {
		return &Config{Clusters: l.clusters(f.Clusters), Bus: l.bus(&f.Bus), Listen: l.listen(f.HTTP.Listen), Log: l.log(&f.Log)}
	}
	c := &Config{}
	l.gitea(f, &c.Gitea)
	l.secrets(&c.Gitea)
	c.Repositories = l.repositories(f.Repositories)
	c.Clusters = l.clusters(f.Clusters)
	c.Bots = l.bots(f.Bots)
	c.Chat = l.chat(f)
	c.Digests, c.Alerts, c.Watch = l.digests(f), l.alerts(f), l.watch(f)
	c.Web = l.web(f.Web)
	c.Policy = l.policy(f)
	if c.Policy != nil {
		c.PolicyText = l.doc.Text(yamlfile.Path{"policy"})
	}
	c.Bus = l.bus(&f.Bus)
	l.reachable(c)
	c.Listen = l.listen(f.HTTP.Listen)
	c.Timing = l.timing(&f.Timing)
	c.Log = l.log(&f.Log)
	c.Tracing = l.tracing(f.Tracing)
	return c
}

// namePattern is what Gitea allows in the name of an owner or a repository.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func (l *loader) repositories(list []RepositoryFile) []Repository {
	at := yamlfile.Path{"repositories"}
	if len(list) == 0 && l.purpose != Check {
		l.missing(at, "name at least one", EnvRepositories)
	}
	var repositories []Repository
	seen := map[string]bool{}
	for i, r := range list {
		at := at.At(i, "name")
		owner, name, ok := strings.Cut(r.Name, "/")
		key := strings.ToLower(r.Name)
		switch {
		case r.Name == "":
			l.problem(at, "is empty", `write "owner/name"`)
		case strings.Contains(r.Name, "://"):
			l.problem(at, "is a URL", `write "owner/name"`)
		case !ok || !namePattern.MatchString(owner) || !namePattern.MatchString(name):
			l.problem(at, fmt.Sprintf("%q does not name a repository", r.Name), `write "owner/name"`)
		case strings.HasSuffix(key, ".git"):
			l.problem(at, fmt.Sprintf("%q ends with .git, as no repository does", r.Name), "leave it out")
		case seen[key]:
			l.problem(at, fmt.Sprintf("%q is given twice; letter case makes no difference", r.Name), "")
		}
		seen[key] = true
		repositories = append(repositories, Repository{Owner: owner, Name: name, Observe: r.Observe})
	}
	return repositories
}

// labelPattern is a DNS label, as RFC 1123 has it.
var labelPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (l *loader) clusters(list []ClusterFile) []Cluster {
	at := yamlfile.Path{"clusters"}
	switch {
	case len(list) == 0 && l.purpose.agent():
		l.missing(at, "name the cluster that the agent watches", EnvKubeconfig)
	case len(list) == 0:
		l.warn(at, "is missing: nothing is known of any cluster, so only approval rules can be met", "name one, or set "+EnvKubeconfig)
	}
	var clusters []Cluster
	seen := map[string]bool{}
	for i, c := range list {
		at := at.At(i)
		l.label(at, c.Name, "cluster", seen)
		switch {
		case c.Agent && l.purpose.agent():
			l.problem(at.At("agent"), "is for the configuration of signalbox; this one is the agent's", "say how the agent reaches the cluster: kubeconfig, or inCluster: true")
		case c.Agent && (c.InCluster || c.Kubeconfig != "" || c.Context != ""):
			l.problem(at, "has an agent, and says how to reach the cluster without one", "give agent, or how to reach it")
		case c.Agent:
		case c.InCluster && c.Kubeconfig != "":
			l.problem(at, "has both kubeconfig and inCluster", "give exactly one")
		case c.InCluster && c.Context != "":
			l.problem(at.At("context"), "belongs to a kubeconfig, not to inCluster", "remove it")
		case !c.InCluster && c.Kubeconfig == "":
			l.problem(at, "says nothing of where the cluster is", "give kubeconfig, inCluster: true, or agent: true")
		}
		clusters = append(clusters, Cluster{
			Name: c.Name, Kubeconfig: l.file(at.At("kubeconfig"), c.Kubeconfig), Context: c.Context, InCluster: c.InCluster, Agent: c.Agent,
		})
	}
	return clusters
}

// reachable reports clusters whose agents could not speak with signalbox: nobody can
// connect to the bus within a process.
func (l *loader) reachable(c *Config) {
	for i, cl := range c.Clusters {
		if cl.Agent && c.Bus.Embedded != nil {
			l.problem(yamlfile.Path{"clusters", i, "agent"}, "needs a bus that the agent can connect to, and the embedded one takes no connections", "use bus.nats")
		}
	}
}

func (l *loader) bots(list []string) []string {
	seen := map[string]bool{}
	for i, login := range list {
		at := yamlfile.Path{"bots", i}
		switch {
		case strings.HasPrefix(login, "@"):
			l.problem(at, fmt.Sprintf("%q is no login", login), "leave the @ out")
		case !namePattern.MatchString(login):
			l.problem(at, fmt.Sprintf("%q is no login", login), "write the name of the account in Gitea")
		case seen[strings.ToLower(login)]:
			l.warn(at, fmt.Sprintf("%q is given twice", login), "")
		}
		seen[strings.ToLower(login)] = true
	}
	return list
}

// policy compiles the operator's rules. A target that is no cluster of this
// configuration could never be heard from.
func (l *loader) policy(f *File) *policy.Policy {
	if f.Policy == nil {
		return nil
	}
	at := yamlfile.Path{"policy"}
	p, problems := policy.Compile("operator", *f.Policy, l.doc, at)
	l.problems = append(l.problems, problems...)
	for i, t := range f.Policy.Targets {
		if t.Cluster != "" {
			l.knownCluster(at.At("targets", i, "cluster"), f, t.Cluster)
		}
	}
	return p
}

func (l *loader) listen(address string) string {
	if address == "" {
		return defaultListen
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		l.problem(yamlfile.Path{"http", "listen"}, fmt.Sprintf("%q is no address to listen on", address), `write ":8080", or "127.0.0.1:8080" for this machine alone`)
	}
	return address
}

func (l *loader) timing(f *TimingFile) Timing {
	field := func(name string, given *yamlfile.Duration, fallback, least, most time.Duration) time.Duration {
		return l.duration(yamlfile.Path{"timing", name}, given, bounds{fallback, least, most})
	}
	t := Timing{
		Debounce:       field("debounce", f.Debounce, 300*time.Millisecond, 10*time.Millisecond, 10*time.Second),
		MaxWait:        field("maxWait", f.MaxWait, 2*time.Second, 10*time.Millisecond, time.Minute),
		Reconcile:      field("reconcile", f.Reconcile, 5*time.Minute, time.Second, 24*time.Hour),
		ClusterSilence: field("clusterSilence", f.ClusterSilence, time.Minute, time.Second, time.Hour),
	}
	if t.ClusterSilence < restlessSilence {
		l.warn(yamlfile.Path{"timing", "clusterSilence"}, short(t.ClusterSilence)+" is so short that one slow answer makes a cluster unknown", "give "+short(restlessSilence)+" or more")
	}
	if t.Debounce > t.MaxWait {
		if f.MaxWait == nil {
			// A longer debounce alone is a clear wish; the total follows it.
			t.MaxWait = t.Debounce
		} else {
			l.problem(yamlfile.Path{"timing", "maxWait"}, fmt.Sprintf("%s is less than debounce, %s", short(t.MaxWait), short(t.Debounce)), "")
		}
	}
	return t
}

// bounds are the default and the range of a duration.
type bounds struct{ fallback, least, most time.Duration }

func (l *loader) duration(at yamlfile.Path, given *yamlfile.Duration, b bounds) time.Duration {
	if given == nil {
		return b.fallback
	}
	d := given.D()
	if d < b.least || d > b.most {
		l.problem(at, fmt.Sprintf("%s is not from %s to %s", short(d), short(b.least), short(b.most)), "the default is "+short(b.fallback))
	}
	return d
}

// short writes a duration as a person does: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (l *loader) log(f *LogFile) Log {
	levels := map[string]slog.Level{"": slog.LevelInfo, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[f.Level]
	if !ok {
		l.problem(yamlfile.Path{"log", "level"}, fmt.Sprintf("%q is not known", f.Level), yamlfile.Suggest(f.Level, []string{"debug", "info", "warn", "error"}))
	}
	out := Log{Level: level, Format: LogFormat(f.Format)}
	switch out.Format {
	case "":
		out.Format = LogAuto
	case LogAuto, LogText, LogJSON:
	default:
		l.problem(yamlfile.Path{"log", "format"}, fmt.Sprintf("%q is not known", f.Format), yamlfile.Suggest(f.Format, []string{"auto", "text", "json"}))
	}
	return out
}

// tracePath is where receivers of OTLP over HTTP take traces.
const tracePath = "v1/traces"

func (l *loader) tracing(f *TracingFile) Tracing {
	if f == nil {
		return Tracing{}
	}
	at := yamlfile.Path{"tracing"}
	t := Tracing{SampleRatio: 1}
	if f.Endpoint == "" {
		l.problem(at.At("endpoint"), "is missing", "write it like http://localhost:4318/; leave tracing out to trace nothing")
	} else if u := l.address(at.At("endpoint"), f.Endpoint); u != nil {
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/"+tracePath) {
			l.problem(at.At("endpoint"), "is the address for traces", "leave out /"+tracePath+": signalbox adds it")
		}
		t.Endpoint = u.JoinPath(tracePath)
	}
	if f.SampleRatio != nil {
		t.SampleRatio = *f.SampleRatio
		if !(t.SampleRatio >= 0 && t.SampleRatio <= 1) {
			l.problem(at.At("sampleRatio"), fmt.Sprintf("%v is not from 0 to 1", t.SampleRatio), "1 traces everything, 0.1 a tenth")
		}
	}
	return t
}
