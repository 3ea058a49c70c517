package renovate

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// home is the workflow of a home cluster: by hand a dry run is the default, and
// by the clock the input is empty.
func home(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/workflows/home.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(t *testing.T, text string, variables map[string]string) Configuration {
	t.Helper()
	c, err := Workflow("renovate.yaml", []byte(text), variables)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWorkflow(t *testing.T) {
	const where = "job renovate, step Renovate: "
	want := Configuration{
		Triggers: []Trigger{
			{Event: "schedule", Crons: []string{"0 4 * * *"}, Setting: Setting{Mode: ModeLive, Why: where + "RENOVATE_DRY_RUN is empty; an empty value is a live run", Runs: RunsMaybe}},
			{Event: "workflow_dispatch", Setting: Setting{Mode: ModeFull, Why: where + "RENOVATE_DRY_RUN is full", Runs: RunsMaybe}},
		},
		Inputs: []Input{
			{Name: "dry_run", Type: "boolean", Default: "true", HasDefault: true, DryRun: true},
			{Name: "log_level", Type: "choice", Default: "info", HasDefault: true},
		},
		Places: []Place{
			{Job: "renovate", Step: "Renovate", Line: 37, How: "npx renovate@39.264.1", Conditions: []string{"github.ref == 'refs/heads/main'"}},
		},
		Secrets:   []string{"RENOVATE_TOKEN"},
		Variables: []string{"GITEA_ENDPOINT"},
	}
	if diff := cmp.Diff(want, read(t, home(t), nil)); diff != "" {
		t.Error(diff)
	}
}

// on is a workflow with one step for a table.
func on(triggers, step string) string {
	return "on:\n" + triggers + "\njobs:\n  renovate:\n    runs-on: x\n    steps:\n      - " + strings.ReplaceAll(strings.TrimSpace(step), "\n", "\n        ") + "\n"
}

const bothTriggers = `  schedule: [{cron: '0 4 * * *'}]
  workflow_dispatch:
    inputs:
      mode: {type: choice, options: [full, lookup, ''], default: full}
      bare: {type: choice, options: [full, lookup]}
      really: {type: boolean, default: false}
      free: {}`

func TestWorkflowSetting(t *testing.T) {
	env := func(value string) string {
		return "run: renovate\nenv: {RENOVATE_DRY_RUN: " + value + "}"
	}
	quoted := func(value string) string { return env(`"` + value + `"`) }
	tests := map[string]struct {
		step           string
		schedule, hand Mode
	}{
		"full":                         {env("full"), ModeFull, ModeFull},
		"lookup":                       {env("lookup"), ModeLookup, ModeLookup},
		"true":                         {env("true"), ModeFull, ModeFull},
		"false":                        {env("false"), ModeLive, ModeLive},
		"empty":                        {env("''"), ModeLive, ModeLive},
		"null":                         {env(""), ModeLive, ModeLive},
		"in capitals":                  {env("FULL"), ModeUnknown, ModeUnknown},
		"absent":                       {"run: renovate", ModeLive, ModeLive},
		"inputs":                       {quoted("${{ inputs.mode }}"), ModeLive, ModeFull},
		"inputs, in other letters":     {quoted("${{ Inputs.Mode }}"), ModeLive, ModeFull},
		"inputs, by index":             {quoted("${{ inputs['mode'] }}"), ModeLive, ModeFull},
		"the event's inputs":           {quoted("${{ github.event.inputs.mode }}"), ModeLive, ModeFull},
		"Gitea's inputs":               {quoted("${{ gitea.event.inputs.mode }}"), ModeLive, ModeFull},
		"with a fallback":              {quoted("${{ github.event.inputs.mode || 'full' }}"), ModeFull, ModeFull},
		"with a live fallback":         {quoted("${{ inputs.mode || '' }}"), ModeLive, ModeFull},
		"no default":                   {quoted("${{ inputs.free }}"), ModeLive, ModeLive},
		"a choice without default":     {quoted("${{ inputs.bare }}"), ModeLive, ModeUnknown},
		"an input that is not there":   {quoted("${{ inputs.other }}"), ModeLive, ModeLive},
		"a boolean, negated":           {quoted("${{ !inputs.really && 'full' || '' }}"), ModeFull, ModeFull},
		"a boolean as text is true":    {quoted("${{ github.event.inputs.really && 'full' || '' }}"), ModeLive, ModeFull},
		"a boolean compared as text":   {quoted("${{ github.event.inputs.really == 'true' && '' || 'full' }}"), ModeFull, ModeFull},
		"the event's name":             {quoted("${{ github.event_name == 'schedule' && 'lookup' || inputs.mode }}"), ModeLookup, ModeFull},
		"the event's name, otherwise":  {quoted("${{ github.event_name != 'schedule' && 'lookup' || 'full' }}"), ModeFull, ModeLookup},
		"parentheses":                  {quoted("${{ (github.event_name == 'schedule' || inputs.really) && 'full' || 'lookup' }}"), ModeFull, ModeLookup},
		"two expressions":              {quoted("${{ 'fu' }}${{ 'll' }}"), ModeFull, ModeFull},
		"a variable that is known":     {quoted("${{ vars.DRY_RUN }}"), ModeExtract, ModeExtract},
		"a variable that is not there": {quoted("${{ vars.OTHER }}"), ModeLive, ModeLive},
		"a variable as fallback":       {quoted("${{ vars.OTHER || 'full' }}"), ModeFull, ModeFull},
		"a function":                   {quoted("${{ format('full') }}"), ModeUnknown, ModeUnknown},
		"a secret":                     {quoted("${{ secrets.DRY_RUN }}"), ModeUnknown, ModeUnknown},
		"a secret with a fallback":     {quoted("${{ secrets.DRY_RUN || 'full' }}"), ModeUnknown, ModeUnknown},
		"a matrix":                     {quoted("${{ matrix.mode }}"), ModeUnknown, ModeUnknown},
		"an output":                    {quoted("${{ steps.x.outputs.mode }}"), ModeUnknown, ModeUnknown},
		"never the unknown":            {quoted("${{ 'full' || steps.x.outputs.mode }}"), ModeFull, ModeFull},
		"not closed":                   {quoted("${{ 'full'"), ModeUnknown, ModeUnknown},
		"not an expression":            {quoted("${{ 'full' 'full' }}"), ModeUnknown, ModeUnknown},
		"env of the step":              {"run: renovate\nenv: {A: full, RENOVATE_DRY_RUN: '${{ env.A }}'}", ModeLive, ModeLive},
		"a file of its own":            {"run: renovate\nenv: {RENOVATE_CONFIG_FILE: x.js}", ModeUnknown, ModeUnknown},
		"a file, but full":             {"run: renovate\nenv: {RENOVATE_CONFIG_FILE: x.js, RENOVATE_DRY_RUN: full}", ModeFull, ModeFull},
		"another prefix":               {"run: renovate\nenv: {ENV_PREFIX: X_}", ModeUnknown, ModeUnknown},

		"the action":                {"uses: renovatebot/github-action@v41\nenv: {RENOVATE_DRY_RUN: full}", ModeFull, ModeFull},
		"the action by its address": {"uses: https://github.com/renovatebot/github-action@v41\nenv: {RENOVATE_DRY_RUN: full}", ModeFull, ModeFull},
		"the action alone":          {"uses: renovatebot/github-action@v41", ModeLive, ModeLive},
		"the action with a file":    {"uses: renovatebot/github-action@v41\nwith: {configurationFile: x.js}", ModeUnknown, ModeUnknown},
		"the action with a pattern": {"uses: renovatebot/github-action@v41\nwith: {env-regex: '^X'}\nenv: {RENOVATE_DRY_RUN: full}", ModeUnknown, ModeUnknown},
		"an action like it":         {"uses: ./.gitea/actions/renovate\nenv: {RENOVATE_DRY_RUN: full}", ModeUnknown, ModeUnknown},
		"the image":                 {"uses: docker://ghcr.io/renovatebot/renovate:39\nenv: {RENOVATE_DRY_RUN: full}", ModeFull, ModeFull},
		"the image with arguments":  {"uses: docker://renovate/renovate\nwith: {args: x}\nenv: {RENOVATE_DRY_RUN: full}", ModeUnknown, ModeUnknown},
		"a script of another shell": {"run: import renovate\nshell: python\nenv: {RENOVATE_DRY_RUN: full}", ModeUnknown, ModeUnknown},
		"a script of bash":          {"run: renovate\nshell: bash -e {0}\nenv: {RENOVATE_DRY_RUN: full}", ModeFull, ModeFull},
		"another action":            {"uses: actions/checkout@v4\nenv: {RENOVATE_DRY_RUN: full}", ModeUnknown, ModeUnknown},
		"skipped by the clock":      {"run: renovate\nif: github.event_name != 'schedule'", ModeUnknown, ModeLive},
		"skipped, with the braces":  {"run: renovate\nif: ${{ github.event_name != 'schedule' }}", ModeUnknown, ModeLive},
		"skipped always":            {"run: renovate\nif: false", ModeUnknown, ModeUnknown},
		"perhaps skipped":           {"run: renovate --dry-run=full\nif: github.ref == 'x'", ModeFull, ModeFull},
		"always() is no condition":  {"run: renovate --dry-run=full\nif: always()", ModeFull, ModeFull},
		"only after a failure":      {"run: renovate\nif: failure()", ModeUnknown, ModeUnknown},
		"with the input in an if":   {"run: renovate --dry-run=full\nif: inputs.really", ModeUnknown, ModeUnknown},
		"a template of the whole":   {"run: renovate\nenv: ${{ fromJSON(vars.ENV) }}", ModeUnknown, ModeUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := read(t, on(bothTriggers, test.step), map[string]string{"dry_run": "extract"})
			schedule, ok := c.OnSchedule()
			hand, okHand := c.OnDispatch()
			if !ok || !okHand || schedule.Mode != test.schedule || hand.Mode != test.hand {
				t.Errorf("by the clock %s (%s)\nby hand %s (%s)", schedule.Mode, schedule.Why, hand.Mode, hand.Why)
			}
			if (schedule.Mode == ModeUnknown) && schedule.Why == "" {
				t.Error("unknown without a reason")
			}
		})
	}
}

func TestWorkflowCommands(t *testing.T) {
	tests := map[string]struct {
		run  string
		want Mode
	}{
		"flag":                            {"renovate --dry-run=full", ModeFull},
		"flag alone":                      {"renovate --dry-run", ModeFull},
		"flag with a word behind":         {"renovate --dry-run lookup", ModeFull},
		"flag false":                      {"renovate --dry-run=false", ModeLive},
		"flag empty":                      {"renovate --dry-run=", ModeLive},
		"flag before the environment":     {"RENOVATE_DRY_RUN=full renovate --dry-run=false", ModeLive},
		"flag quoted":                     {`renovate "--dry-run=full" a/b`, ModeFull},
		"flag on the next line":           {"renovate \\\n  --dry-run=full \\\n  a/b", ModeFull},
		"flag commented out":              {"renovate # --dry-run=full", ModeLive},
		"flag of another command":         {"renovate; echo --dry-run=full", ModeLive},
		"flag by an input":                {"renovate --dry-run=${{ inputs.mode }}", ModeFull},
		"flag by an input, quoted":        {"renovate --dry-run='${{ inputs.mode }}'", ModeFull},
		"flag as an expression":           {"renovate ${{ inputs.mode && '--dry-run=lookup' || '' }}", ModeLookup},
		"flag by a variable":              {`renovate --dry-run="$MODE"`, ModeLookup},
		"flag by a variable in braces":    {`renovate --dry-run="${MODE}"`, ModeLookup},
		"flag with a default":             {`renovate --dry-run=${NONE:-full}`, ModeFull},
		"flag by an empty variable":       {`renovate --dry-run=$NONE`, ModeLive},
		"flag by a command":               {`renovate --dry-run=$(cat mode)`, ModeUnknown},
		"arguments by a command":          {`renovate $(cat args)`, ModeUnknown},
		"a repository of the server's":    {`renovate "${{ github.repository }}"`, ModeLive},
		"another unknown argument":        {`renovate ${{ steps.x.outputs.args }}`, ModeUnknown},
		"a token":                         {`renovate --token=${{ secrets.TOKEN }} --dry-run=full`, ModeFull},
		"its version":                     {"renovate --version", ModeUnknown},
		"by npx":                          {"npx --yes renovate@39 --dry-run=full", ModeFull},
		"by npx with a package":           {"npx -p renovate renovate --dry-run=full", ModeFull},
		"by pnpm":                         {"pnpm dlx renovate@39.1.0 --dry-run=full", ModeFull},
		"by npm":                          {"npm exec -- renovate --dry-run=full", ModeFull},
		"installed only":                  {"npm install -g renovate", ModeUnknown},
		"by its path":                     {"./node_modules/.bin/renovate --dry-run=full", ModeFull},
		"the validator":                   {"npx --package renovate renovate-config-validator", ModeUnknown},
		"echoed":                          {"echo renovate --dry-run=full", ModeUnknown},
		"set for the command":             {"RENOVATE_DRY_RUN=full renovate", ModeFull},
		"set for env":                     {"env RENOVATE_DRY_RUN=full renovate", ModeFull},
		"set for another command":         {"RENOVATE_DRY_RUN=full true; renovate", ModeLive},
		"exported":                        {"export RENOVATE_DRY_RUN=full\nrenovate", ModeFull},
		"exported and unset":              {"export RENOVATE_DRY_RUN=full\nunset RENOVATE_DRY_RUN\nrenovate", ModeLive},
		"exported from an input":          {`export RENOVATE_DRY_RUN="${{ inputs.mode }}"` + "\nrenovate", ModeFull},
		"exported on a condition":         {"if [ -n \"$X\" ]; then\n  export RENOVATE_DRY_RUN=full\nfi\nrenovate", ModeUnknown},
		"exported behind &&":              {"[ -n \"$X\" ] && export RENOVATE_DRY_RUN=full\nrenovate", ModeUnknown},
		"exported in a group":             {"(export RENOVATE_DRY_RUN=full)\nrenovate", ModeUnknown},
		"exported by a command":           {"export RENOVATE_DRY_RUN=$(cat mode)\nrenovate", ModeUnknown},
		"in a condition":                  {"if true; then renovate --dry-run=full; else renovate --dry-run=lookup; fi", ModeFull},
		"in a condition, one is live":     {"if true; then renovate --dry-run=full; else renovate; fi", ModeLive},
		"behind a directory":              {"cd x && renovate --dry-run=full", ModeFull},
		"in a text":                       {"cat > x <<EOF\nrenovate --dry-run=full\nEOF\nrenovate", ModeLive},
		"in a shell":                      {`bash -euc "renovate --dry-run=full"`, ModeFull},
		"in a shell, from a command":      {`bash -c "$(cat script) renovate"`, ModeUnknown},
		"after a time":                    {"timeout 1h renovate --dry-run=full", ModeUnknown},
		"beside one that is not seen":     {"renovate --dry-run=full\ntimeout 1h renovate", ModeUnknown},
		"beside one that is evaluated":    {"renovate --dry-run=full\neval 'renovate'", ModeUnknown},
		"in a substitution":               {"OUT=$(renovate)", ModeLive},
		"in backticks":                    {"OUT=`renovate`", ModeUnknown},
		"in a substitution in quotes":     {"renovate --dry-run=full\necho \"$(renovate)\"", ModeUnknown},
		"in backticks in quotes":          {"renovate --dry-run=full\nOUT=\"`renovate`\"", ModeUnknown},
		"beside a text that a shell gets": {"renovate --dry-run=full\nbash <<EOF\nrenovate\nEOF", ModeUnknown},
		"beside one that a trap starts":   {"renovate --dry-run=full\ntrap renovate EXIT", ModeUnknown},
		"assigned and not exported":       {"RENOVATE_DRY_RUN=full\nrenovate", ModeLive},
		"assigned before it is exported":  {"RENOVATE_DRY_RUN=full\nexport RENOVATE_DRY_RUN\nrenovate", ModeFull},
		"exported before it is assigned":  {"export RENOVATE_DRY_RUN\nRENOVATE_DRY_RUN=full\nrenovate", ModeFull},
		"assigned where all is exported":  {"set -ea\nRENOVATE_DRY_RUN=full\nset +a\nrenovate", ModeFull},
		"declared and not exported":       {"declare RENOVATE_DRY_RUN=full\nrenovate", ModeLive},
		"declared for export":             {"declare -x RENOVATE_DRY_RUN=full\nrenovate", ModeFull},
		"exported in a pipe":              {"true | export RENOVATE_DRY_RUN=full\nrenovate", ModeUnknown},
		"not exported to a shell":         {`A=full; bash -c 'renovate --dry-run="$A"'`, ModeLive},
		"to a file of a variable":         {"renovate --dry-run=full > $NONE", ModeFull},
		"a substitution of another":       {"renovate --dry-run=full\nOUT=\"$(date) for renovate\"", ModeUnknown},
		"beside harmless ones":            {"npm i -g renovate\ngit config user.name renovate\ndocker pull renovate/renovate\ncat renovate.json | jq .\nrenovate --dry-run=full", ModeFull},
		"by a variable":                   {"$CMD --dry-run=full", ModeFull},
		"by another variable":             {"renovate --dry-run=full\n$NONE", ModeFull},
		"by an expression":                {"renovate --dry-run=full\n${{ steps.x.outputs.command }}", ModeUnknown},
		"by make":                         {"make renovate", ModeUnknown},
		"by a script":                     {"bash scripts/renovate.sh", ModeUnknown},
		"docker":                          {"docker run --rm -e RENOVATE_DRY_RUN=full renovate/renovate:39", ModeFull},
		"docker, handed on":               {"RENOVATE_DRY_RUN=full docker run --rm -e RENOVATE_DRY_RUN renovate/renovate:39", ModeFull},
		"docker, not handed on":           {"RENOVATE_DRY_RUN=full docker run --rm -e RENOVATE_TOKEN renovate/renovate:39", ModeLive},
		"docker, with a name":             {"docker run --name renovate --env=RENOVATE_DRY_RUN=full ghcr.io/renovatebot/renovate", ModeFull},
		"docker, with a file":             {"docker run --env-file=x renovate/renovate", ModeUnknown},
		"docker, with arguments":          {"docker run --rm renovate/renovate:39 renovate --dry-run=lookup a/b", ModeLookup},
		"docker, a tag from a variable":   {"docker run --rm -e RENOVATE_DRY_RUN=full renovate/renovate:$TAG", ModeFull},
		"docker compose":                  {"docker compose run renovate", ModeUnknown},
		"docker pull":                     {"docker pull renovate/renovate", ModeUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			step := "env: {MODE: lookup, CMD: npx -y renovate}\nrun: |\n  " + strings.ReplaceAll(test.run, "\n", "\n  ")
			c := read(t, on(bothTriggers, step), nil)
			if got, _ := c.OnDispatch(); got.Mode != test.want {
				t.Errorf("got %s (%s), want %s; %+v", got.Mode, got.Why, test.want, c.Places)
			}
		})
	}
}

// A script that may set the variable anew proves no dry run.
func TestWorkflowEnvironmentIsChanged(t *testing.T) {
	tests := map[string]struct {
		run  string
		want Mode
	}{
		"not":                        {"set -euo pipefail\nexport LOG_LEVEL=debug\nread -r X < f\nfor X in a b; do echo $X; done\nrenovate", ModeFull},
		"sudo":                       {"sudo renovate", ModeUnknown},
		"sudo that keeps it":         {"sudo -E renovate", ModeUnknown},
		"set for sudo":               {"RENOVATE_DRY_RUN=full sudo renovate", ModeUnknown},
		"set behind sudo":            {"sudo RENOVATE_DRY_RUN=lookup renovate", ModeLookup},
		"after sudo":                 {"sudo true\nrenovate", ModeFull},
		"a file":                     {". ./env\nrenovate", ModeUnknown},
		"a file, by source":          {"source ./env\nrenovate", ModeUnknown},
		"a file, exported":           {"set -a; . .env; renovate", ModeUnknown},
		"a file, by command":         {"command . ./env\nrenovate", ModeUnknown},
		"a file, and a flag":         {". ./env\nrenovate --dry-run=full", ModeFull},
		"a file, and set":            {". ./env\nRENOVATE_DRY_RUN=full renovate", ModeFull},
		"a file, and exported":       {". ./env\nexport RENOVATE_DRY_RUN=full\nrenovate", ModeUnknown},
		"a file for docker":          {". ./env\ndocker run -e RENOVATE_DRY_RUN renovate/renovate", ModeUnknown},
		"docker":                     {"docker run -e RENOVATE_DRY_RUN renovate/renovate", ModeFull},
		"docker by a variable":       {"docker run -e RENOVATE_DRY_RUN $OPTIONS renovate/renovate", ModeUnknown},
		"docker with a volume":       {`docker run -v "$PWD:/x" -e RENOVATE_DRY_RUN renovate/renovate`, ModeFull},
		"docker with a command":      {"docker run -e RENOVATE_DRY_RUN renovate/renovate sh -c 'RENOVATE_DRY_RUN= renovate'", ModeUnknown},
		"docker with an entry point": {"docker run -e RENOVATE_DRY_RUN --entrypoint sh renovate/renovate /x.sh", ModeUnknown},
		"docker with a force":        {"docker run -e RENOVATE_DRY_RUN -e RENOVATE_FORCE renovate/renovate", ModeUnknown},
		"eval":                       {`eval "$X"` + "\nrenovate", ModeUnknown},
		"not exported any more":      {"export -n RENOVATE_DRY_RUN\nrenovate", ModeUnknown},
		"declared so too":            {"declare +x RENOVATE_DRY_RUN\nrenovate", ModeUnknown},
		"declared a number":          {"declare -ix RENOVATE_DRY_RUN=full\nrenovate", ModeUnknown},
		"exported from a file":       {"export $(cat .env)\nrenovate", ModeUnknown},
		"exported in a loop":         {`while read -r l; do export "$l"; done < .env` + "\nrenovate", ModeUnknown},
		"read":                       {"read RENOVATE_DRY_RUN < f\nrenovate", ModeUnknown},
		"read by a variable":         {`read "$N"` + "\nrenovate", ModeUnknown},
		"read as a list":             {"mapfile -t RENOVATE_DRY_RUN < f\nrenovate", ModeUnknown},
		"printed":                    {"printf -v RENOVATE_DRY_RUN ''\nrenovate", ModeUnknown},
		"printed elsewhere":          {"printf '%s' $RENOVATE_DRY_RUN\nrenovate", ModeFull},
		"counted":                    {"let RENOVATE_DRY_RUN=0\nrenovate", ModeUnknown},
		"a loop":                     {"for RENOVATE_DRY_RUN in ''; do renovate; done", ModeUnknown},
		"a menu":                     {"select RENOVATE_DRY_RUN in ''; do renovate; done", ModeUnknown},
		"a default":                  {": ${RENOVATE_DRY_RUN:=x}\nrenovate", ModeUnknown},
		"unset":                      {"unset RENOVATE_DRY_RUN\nrenovate", ModeLive},
		"unset by a variable":        {"R=RENOVATE_DRY_RUN; unset $R; renovate", ModeUnknown},
		"unset on a condition":       {"true || unset RENOVATE_DRY_RUN\nrenovate", ModeUnknown},
		"unset for the next turn":    {"for x in a b; do renovate; unset RENOVATE_DRY_RUN; done", ModeUnknown},
		"unset before the call":      {"f() { renovate; }\nunset RENOVATE_DRY_RUN\nf", ModeUnknown},
		"forced":                     {`RENOVATE_FORCE='{"dryRun":null}' renovate`, ModeUnknown},
		"forced, with a flag":        {`RENOVATE_FORCE='{"dryRun":null}' renovate --dry-run=full`, ModeUnknown},
		"forced to nothing":          {"RENOVATE_FORCE= renovate", ModeFull},
		"an option that denies":      {"renovate --no-dry-run", ModeUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			step := "env: {RENOVATE_DRY_RUN: full}\nrun: |\n  " + strings.ReplaceAll(test.run, "\n", "\n  ")
			c := read(t, on(bothTriggers, step), nil)
			if got, _ := c.OnSchedule(); got.Mode != test.want || got.Why == "" {
				t.Errorf("got %s (%s), want %s; %+v", got.Mode, got.Why, test.want, c.Places)
			}
		})
	}
}

func TestWorkflowLayers(t *testing.T) {
	const text = `on: [schedule, push]
env: {RENOVATE_DRY_RUN: lookup, A: full}
jobs:
  one:
    env: {RENOVATE_DRY_RUN: "${{ env.A }}"}
    steps:
      - run: %BEFORE%
      - run: renovate
        env: {X: y}
`
	for before, want := range map[string]Mode{
		`echo hello`: ModeFull,
		`echo "RENOVATE_DRY_RUN=" >> "$GITHUB_ENV"`: ModeUnknown,
		`echo "LOG_LEVEL=debug" >> "$GITHUB_ENV"`:   ModeFull,
		`cat vars >> $GITHUB_ENV`:                   ModeUnknown,
	} {
		c := read(t, strings.ReplaceAll(text, "%BEFORE%", "'"+before+"'"), nil)
		if got, ok := c.On("push"); !ok || got.Mode != want || got.Runs != RunsYes {
			t.Errorf("%s: got %s (%s)", before, got.Mode, got.Why)
		}
	}
}

func TestWorkflowJobs(t *testing.T) {
	const text = `
on:
  schedule: [{cron: "@daily"}]
  workflow_dispatch:
jobs:
  preflight:
    if: vars.ENABLED == 'yes'
    steps: [{run: test -n "$X"}]
  dry:
    needs: preflight
    if: github.event_name == 'workflow_dispatch'
    steps: [{run: renovate --dry-run=full}]
  live:
    needs: [preflight]
    if: github.event_name == 'schedule'
    steps: [{id: go, run: renovate}]
  called:
    if: false
    uses: ./.gitea/workflows/renovate-base.yaml
`
	for enabled, runs := range map[string]Runs{"yes": RunsYes, "no": RunsNo} {
		c := read(t, text, map[string]string{"ENABLED": enabled})
		schedule, _ := c.OnSchedule()
		hand, _ := c.OnDispatch()
		if schedule.Runs != runs || hand.Runs != runs {
			t.Errorf("%s: by the clock %s, by hand %s", enabled, schedule.Runs, hand.Runs)
		}
		if runs == RunsYes && (schedule.Mode != ModeLive || hand.Mode != ModeFull) {
			t.Errorf("by the clock %s, by hand %s", schedule.Mode, hand.Mode)
		}
	}
	unknown, _ := read(t, text, nil).OnSchedule()
	if unknown.Runs != RunsMaybe || unknown.Mode != ModeLive {
		t.Errorf("got %+v", unknown)
	}
	places := read(t, text, nil).Places
	want := []Place{
		{Job: "dry", Step: "1", Line: 12, How: "renovate", Conditions: []string{"github.event_name == 'workflow_dispatch'", "vars.ENABLED == 'yes'"}},
		{Job: "live", Step: "go", Line: 16, How: "renovate", Conditions: []string{"github.event_name == 'schedule'", "vars.ENABLED == 'yes'"}},
		{Job: "called", Line: 18, How: "./.gitea/workflows/renovate-base.yaml", Conditions: []string{"false"}},
	}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Error(diff)
	}
}

func TestWorkflowAnchors(t *testing.T) {
	const text = "on: push\nenv: &env {RENOVATE_DRY_RUN: full}\njobs:\n  a:\n    steps: &steps\n      - {run: renovate, env: {<<: *env, X: y}}\n  b: {steps: *steps}\n"
	if got, _ := read(t, text, nil).On("push"); got.Mode != ModeFull {
		t.Errorf("got %s (%s)", got.Mode, got.Why)
	}
}

func TestWorkflowErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "r.yaml: is empty",
		"# nothing\n":                      "r.yaml: is empty",
		"- a\n":                            "r.yaml:1: is not a workflow; expected a mapping with on and jobs",
		"\njobs: {}\n":                     "r.yaml:2: is not a workflow; it has no on",
		"on: push\n":                       "r.yaml:1: is not a workflow; it has no jobs",
		"on: push\njobs: x\n":              "r.yaml:1: is not a workflow; it has no jobs",
		"on: push\njobs:\n\t- ":            "r.yaml: line 3: found character that cannot start any token",
		"on: [push\njobs: {}\n":            "r.yaml: line 1: did not find expected ',' or ']'",
		strings.Repeat("#", maxWorkflow+1): "r.yaml: is 1048577 bytes; the limit is 1048576",
	} {
		_, err := Workflow("r.yaml", []byte(text), nil)
		if err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", text, err, want)
		}
	}
}
