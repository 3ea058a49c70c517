package policy

import (
	"signalbox/internal/precondition"
	"signalbox/internal/yamlfile"
)

// Path is where a repository keeps its policy.
const Path = ".gitea/signalbox.yaml"

// File is a policy as people write it. Globs are doublestar globs on whole
// paths from the root of the repository: "/" is the only separator, "*" stays
// within a folder, "**" goes through folders. The old and the new name of a
// renamed file both count.
type File struct {
	// Version of the format; 1.
	Version int `yaml:"version" json:"version" jsonschema:"required,enum=1"`
	// Targets says which clusters a path reaches. A file that no target names
	// reaches every cluster.
	Targets []Target `yaml:"targets" json:"targets,omitempty"`
	// Preconditions are what must be true before a merge.
	Preconditions []Precondition `yaml:"preconditions" json:"preconditions,omitempty"`
	// Approvals are who must agree before a merge.
	Approvals []ApprovalRule `yaml:"approvals" json:"approvals,omitempty"`
	// Override says who may pass what is not met; nobody if it is not given. The
	// operator's list passes every rule, a repository's only its own.
	Override *OverrideRule `yaml:"override" json:"override,omitempty"`
	// Merge says whether signalbox merges when it is told to.
	Merge *MergeRule `yaml:"merge" json:"merge,omitempty"`
}

// OverrideRule says who may pass what is unmet, unknown or not approved.
type OverrideRule struct {
	// From says who may; never the author of the pull request, nor a bot.
	From People `yaml:"from" json:"from" jsonschema:"required"`
	// TTL is how long an override lasts at most; 4h if not given.
	TTL yamlfile.Duration `yaml:"ttl" json:"ttl,omitempty"`
	// SecondPerson asks for the override of two people.
	SecondPerson bool `yaml:"secondPerson" json:"secondPerson,omitempty"`
}

// MergeRule says how signalbox merges.
type MergeRule struct {
	// Enabled allows the command /merge.
	Enabled bool `yaml:"enabled" json:"enabled,omitempty"`
	// Method is how; "merge" if not given. Gitea must allow it too.
	Method string `yaml:"method" json:"method,omitempty" jsonschema:"enum=merge,enum=rebase,enum=rebase-merge,enum=squash,enum=fast-forward-only"`
}

// Target is a cluster and the paths that reach it.
type Target struct {
	// Cluster is the name of the cluster in the configuration of signalbox.
	Cluster string `yaml:"cluster" json:"cluster" jsonschema:"required"`
	// Paths are globs of the files that reach the cluster.
	Paths []string `yaml:"paths" json:"paths" jsonschema:"required,minItems=1"`
}

// Scope says which pull requests a rule is for. Each field that is given must
// match; within a field one match is enough.
type Scope struct {
	// Paths are globs; a changed file must match one.
	Paths []string `yaml:"paths" json:"paths,omitempty"`
	// Base are globs of the branch that the pull request goes into.
	Base []string `yaml:"base" json:"base,omitempty"`
	// Labels are globs; the pull request must carry a label that matches one.
	Labels []string `yaml:"labels" json:"labels,omitempty"`
	// Author are logins, in any letter case.
	Author []string `yaml:"author" json:"author,omitempty"`
}

// Precondition is one thing that must be true. It has exactly one kind.
type Precondition struct {
	// Name is what people read; unique within the file.
	Name  string `yaml:"name" json:"name" jsonschema:"required"`
	Scope `yaml:",inline"`
	// Unless takes pull requests out again: files that match its paths do not
	// count, and if every other field given matches, the rule is not for the
	// pull request.
	Unless             *Scope `yaml:"unless" json:"unless,omitempty"`
	precondition.Kinds `yaml:",inline"`
}

// ApprovalRule asks for the agreement of people. The author of the pull request
// never counts, nor does a bot.
type ApprovalRule struct {
	// Name is what people read; unique within the file.
	Name   string `yaml:"name" json:"name" jsonschema:"required"`
	Scope  `yaml:",inline"`
	Unless *Scope `yaml:"unless" json:"unless,omitempty"`
	// Count is how many different people must approve; 1 if not given.
	Count int `yaml:"count" json:"count,omitempty" jsonschema:"minimum=1"`
	// From says whose approval counts.
	From People `yaml:"from" json:"from" jsonschema:"required"`
	// Survive says what an approval survives: "none" (the default) is no push
	// at all, "identical-diff" a push that leaves the diff as it was, such as a
	// rebase.
	Survive string `yaml:"survive" json:"survive,omitempty" jsonschema:"enum=none,enum=identical-diff"`
}

// Values of [ApprovalRule.Survive].
const (
	SurviveNone          = "none"
	SurviveIdenticalDiff = "identical-diff"
)

// People are accounts, by name or by team.
type People struct {
	// Teams are "team" of the organisation that owns the repository, or
	// "organisation/team".
	Teams []string `yaml:"teams" json:"teams,omitempty"`
	// Users are logins, in any letter case.
	Users []string `yaml:"users" json:"users,omitempty"`
}
