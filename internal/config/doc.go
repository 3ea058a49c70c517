// Package config loads the operator's configuration: one YAML file for what can
// be shown, the environment for what cannot, and defaults for the rest.
//
// # What it promises
//
// Every problem is reported at once, each with its place (file and line, or the
// variable of the environment), the path of the field and what to do. What is
// allowed but probably not meant is a warning. A [Config] that is returned is
// complete: each value is checked, typed and has its default.
//
// # The environment
//
// Secrets come only from here. Each can also be read from a file whose path is
// in the variable with "_FILE" at its end; line breaks at the end of that file
// do not count.
//
//	SIGNALBOX_GITEA_TOKEN              token of the account that signalbox uses
//	SIGNALBOX_WEBHOOK_SECRET           key that Gitea signs webhooks with
//	SIGNALBOX_WEBHOOK_SECRET_PREVIOUS  the key before it, while it is being replaced
//
// These settings win over the file, and with them no file is needed:
//
//	SIGNALBOX_GITEA_URL     gitea.url
//	SIGNALBOX_WEBHOOK_URL   gitea.webhook.url
//	SIGNALBOX_REPOSITORIES  repositories, separated by commas; a repository that
//	                        the file only observes is still only observed
//	SIGNALBOX_KUBECONFIG    the only cluster: the path of its kubeconfig, or
//	                        "in-cluster" for the one that signalbox runs in
//	SIGNALBOX_CLUSTER       the name of that cluster; "default" if not given
//	SIGNALBOX_DATA_DIR      bus.embedded.dir
//	SIGNALBOX_LISTEN        http.listen
//
// A variable that is empty counts as not set. A relative path is relative to
// the folder of the file that names it, one from the environment to the working
// directory.
//
// # Secrets
//
// The values of secrets are of type [secret.Value]. No problem, warning or log
// value contains one, nor a user or password that somebody wrote into a URL.
//
// # Testing
//
// The environment is passed in as a function, so a test needs no process
// environment; [Load] touches nothing else but the files that are named.
package config
