package renovate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCronJob(t *testing.T) {
	full := EnvVar{Name: "RENOVATE_DRY_RUN", Value: "full"}
	const image = "ghcr.io/renovatebot/renovate:39.264.1"
	tests := map[string]struct {
		containers []Container
		want       Mode
		why        string
	}{
		"none":                     {nil, ModeUnknown, "no step that starts Renovate was found"},
		"another program":          {[]Container{{Name: "c", Image: "busybox", Command: []string{"true"}}}, ModeUnknown, "no step that starts Renovate was found"},
		"nothing given":            {[]Container{{Name: "c", Image: image}}, ModeLive, "container c: RENOVATE_DRY_RUN is not given, which is a live run"},
		"full":                     {[]Container{{Name: "c", Image: image, Env: []EnvVar{full}}}, ModeFull, "container c: RENOVATE_DRY_RUN is full"},
		"empty":                    {[]Container{{Name: "c", Image: image, Env: []EnvVar{{Name: "RENOVATE_DRY_RUN"}}}}, ModeLive, "container c: RENOVATE_DRY_RUN is empty; an empty value is a live run"},
		"the last counts":          {[]Container{{Name: "c", Image: image, Env: []EnvVar{{Name: "RENOVATE_DRY_RUN"}, full}}}, ModeFull, "container c: RENOVATE_DRY_RUN is full"},
		"not resolved":             {[]Container{{Name: "c", Image: image, Env: []EnvVar{{Name: "RENOVATE_DRY_RUN", From: "ConfigMap renovate, key mode"}}}}, ModeUnknown, "container c: RENOVATE_DRY_RUN: it is taken from ConfigMap renovate, key mode"},
		"resolved":                 {[]Container{{Name: "c", Image: image, Env: []EnvVar{{Name: "RENOVATE_DRY_RUN", Value: "lookup", From: "ConfigMap renovate, key mode", Resolved: true}}}}, ModeLookup, "container c: RENOVATE_DRY_RUN is lookup"},
		"made of others":           {[]Container{{Name: "c", Image: image, Env: []EnvVar{{Name: "RENOVATE_DRY_RUN", Value: "$(MODE)"}}}}, ModeUnknown, "container c: RENOVATE_DRY_RUN: it is made of others: $(MODE)"},
		"a source without names":   {[]Container{{Name: "c", Image: image, EnvFrom: []string{"ConfigMap renovate"}}}, ModeUnknown, "container c: RENOVATE_DRY_RUN is not given, and ConfigMap renovate may give it"},
		"named before the source":  {[]Container{{Name: "c", Image: image, Env: []EnvVar{full}, EnvFrom: []string{"ConfigMap renovate"}}}, ModeFull, "container c: RENOVATE_DRY_RUN is full"},
		"a file of its own":        {[]Container{{Name: "c", Image: image, Env: []EnvVar{{Name: "RENOVATE_CONFIG_FILE", Value: "/etc/x.js"}}}}, ModeUnknown, "container c: RENOVATE_DRY_RUN is not given, and RENOVATE_CONFIG_FILE may give another dryRun"},
		"an argument":              {[]Container{{Name: "c", Image: image, Args: []string{"--dry-run=full", "a/b"}}}, ModeFull, "container c: --dry-run is full"},
		"an argument with a word":  {[]Container{{Name: "c", Image: image, Args: []string{"--dry-run", "lookup"}}}, ModeFull, "container c: --dry-run (lookup behind it counts as a repository) is true; Renovate takes true as full, and warns"},
		"its name first":           {[]Container{{Name: "c", Image: image, Args: []string{"renovate", "--dry-run=full"}}}, ModeFull, "container c: --dry-run is full"},
		"a variable of Kubernetes": {[]Container{{Name: "c", Image: image, Args: []string{"--dry-run=$(RENOVATE_DRY_RUN)"}, Env: []EnvVar{full}}}, ModeFull, "container c: --dry-run is full"},
		"a variable of no shell":   {[]Container{{Name: "c", Image: image, Args: []string{"--dry-run=$RENOVATE_DRY_RUN"}, Env: []EnvVar{full}}}, ModeUnknown, `container c: --dry-run is $RENOVATE_DRY_RUN; "$RENOVATE_DRY_RUN" is not a value that Renovate knows; use full, lookup or extract`},
		"a command":                {[]Container{{Name: "c", Image: image, Command: []string{"renovate"}, Args: []string{"--dry-run=extract"}}}, ModeExtract, "container c: --dry-run is extract"},
		"a shell":                  {[]Container{{Name: "c", Image: image, Command: []string{"/bin/sh", "-c"}, Args: []string{"renovate --dry-run=$RENOVATE_DRY_RUN"}, Env: []EnvVar{full}}}, ModeFull, "container c: --dry-run is full"},
		"a shell as argument":      {[]Container{{Name: "c", Image: image, Args: []string{"bash", "-c", "unset RENOVATE_DRY_RUN; renovate"}, Env: []EnvVar{full}}}, ModeLive, "container c: RENOVATE_DRY_RUN is not given, which is a live run"},
		"env as argument":          {[]Container{{Name: "c", Image: image, Args: []string{"env", "-u", "RENOVATE_DRY_RUN", "renovate"}, Env: []EnvVar{full}}}, ModeUnknown, "container c: RENOVATE_DRY_RUN is not given, and what env does cannot be told from the file"},
		"a repository first":       {[]Container{{Name: "c", Image: image, Args: []string{"a/b"}, Env: []EnvVar{full}}}, ModeFull, "container c: RENOVATE_DRY_RUN is full"},
		"forced":                   {[]Container{{Name: "c", Image: image, Env: []EnvVar{full, {Name: "RENOVATE_FORCE", Value: "{}"}}}}, ModeUnknown, "container c: RENOVATE_FORCE may override what is set"},
		"a script":                 {[]Container{{Name: "c", Image: image, Command: []string{"/scripts/run.sh"}, Env: []EnvVar{full}}}, ModeUnknown, "container c: RENOVATE_DRY_RUN is not given, and what its command does cannot be told"},
		"two, one is live":         {[]Container{{Name: "c", Image: image, Env: []EnvVar{full}}, {Name: "d", Image: image}}, ModeLive, "container d: RENOVATE_DRY_RUN is not given, which is a live run"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := CronJob([]string{"@daily"}, test.containers)
			schedule, ok := c.OnSchedule()
			if !ok || schedule.Mode != test.want || schedule.Why != test.why {
				t.Errorf("got %s: %s", schedule.Mode, schedule.Why)
			}
			hand, ok := c.OnDispatch()
			if !ok || hand != schedule {
				t.Errorf("by hand %+v", hand)
			}
		})
	}
	if diff := cmp.Diff([]string{"@daily"}, CronJob([]string{"@daily"}, nil).Triggers[0].Crons); diff != "" {
		t.Error(diff)
	}
}

func TestParseDryRun(t *testing.T) {
	for value, want := range map[string]Mode{
		"": ModeLive, "full": ModeFull, "lookup": ModeLookup, "extract": ModeExtract, "true": ModeFull,
		"false": ModeLive, "null": ModeLive, "Full": ModeUnknown, " full": ModeUnknown, "1": ModeUnknown, "dry-run": ModeUnknown,
	} {
		mode, note := ParseDryRun(value)
		if mode != want {
			t.Errorf("%q: got %s", value, mode)
		}
		if plain := value == "full" || value == "lookup" || value == "extract"; plain != (note == "") {
			t.Errorf("%q: note %q", value, note)
		}
	}
}

func TestWorst(t *testing.T) {
	order := []Mode{ModeExtract, ModeLookup, ModeFull, ModeDryRun, ModeUnknown, ModeLive}
	for i, a := range order {
		for j, b := range order {
			if got := Worst(a, b); got != order[max(i, j)] {
				t.Errorf("of %s and %s: %s", a, b, got)
			}
		}
		if a.DryRun() != (i < 4) {
			t.Errorf("%s: dry run %v", a, a.DryRun())
		}
	}
	if Worst() != ModeUnknown || Worst("") != "" || Mode("").DryRun() {
		t.Error("nothing is not unknown")
	}
}
