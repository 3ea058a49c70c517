package renovate

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Container is the container of a CronJob that runs Renovate.
type Container struct {
	Name, Image string
	// Command and Args are as in the object; both may be empty, and the image's
	// own are used then.
	Command, Args []string
	Env           []EnvVar
	// EnvFrom are the ConfigMaps and Secrets that give variables without their
	// being named, and were not resolved into Env.
	EnvFrom []string
}

// EnvVar is a variable of a container.
type EnvVar struct {
	Name, Value string
	// From is what the value is taken from, such as "ConfigMap renovate, key
	// dryRun". If it is set and Resolved is not, the value is not known.
	From     string
	Resolved bool
}

// CronJob reads how a CronJob starts Renovate. schedules are the times, in cron's
// form; a job that is made from it by hand does the same.
func CronJob(schedules []string, containers []Container) Configuration {
	var c Configuration
	var all []given
	for _, container := range containers {
		all = append(all, c.container(container)...)
	}
	setting := together(all)
	cleaned := make([]string, len(schedules))
	for i, s := range schedules {
		cleaned[i] = clean(s)
	}
	c.Triggers = []Trigger{
		{Event: "schedule", Crons: cleaned, Setting: setting},
		{Event: "workflow_dispatch", Setting: setting},
	}
	return c
}

func (c *Configuration) container(one Container) []given {
	env := one.environment()
	s := newScript(env)
	words := make([]word, 0, len(one.Command)+len(one.Args))
	for _, text := range slices.Concat(one.Command, one.Args) {
		words = append(words, one.word(text))
	}
	first := ""
	if len(one.Command) > 0 {
		first = path.Base(one.Command[0])
	}
	switch {
	case first == "" && image.MatchString(one.Image) && (len(one.Args) == 0 || !ownCommand(one.Args[0])):
		// The image starts Renovate with the arguments, of which the first may be its name.
		if len(words) > 0 && one.Args[0] == "renovate" {
			words = words[1:]
		}
		s.add(one.Image, words, nil, false)
	case len(words) > 0:
		s.start(words, false)
	}
	found := s.all()
	if len(found) == 0 && strings.Contains(strings.ToLower(one.Image), "renovate") {
		found = []invocation{{how: clean(one.Image), sources: sources{doubt: "what its command does cannot be told"}}}
	}
	var all []given
	for _, i := range found {
		if i.doubt == "" && i.env == nil && len(one.EnvFrom) > 0 {
			i.doubt = clean(strings.Join(one.EnvFrom, " and ")) + " may give it"
		}
		mode, why := i.mode()
		runs := RunsYes
		if i.nested {
			runs = RunsMaybe
		}
		c.Places = append(c.Places, Place{Job: clean(one.Name), How: i.how})
		all = append(all, given{mode: mode, why: "container " + clean(one.Name) + ": " + why, runs: runs})
	}
	return all
}

// environment answers the variables. The last of a name counts, as Kubernetes
// has it.
func (c Container) environment() environment {
	return func(name string) (value, bool) {
		for _, v := range slices.Backward(c.Env) {
			switch {
			case v.Name != name:
			case v.From != "" && !v.Resolved:
				return notKnown("it is taken from " + clean(v.From)), true
			case kubeReference.MatchString(v.Value):
				return notKnown("it is made of others: " + clean(v.Value)), true
			default:
				return known(v.Value), true
			}
		}
		return value{}, false
	}
}

// kubeReference is how Kubernetes names a variable in a value or an argument.
var kubeReference = regexp.MustCompile(`\$\(([A-Za-z_][\w.-]*)\)`)

// word makes a word of an argument, in which only Kubernetes puts variables.
func (Container) word(text string) word {
	w := word{}
	for text != "" {
		at := kubeReference.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		w.parts = append(w.parts, part{literal: text[:at[0]]}, part{name: text[at[2]:at[3]]})
		text = text[at[1]:]
	}
	w.parts = append(w.parts, part{literal: text})
	return w
}
