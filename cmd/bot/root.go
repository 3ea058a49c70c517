package main

import (
	"os"

	"github.com/spf13/cobra"

	"signalbox/internal/config"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bot",
		Short: "signalbox: a merge gate for GitOps with Gitea and Flux",
		Long: `signalbox watches your cluster and your Gitea, and says on every pull request
whether merging it is safe now: one comment and two commit statuses, kept true
as the cluster changes.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newRunCommand(),
		newAgentCommand(),
		newDoctorCommand(),
		newAuditCommand(),
		newEventsCommand(),
		newReplayCommand(),
		newDigestCommand(),
		newCheckCommand(),
		newBackupCommand(),
		newRestoreCommand(),
		newDemoCommand(),
		newValidateCommand(),
		newVersionCommand(),
	)
	return root
}

// configFlag adds the flag that names the configuration file.
func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", "", "path of the configuration file; without it the environment alone is read")
}

// loadConfig reads the configuration and prints its warnings.
func loadConfig(cmd *cobra.Command, path string, purpose config.Purpose) (*config.Config, error) {
	c, warnings, problems := config.Load(config.Source{Path: path, Env: os.LookupEnv, Purpose: purpose})
	for _, w := range warnings {
		cmd.PrintErrln("warning:", w)
	}
	return c, problems.Err()
}
