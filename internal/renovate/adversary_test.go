package renovate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	started     = `"repository":"a/b","renovateVersion":"39.264.1","msg":"Repository started"`
	finished    = `"repository":"a/b","msg":"Repository finished"`
	wouldSave   = `"repository":"a/b","msg":"DRY-RUN: Would save repository cache."`
	textStarted = " INFO: Repository started (repository=a/b)\n       \"renovateVersion\": \"39.264.1\"\n"
	textSave    = " INFO: DRY-RUN: Would save repository cache. (repository=a/b)\n"
	textEnd     = " INFO: Repository finished (repository=a/b)\n       \"durationMs\": 5\n"
)

func configLine(config string) string { return `debug "config":` + config + `,"msg":"Combined config"` }

func TestAnalyzeProof(t *testing.T) {
	tests := map[string]struct {
		log  string
		want Mode
	}{
		"a line of a dry run":                  {jsonLog(started, wouldSave), ModeFull},
		"no line at all":                       {jsonLog(started, finished), ModeUnknown},
		"every kind writes about onboarding":   {jsonLog(started, `"repository":"a/b","msg":"DRY-RUN: Would commit files to onboarding branch"`), ModeDryRun},
		"every kind writes after an error":     {jsonLog(started, `"repository":"a/b","msg":"DRY-RUN: Would ensure configuration error issue"`), ModeDryRun},
		"the kind by the configuration":        {jsonLog(configLine(`{"dryRun":"lookup"}`), started, `"repository":"a/b","msg":"DRY-RUN: Would commit files to onboarding branch"`), ModeLookup},
		"a wording of tomorrow":                {jsonLog(started, `"repository":"a/b","msg":"DRY-RUN: Would paint it green"`), ModeFull},
		"extracted":                            {jsonLog(started, `"repository":"a/b","packageFiles":{},"msg":"Extracted dependencies"`), ModeExtract},
		"extracted and would commit":           {jsonLog(started, `"repository":"a/b","msg":"Extracted dependencies"`, wouldSave), ModeDryRun},
		"configured full, nothing to do":       {jsonLog(configLine(`{"dryRun":"full"}`), started, finished), ModeFull},
		"configured lookup":                    {jsonLog(configLine(`{"dryRun":"lookup"}`), started, finished), ModeLookup},
		"configured live, nothing to do":       {jsonLog(configLine(`{}`), started, finished), ModeLive},
		"configured null":                      {jsonLog(configLine(`{"dryRun":null}`), started, finished), ModeLive},
		"configured empty":                     {jsonLog(configLine(`{"dryRun":""}`), started, finished), ModeLive},
		"configured oddly":                     {jsonLog(configLine(`{"dryRun":"yes"}`), started, finished), ModeUnknown},
		"configured as an object":              {jsonLog(configLine(`{"dryRun":{}}`), started, finished), ModeUnknown},
		"configured live, but it would":        {jsonLog(configLine(`{}`), started, wouldSave), ModeUnknown},
		"configured full, but it wrote":        {jsonLog(configLine(`{"dryRun":"full"}`), started, wouldSave, `"repository":"a/b","msg":"PR updated"`), ModeLive},
		"the platform local is never live":     {jsonLog(configLine(`{"platform":"local"}`), started, finished), ModeDryRun},
		"a repository with its own":            {jsonLog(configLine(`{"dryRun":"full","repositories":[{"repository":"a/b","dryRun":null}]}`), started, finished), ModeUnknown},
		"repositories without their own":       {jsonLog(configLine(`{"dryRun":"full","repositories":["a/b",{"repository":"c/d"}]}`), started, finished), ModeFull},
		"the command line before all":          {jsonLog(`debug "config":{"dryRun":"lookup"},"msg":"CLI config"`, `debug "config":{"dryRun":"full"},"msg":"Env config"`, started), ModeLookup},
		"only the environment":                 {jsonLog(`debug "config":{},"msg":"CLI config"`, `debug "config":{"dryRun":"full"},"msg":"Env config"`, started), ModeFull},
		"the environment, no command line":     {jsonLog(`debug "config":{"dryRun":"full"},"msg":"Env config"`, started), ModeUnknown},
		"nothing given in the parts":           {jsonLog(`debug "config":{},"msg":"CLI config"`, `debug "config":{},"msg":"Env config"`, started), ModeUnknown},
		"the beginning is missing":             {jsonLog(wouldSave, finished), ModeUnknown},
		"the beginning is missing, it wrote":   {jsonLog(`"repository":"a/b","msg":"PR created"`, finished), ModeLive},
		"an issue at the level debug":          {jsonLog(started, wouldSave, `debug "repository":"a/b","msg":"Created new Issue #4"`), ModeLive},
		"the dashboard is really closed":       {jsonLog(started, `debug "repository":"a/b","msg":"Closing Dependency Dashboard"`), ModeLive},
		"automerged":                           {jsonLog(started, `"repository":"a/b","branch":"r/x","msg":"Branch automerged"`), ModeLive},
		"automerged in a dry run":              {jsonLog(started, `"repository":"a/b","branch":"r/x","msg":"DRY-RUN: Would automerge branch r/x"`, `"repository":"a/b","branch":"r/x","msg":"Branch automerged"`), ModeFull},
		"another branch automerged":            {jsonLog(started, `"repository":"a/b","branch":"r/x","msg":"DRY-RUN: Would automerge branch r/x"`, `"repository":"a/b","branch":"r/y","msg":"Branch automerged"`), ModeLive},
		"pushed to automerge":                  {jsonLog(started, wouldSave, `debug "repository":"a/b","prNumber":4,"msg":"Forgejo-native automerge: success"`), ModeLive},
		"automerged twice":                     {jsonLog(started, `"repository":"a/b","branch":"r/x","msg":"DRY-RUN: Would automerge branch r/x"`, `"repository":"a/b","branch":"r/x","msg":"Branch automerged"`, `"repository":"a/b","branch":"r/x","msg":"Branch automerged"`), ModeLive},
		"wrote without naming a repository":    {jsonLog(started, wouldSave, `"msg":"Issue created"`), ModeLive},
		"two repositories, one wrote":          {jsonLog(started, wouldSave, finished, strings.ReplaceAll(started, "a/b", "c/d"), `"repository":"c/d","msg":"PR created"`), ModeLive},
		"two repositories, one unknown":        {jsonLog(started, wouldSave, finished, strings.ReplaceAll(started, "a/b", "c/d")), ModeUnknown},
		"one repository twice, second unknown": {jsonLog(started, wouldSave, finished, started, finished), ModeUnknown},
		"text":                                 {textStarted + textSave + textEnd, ModeFull},
		"text, with the module":                {textStarted + " INFO: DRY-RUN: Would save repository cache. (repository=a/b) [cache]\n", ModeFull},
		"text, nothing":                        {textStarted + textEnd, ModeUnknown},
		"text, the beginning is missing":       {textSave + textEnd, ModeUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := analyze(t, test.log); got.Mode != test.want {
				t.Errorf("got %s (%s), want %s", got.Mode, got.Why, test.want)
			}
		})
	}
}

// What merely quotes a line of a dry run proves nothing.
func TestAnalyzeQuotes(t *testing.T) {
	const would = "DRY-RUN: Would save repository cache."
	for name, log := range map[string]string{
		"another program's JSON":       jsonLog(started) + `{"name":"other","level":30,"repository":"a/b","msg":"` + would + `","time":"2026-11-30T14:45:00Z","v":0}` + "\n",
		"JSON without a level":         jsonLog(started) + `{"name":"renovate","repository":"a/b","msg":"` + would + `","time":"2026-11-30T14:45:00Z","v":0}` + "\n",
		"JSON without a time":          jsonLog(started) + `{"name":"renovate","level":30,"repository":"a/b","msg":"` + would + `","v":0}` + "\n",
		"JSON behind a word":           jsonLog(started) + "echo " + jsonLog(wouldSave),
		"JSON with a key in capitals":  jsonLog(started) + `{"NAME":"renovate","LEVEL":30,"repository":"a/b","MSG":"` + would + `","TIME":"2026-11-30T14:45:00Z","V":0}` + "\n",
		"a title":                      jsonLog(started, `"repository":"a/b","prTitle":"`+would+`","msg":"Something else"`),
		"a message within":             jsonLog(started, `"repository":"a/b","x":{"msg":"`+would+`"},"msg":"Something else"`),
		"a message that goes on":       jsonLog(started, `"repository":"a/b","msg":"Cannot parse DRY-RUN: Would"`),
		"a name of a file, at debug":   jsonLog(started, `debug "repository":"a/b","msg":"DRY-RUN: Would x/package.json has no content"`),
		"no repository":                jsonLog(started, `"msg":"`+would+`"`),
		"echo":                         textStarted + "DRY-RUN: Would create PR: x (repository=a/b)\n" + textEnd,
		"echo with the level":          textStarted + "INFO: " + would + " (repository=a/b)\n" + textEnd,
		"a shell that traces":          textStarted + "+ echo ' INFO: " + would + " (repository=a/b)'\n" + textEnd,
		"an indented message":          textStarted + "    INFO: " + would + " (repository=a/b)\n" + textEnd,
		"the second line of a message": textStarted + " INFO: Problem (repository=a/b)\n       INFO: " + would + " (repository=a/b)\n" + textEnd,
		"a carriage return":            textStarted + " INFO: Problem x\r INFO: " + would + " (repository=a/b)\n" + textEnd,
		"a detail":                     textStarted + " WARN: Problem (repository=a/b)\n       \"prTitle\": \" INFO: " + would + "\"\n" + textEnd,
		"a name of a file, as text":    textStarted + "DEBUG: " + would + " (repository=a/b)\n" + textEnd,
		"a warning":                    textStarted + " WARN: " + would + " (repository=a/b)\n" + textEnd,
		"of another repository":        textStarted + " INFO: " + would + " (repository=c/d)\n" + textEnd,
		"a quoted repository":          textStarted + " INFO: " + would + " (repository=a/b) (repository=c/d)\n" + textEnd,
		"a title in the meta":          textStarted + " INFO: Problem DRY-RUN: Would (repository=a/b)\n" + textEnd,
		"the environment":              "##[group]Run renovate\nenv:\n  RENOVATE_DRY_RUN: full\n##[endgroup]\n" + textStarted + textEnd,
		"two times before it":          textStarted + "2026-11-30T14:45:22Z 2026-11-30T14:45:22Z  INFO: " + would + " (repository=a/b)\n" + textEnd,
		"the wrong text log level":     textStarted + " info: " + would + " (repository=a/b)\n" + textEnd,
		"text proof after a JSON run":  jsonLog(started, finished) + textSave,
	} {
		t.Run(name, func(t *testing.T) {
			if got := analyze(t, log); got.Mode != ModeUnknown {
				t.Errorf("got %s (%s)", got.Mode, got.Why)
			}
		})
	}
}

// A run of the text form is not told by the next one's words, nor by its
// configuration.
func TestAnalyzeConcatenated(t *testing.T) {
	all := logs(t)
	full, live, none := string(all["full-info.txt"]), string(all["live-empty.txt"]), textStarted+textEnd
	const ran = " INFO: Renovate was run at log level \"info\". Set LOG_LEVEL=debug in environment variables to see extended debug logs.\n"
	debugFull := "DEBUG: Parsing configs\nDEBUG: Combined config\n       \"config\": {\"dryRun\": \"full\"}\n" + textStarted + "DEBUG: Using localDir (repository=a/b)\n" + textEnd
	for name, test := range map[string]struct {
		log  string
		want []Mode
	}{
		"full, live":               {full + live, []Mode{ModeFull, ModeLive}},
		"live, full":               {live + full, []Mode{ModeLive, ModeFull}},
		"full, nothing":            {full + none + ran, []Mode{ModeFull, ModeUnknown}},
		"JSON full, JSON live":     {string(all["full-info.jsonl"]) + string(all["live-empty.jsonl"]), []Mode{ModeFull, ModeLive}},
		"JSON full, text live":     {string(all["full-info.jsonl"]) + live, []Mode{ModeFull, ModeLive}},
		"failed, full":             {string(all["no-token.txt"]) + full, []Mode{ModeUnknown, ModeFull}},
		"JSON configured, nothing": {jsonLogOf("1", configLine(`{"dryRun":"full"}`), started, finished) + jsonLogOf("2", started, finished), []Mode{ModeFull, ModeUnknown}},
		"debug, again":             {debugFull + strings.ReplaceAll(debugFull, `"full"`, `null`), []Mode{ModeFull, ModeLive}},
		// Nothing divides these two; the second has no line of the level debug, so
		// the configuration is not its own.
		"debug, then info": {debugFull + none, []Mode{ModeUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			report := analyze(t, test.log)
			var got []Mode
			for _, run := range report.Runs {
				got = append(got, run.Mode)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if report.Mode != Worst(test.want...) {
				t.Errorf("got %s in all", report.Mode)
			}
		})
	}
}

func TestAnalyzeSameProcessNumber(t *testing.T) {
	// A container numbers its processes anew; the context still differs.
	second := strings.ReplaceAll(jsonLog(started, finished), `"c1"`, `"c2"`)
	if got := analyze(t, jsonLog(configLine(`{"dryRun":"full"}`), started, finished)+second); len(got.Runs) != 2 || got.Mode != ModeUnknown {
		t.Errorf("got %d runs, %s", len(got.Runs), got.Mode)
	}
	// Lines of two processes may be mixed.
	mixed := jsonLogOf("1", started) + jsonLogOf("2", started) + jsonLogOf("1", wouldSave) + jsonLogOf("2", `"repository":"a/b","msg":"PR created"`)
	got := analyze(t, mixed)
	if len(got.Runs) != 2 || got.Runs[0].Mode != ModeFull || got.Runs[1].Mode != ModeLive {
		t.Errorf("got %+v", got.Runs)
	}
}

func TestAnalyzeEnvironment(t *testing.T) {
	log := "2026-11-30T14:45:22.1370000Z ##[group]Run renovate\n2026-11-30T14:45:22.1370000Z env:\n" +
		"2026-11-30T14:45:22.1370000Z   LOG_LEVEL: info\n2026-11-30T14:45:22.1370000Z   RENOVATE_DRY_RUN: full\n" +
		"2026-11-30T14:45:22.1370000Z   RENOVATE_TOKEN: ***\n2026-11-30T14:45:22.1370000Z ##[endgroup]\n" +
		"  RENOVATE_DRY_RUN: lookup\nenv:\n  RENOVATE_DRY_RUN: extract\n::group::x\nenv:\n  RENOVATE_DRY_RUN:\n"
	want := []Variable{
		{Name: "LOG_LEVEL", Value: "info", Line: 3},
		{Name: "RENOVATE_DRY_RUN", Value: "full", Line: 4},
		{Name: "RENOVATE_DRY_RUN", Line: 12},
	}
	if diff := cmp.Diff(want, analyze(t, log).Environment); diff != "" {
		t.Error(diff)
	}
}

func TestAnalyzeHidesCredentials(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef01234567"
	log := jsonLog(started,
		`"repository":"a/b","msg":"DRY-RUN: Would create PR: see https://x-access-token:`+token+`@gitea.example/a/b \u001b[31m\u202ered"`,
		`"repository":"a/b","branch":"r/x","pr":3,"prTitle":"token=`+token+`","msg":"PR created"`) +
		strings.Replace(jsonLog(`"err":{"message":"fatal: could not read from https://bot:`+token+`@gitea.example\nsecond"},"msg":"Unknown error"`), `"level":30`, `"level":60`, 1)
	report := analyze(t, log)
	text := flat(report)
	if strings.Contains(text, token[:8]) {
		t.Error(text)
	}
	if strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("control characters in %q", text)
	}
	if got := report.Runs[0].Failures[0].Detail; got != "fatal: could not read from https://***@gitea.example" {
		t.Errorf("detail %q", got)
	}
}
