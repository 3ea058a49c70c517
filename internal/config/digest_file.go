package config

import "signalbox/internal/yamlfile"

// DigestFile is a report on how things stand, sent by the clock.
type DigestFile struct {
	// Name is what people call it: lower-case letters, digits and hyphens.
	Name string `yaml:"name" json:"name" jsonschema:"required,example=morning"`
	// Schedule is a cron expression of five fields, such as "0 8 * * 1-5" for
	// weekdays at eight, or a word such as @daily.
	Schedule string `yaml:"schedule" json:"schedule" jsonschema:"required,example=0 8 * * 1-5"`
	// Timezone is that of the schedule, by its name in the IANA database; UTC by
	// default.
	Timezone string `yaml:"timezone" json:"timezone,omitempty" jsonschema:"default=UTC,example=Europe/Berlin"`
	// Sections are the parts of it, all by default: flux, nodes, storage, pipelines
	// and gate.
	Sections yamlfile.Strings `yaml:"sections" json:"sections,omitempty"`
	// Clusters are those that it is about, all by default.
	Clusters yamlfile.Strings `yaml:"clusters" json:"clusters,omitempty"`
	// Repositories are those that it is about, all by default.
	Repositories yamlfile.Strings `yaml:"repositories" json:"repositories,omitempty"`
	// To are the places where it is shown; at least one.
	To []PlaceFile `yaml:"to" json:"to" jsonschema:"required,minItems=1"`
	// Chart adds a picture of the last 30 days in rooms of chats; true by default.
	Chart *bool `yaml:"chart" json:"chart,omitempty" jsonschema:"default=true"`
}

// PlaceFile is where a digest is shown: exactly one of its fields.
type PlaceFile struct {
	// Slack is the id of a channel, such as C0123456.
	Slack string `yaml:"slack" json:"slack,omitempty"`
	// Matrix is the id of a room, such as !abc:example.org.
	Matrix string `yaml:"matrix" json:"matrix,omitempty"`
	// Issue is a repository, "owner/name", in which one issue is kept up to date.
	Issue string `yaml:"issue" json:"issue,omitempty"`
}

// AlertFile tells at once when something breaks, and when it recovers.
type AlertFile struct {
	// Name is what people call it: lower-case letters, digits and hyphens.
	Name string `yaml:"name" json:"name" jsonschema:"required,example=urgent"`
	// Sections, Clusters and Repositories are as in a digest.
	Sections     yamlfile.Strings `yaml:"sections" json:"sections,omitempty"`
	Clusters     yamlfile.Strings `yaml:"clusters" json:"clusters,omitempty"`
	Repositories yamlfile.Strings `yaml:"repositories" json:"repositories,omitempty"`
	// After is how long something is broken before that is told; 5m by default, 0s
	// to 24h.
	After *yamlfile.Duration `yaml:"after" json:"after,omitempty"`
	// Settle is how long it is well again before that is told; 2m by default, 10s to
	// 24h.
	Settle *yamlfile.Duration `yaml:"settle" json:"settle,omitempty"`
	// To are the rooms that are told; at least one.
	To []RoomFile `yaml:"to" json:"to" jsonschema:"required,minItems=1"`
}

// RoomFile is a room of a chat: exactly one of its fields.
type RoomFile struct {
	// Slack is the id of a channel, such as C0123456.
	Slack string `yaml:"slack" json:"slack,omitempty"`
	// Matrix is the id of a room, such as !abc:example.org.
	Matrix string `yaml:"matrix" json:"matrix,omitempty"`
}

// WatchFile is what digests and alerts look at beside Flux, pull requests and
// signalbox itself. Nothing of it is read while there is neither.
type WatchFile struct {
	// Kured is where kured runs. If it is not given, it is looked for as kured in the
	// namespaces kube-system and kured, and its absence is no finding.
	Kured []KuredFile `yaml:"kured" json:"kured,omitempty"`
	// Checks are tests of objects of any kind. Nodes, volumes of Longhorn and claims of
	// volumes are looked at without one.
	Checks []CheckFile `yaml:"checks" json:"checks,omitempty"`
	// Renovate is where Renovate runs.
	Renovate []RenovateFile `yaml:"renovate" json:"renovate,omitempty"`
}

// KuredFile is where kured runs on each cluster.
type KuredFile struct {
	// Namespace and Name are those of its DaemonSet; kube-system and kured by default.
	Namespace string `yaml:"namespace" json:"namespace,omitempty" jsonschema:"default=kube-system"`
	Name      string `yaml:"name" json:"name,omitempty" jsonschema:"default=kured"`
}

// CheckFile is a test that every object of a kind has to pass, on each cluster that has
// the kind.
type CheckFile struct {
	// Name is what people call the check: lower-case letters, digits and hyphens.
	Name string `yaml:"name" json:"name" jsonschema:"required,example=databases"`
	// Text says what is the matter with an object that fails, such as "is not healthy".
	Text string `yaml:"text" json:"text" jsonschema:"required,example=is not healthy"`
	// After is how long an object may fail before that is a finding; 0s by default, at
	// most 24h.
	After *yamlfile.Duration `yaml:"after" json:"after,omitempty"`
	// Section is where it is shown: nodes, or storage (the default).
	Section string `yaml:"section" json:"section,omitempty" jsonschema:"enum=nodes,enum=storage,default=storage"`
	// Severity is broken (the default), which alerts tell, or notable.
	Severity string `yaml:"severity" json:"severity,omitempty" jsonschema:"enum=broken,enum=notable,default=broken"`
	// Kind is the resource as kubectl names it, such as "clusters.postgresql.cnpg.io".
	Kind string `yaml:"kind" json:"kind" jsonschema:"required"`
	// Namespace is that of the objects; every namespace if not given.
	Namespace string `yaml:"namespace" json:"namespace,omitempty"`
	// Selector is a label selector as kubectl has it.
	Selector string `yaml:"selector" json:"selector,omitempty"`
	// All is a test in CEL on the variable "object" that every object must pass, as in a
	// policy; without one each has to be Current by the rules of kstatus.
	All string `yaml:"all" json:"all,omitempty"`
}

// RenovateFile is where Renovate runs: a workflow of a repository, or a CronJob of a
// cluster.
type RenovateFile struct {
	// Repository is "owner/name", and Workflow the name of a file in .gitea/workflows
	// or .github/workflows.
	Repository string `yaml:"repository" json:"repository,omitempty"`
	Workflow   string `yaml:"workflow" json:"workflow,omitempty" jsonschema:"example=renovate.yaml"`
	// Cluster is the name of a cluster, and Namespace and CronJob name the CronJob.
	Cluster   string `yaml:"cluster" json:"cluster,omitempty"`
	Namespace string `yaml:"namespace" json:"namespace,omitempty"`
	CronJob   string `yaml:"cronJob" json:"cronJob,omitempty"`
}

// WebFile describes the pages of signalbox.
type WebFile struct {
	// URL is the address of signalbox as people open it. Required.
	URL string `yaml:"url" json:"url" jsonschema:"required,format=uri,example=https://signalbox.example.org/"`
	// SignIn lets people sign in with their account in Gitea. It needs
	// SIGNALBOX_OAUTH_SECRET in the environment.
	SignIn *SignInFile `yaml:"signIn" json:"signIn,omitempty"`
	// Public shows everything to everybody who can reach the pages, whatever they may
	// see in Gitea; false by default.
	Public bool `yaml:"public" json:"public,omitempty" jsonschema:"default=false"`
	// Operators are logins in Gitea of those who see everything, and may retry and drop
	// what could not be handled.
	Operators []string `yaml:"operators" json:"operators,omitempty"`
}

// SignInFile is the OAuth2 application of signalbox in Gitea.
type SignInFile struct {
	// ClientID is what Gitea shows as the client ID of the application.
	ClientID string `yaml:"clientID" json:"clientID" jsonschema:"required"`
}
