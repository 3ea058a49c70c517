package kube

import (
	"cmp"
	"slices"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/renovate"
)

// cronJob is what is kept of a CronJob that runs Renovate.
type cronJob struct {
	uid, schedule string
	suspended     bool
	containers    []container
}

// cronJobState is a CronJob, and what it says of its runs.
type cronJobState struct {
	cronJob
	// scheduled is when it last made a job by its schedule, and succeeded when one
	// of its jobs last ended with success; zero for never.
	scheduled, succeeded time.Time
	// active are the names of the jobs that it knows to be at work.
	active []string
}

// container is one of its containers. Values that come from elsewhere are not
// filled in.
type container struct {
	name, image   string
	command, args []string
	env           []envVar
	from          []envSource
}

// envVar is a variable, or where its value is taken from.
type envVar struct {
	name, value string
	// configMap and key are set for a value of a ConfigMap, other says what else
	// it is taken from.
	configMap, key, other string
}

// envSource gives variables without their being named.
type envSource struct{ configMap, secret, prefix string }

// readCronJob reads a CronJob (batch/v1).
func readCronJob(o map[string]any) cell {
	c := cronJob{
		uid:       text(o, "metadata", "uid"),
		schedule:  text(o, "spec", "schedule"),
		suspended: flag(o, "spec", "suspend"),
	}
	if zone := text(o, "spec", "timeZone"); zone != "" {
		c.schedule = "TZ=" + zone + " " + c.schedule
	}
	for _, kind := range []string{"initContainers", "containers"} {
		for _, item := range list(o, "spec", "jobTemplate", "spec", "template", "spec", kind) {
			m, _ := item.(map[string]any)
			c.containers = append(c.containers, readContainer(m))
		}
	}
	state := cronJobState{cronJob: c, scheduled: moment(o, "status", "lastScheduleTime"), succeeded: moment(o, "status", "lastSuccessfulTime")}
	for _, item := range list(o, "status", "active") {
		if m, _ := item.(map[string]any); text(m, "name") != "" {
			state.active = append(state.active, text(m, "name"))
		}
	}
	return cell{data: state}
}

func readContainer(m map[string]any) container {
	c := container{name: text(m, "name"), image: text(m, "image"), command: texts(m, "command"), args: texts(m, "args")}
	for _, item := range list(m, "env") {
		e, _ := item.(map[string]any)
		v := envVar{name: text(e, "name"), value: whole(e["value"])}
		switch {
		case field(e, "valueFrom", "configMapKeyRef") != nil:
			v.configMap, v.key = text(e, "valueFrom", "configMapKeyRef", "name"), text(e, "valueFrom", "configMapKeyRef", "key")
		case field(e, "valueFrom", "secretKeyRef") != nil:
			v.other = "Secret " + text(e, "valueFrom", "secretKeyRef", "name") + ", which is never read"
		case e["valueFrom"] != nil:
			v.other = "its pod"
		}
		c.env = append(c.env, v)
	}
	for _, item := range list(m, "envFrom") {
		e, _ := item.(map[string]any)
		c.from = append(c.from, envSource{text(e, "configMapRef", "name"), text(e, "secretRef", "name"), text(e, "prefix")})
	}
	return c
}

func texts(m map[string]any, path ...string) []string {
	var out []string
	for _, item := range list(m, path...) {
		out = append(out, whole(item))
	}
	return out
}

// whole returns a text as it is: a command is not what it is without a blank at
// its end.
func whole(v any) string {
	s, _ := v.(string)
	return s
}

// configMaps returns the names of the ConfigMaps that are used.
func (c cronJob) configMaps() []string {
	var names []string
	for _, one := range c.containers {
		for _, v := range one.env {
			names = append(names, v.configMap)
		}
		for _, s := range one.from {
			names = append(names, s.configMap)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}

// configMap is a ConfigMap, or why it is not known.
type configMap struct {
	data    map[string]string
	problem string
}

// resolve returns the containers with what is known of the ConfigMaps.
func (c cronJob) resolve(maps map[string]configMap) []renovate.Container {
	var out []renovate.Container
	for _, one := range c.containers {
		r := renovate.Container{Name: one.name, Image: one.image, Command: one.command, Args: one.args}
		// What env names goes before what envFrom gives, and there the last.
		for _, s := range one.from {
			switch m, known := maps[s.configMap]; {
			case s.configMap == "":
				r.EnvFrom = append(r.EnvFrom, "Secret "+s.secret)
			case !known || m.problem != "":
				r.EnvFrom = append(r.EnvFrom, "ConfigMap "+s.configMap+because(m.problem))
			default:
				for key, value := range m.data {
					r.Env = append(r.Env, renovate.EnvVar{Name: s.prefix + key, Value: value, From: "ConfigMap " + s.configMap, Resolved: true})
				}
			}
		}
		for _, v := range one.env {
			e := renovate.EnvVar{Name: v.name, Value: v.value, From: v.other}
			if v.configMap != "" {
				m := maps[v.configMap]
				e.From = "ConfigMap " + v.configMap + ", key " + v.key + because(m.problem)
				e.Value, e.Resolved = m.data[v.key]
			}
			r.Env = append(r.Env, e)
		}
		out = append(out, r)
	}
	return out
}

func because(problem string) string {
	if problem == "" {
		return ""
	}
	return " (" + problem + ")"
}

// configured says what the next run will be, and which containers run Renovate.
func (c cronJob) configured(maps map[string]configMap) (out fact.RenovateConfigured, names []string) {
	read := renovate.CronJob([]string{c.schedule}, c.resolve(maps))
	out = fact.RenovateConfigured{Suspended: c.suspended}
	if s, ok := read.OnSchedule(); ok {
		out.Schedules, out.OnSchedule, out.Why = []string{c.schedule}, s.Mode.Word(), why(s.Why)
	}
	if s, ok := read.OnDispatch(); ok {
		out.ByHand = s.Mode.Word()
	}
	for _, p := range read.Places {
		names = append(names, p.Job)
	}
	return out, names
}

// batchJob is what is kept of a Job.
type batchJob struct {
	namespace, name, uid, owner string
	byHand, active              bool
	// conclusion is empty until the job is over.
	conclusion string
	// began is when it was started or made.
	began, completed time.Time
	// pods is how many of its pods have ended.
	pods int64
}

// id names the job as a run.
func (j batchJob) id() string { return j.namespace + "/" + j.name }

// readJob reads a Job (batch/v1). One that a CronJob made says so itself, also
// if a person had it made.
func readJob(o map[string]any) cell {
	j := batchJob{
		namespace: text(o, "metadata", "namespace"), name: text(o, "metadata", "name"), uid: text(o, "metadata", "uid"),
		byHand:    annotationOf(o, "cronjob.kubernetes.io/instantiate") == "manual",
		active:    number(o, "status", "active") > 0,
		began:     moment(o, "status", "startTime"),
		completed: moment(o, "status", "completionTime"),
		pods:      number(o, "status", "failed") + number(o, "status", "succeeded"),
	}
	j.active = j.active || !j.began.IsZero()
	j.began = cmp.Or(j.began, moment(o, "metadata", "creationTimestamp"))
	for _, item := range list(o, "metadata", "ownerReferences") {
		if m, _ := item.(map[string]any); flag(m, "controller") && text(m, "kind") == "CronJob" {
			j.owner = text(m, "uid")
		}
	}
	for kind, conclusion := range map[string]string{"Complete": "success", "Failed": "failure"} {
		if c := condition(o, kind); c.Status == fact.True {
			j.conclusion = conclusion
			if j.completed.IsZero() {
				j.completed = c.changed
			}
		}
	}
	return cell{data: j}
}

// run returns the run of a job without what its log tells.
func (j batchJob) run() *fact.RenovateRun {
	r := &fact.RenovateRun{
		ID: j.id(), Event: "schedule", Conclusion: j.conclusion, Job: j.name,
		Started: j.began, Completed: j.completed, Mode: fact.RenovateUnknown,
	}
	if j.byHand {
		r.Event = "manual"
	}
	return r
}
