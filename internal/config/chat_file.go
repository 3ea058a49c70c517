package config

import "signalbox/internal/yamlfile"

// ChatFile is where people talk to signalbox beside Gitea.
type ChatFile struct {
	// Slack connects to a workspace; it needs SIGNALBOX_SLACK_BOT_TOKEN in the
	// environment, and SIGNALBOX_SLACK_APP_TOKEN or SIGNALBOX_SLACK_SIGNING_SECRET.
	Slack *SlackFile `yaml:"slack" json:"slack,omitempty"`
	// Matrix connects to a homeserver; it needs SIGNALBOX_MATRIX_TOKEN in the
	// environment.
	Matrix *MatrixFile `yaml:"matrix" json:"matrix,omitempty"`
	// People says who in Gitea an account of a chat is. Others link their own with
	// the command link, or only read.
	People []ChatPersonFile `yaml:"people" json:"people,omitempty"`
	// Subscriptions are the rooms that show open pull requests. More are made by
	// the command subscribe.
	Subscriptions []SubscriptionFile `yaml:"subscriptions" json:"subscriptions,omitempty"`
}

// SlackFile describes the connection to Slack.
type SlackFile struct {
	// Mode is "socket" (the default), where signalbox connects to Slack, or "http",
	// where Slack has to reach signalbox.
	Mode string `yaml:"mode" json:"mode,omitempty" jsonschema:"enum=socket,enum=http,default=socket"`
	// API is the root of Slack's Web API; https://slack.com/api/ by default, and
	// https://slack-gov.com/api/ for GovSlack.
	API string `yaml:"api" json:"api,omitempty" jsonschema:"format=uri"`
}

// MatrixFile describes the connection to Matrix.
type MatrixFile struct {
	// Homeserver is its address, such as https://matrix.example.org.
	Homeserver string `yaml:"homeserver" json:"homeserver" jsonschema:"required,format=uri"`
	// Rooms are the ids or aliases of the rooms that signalbox joins when it is
	// invited; no other.
	Rooms []string `yaml:"rooms" json:"rooms,omitempty"`
	// Encryption lets signalbox take part in encrypted rooms. It needs
	// SIGNALBOX_MATRIX_PICKLE_KEY in the environment.
	Encryption *MatrixEncryptionFile `yaml:"encryption" json:"encryption,omitempty"`
}

// MatrixEncryptionFile says where the keys of encrypted rooms are kept.
type MatrixEncryptionFile struct {
	// Dir is the folder of the keys, which must outlive the process and belongs to
	// one replica.
	Dir string `yaml:"dir" json:"dir" jsonschema:"required"`
}

// ChatPersonFile says who in Gitea some accounts of chats are.
type ChatPersonFile struct {
	// Gitea is the login in Gitea, in any letter case.
	Gitea string `yaml:"gitea" json:"gitea" jsonschema:"required"`
	// Slack are member ids, such as U0123456; never names.
	Slack yamlfile.Strings `yaml:"slack" json:"slack,omitempty"`
	// Matrix are user ids, such as @alice:example.org.
	Matrix yamlfile.Strings `yaml:"matrix" json:"matrix,omitempty"`
}

// SubscriptionFile shows the open pull requests of a repository in a room.
type SubscriptionFile struct {
	// Slack is the id of a channel, such as C0123456. Either this or matrix.
	Slack string `yaml:"slack" json:"slack,omitempty"`
	// Matrix is the id of a room, such as !abc:example.org.
	Matrix string `yaml:"matrix" json:"matrix,omitempty"`
	// Repository is "owner/name", one of the repositories above.
	Repository string `yaml:"repository" json:"repository" jsonschema:"required"`
	// Paths are globs as in a policy: only pull requests that change a file which
	// matches one.
	Paths []string `yaml:"paths" json:"paths,omitempty"`
	// Sensitive shows only pull requests that somebody has to approve.
	Sensitive bool `yaml:"sensitive" json:"sensitive,omitempty"`
}
