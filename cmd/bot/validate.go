package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"signalbox/internal/config"
	"signalbox/internal/policy"
)

func newValidateCommand() *cobra.Command {
	purpose := config.Validate
	var agent bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check policy and configuration files",
		Long: `Check policy and configuration files, and print every problem with its line.

A file with a "gitea", "repositories", "clusters" or "bus" key is a
configuration; any other is a policy. Nothing is called and no secret is
needed. The exit code is 1 if a file is not valid.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if agent {
				purpose = config.ValidateAgent
			}
			valid := true
			for _, path := range paths {
				ok, err := validate(cmd, path, purpose)
				if err != nil {
					return err
				}
				valid = valid && ok
			}
			if !valid {
				return exitCode(exitNotClear)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&agent, "agent", false, "a configuration is for bot agent")
	return cmd
}

// validate checks one file and prints what it finds; err is set when the file
// cannot be read.
func validate(cmd *cobra.Command, path string, purpose config.Purpose) (bool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("validate: %w", err)
	}
	kind := "policy"
	_, problems := policy.Load(path, data)
	if isConfiguration(data) {
		kind = "configuration"
		_, warnings, found := config.Load(config.Source{Path: path, Purpose: purpose})
		for _, w := range warnings {
			cmd.PrintErrln("warning:", w)
		}
		problems = found
	}
	for _, p := range problems {
		cmd.PrintErrln(p)
	}
	if len(problems) > 0 {
		return false, nil
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: valid %s\n", path, kind)
	return true, err
}

// isConfiguration tells the two kinds of file apart by their top-level keys. A
// file that cannot be read as YAML is neither; the policy says what is wrong.
func isConfiguration(data []byte) bool {
	var keys map[string]yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&keys); err != nil {
		return false
	}
	for _, k := range []string{"gitea", "repositories", "clusters", "bus"} {
		if _, ok := keys[k]; ok {
			return true
		}
	}
	return false
}
