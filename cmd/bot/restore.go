package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"signalbox/internal/backup"
	"signalbox/internal/bus"
	"signalbox/internal/config"
)

func newRestoreCommand() *cobra.Command {
	var path string
	var check bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a store of a backup, where there is none",
		Long: `Make a store of what "bot backup" has written: in the data folder, or on the NATS
server, of the configuration. Start signalbox when it is done.

The file is read to its end first: one that was cut or changed, or that a newer
signalbox made, is refused. There must be no store yet. Nothing is written over, and
all of it is restored or nothing. With --check the file is read, what it holds is
said, and nothing is done.

docs/backup.md says what is so again after a restore, and what is not.`,
		Example: `  bot restore --check /backup/signalbox-2026-09-07.backup
  bot restore --config signalbox.yaml /backup/signalbox-2026-09-07.backup`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("open the backup: %w", err)
			}
			defer func() { _ = file.Close() }()
			head, end, err := backup.Check(file)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if err := describeBackup(cmd.OutOrStdout(), head, end); err != nil || check {
				return err
			}
			c, err := loadConfig(cmd, path, config.Validate)
			if err != nil {
				return err
			}
			if err := restoreFile(cmd.Context(), busConfig(c), file); err != nil {
				return fmt.Errorf("restore %s: %w", args[0], err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "It is restored. Start signalbox now.")
			return err
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().BoolVar(&check, "check", false, "only read the file and say what it holds")
	return cmd
}

// restoreFile restores a file that was checked.
func restoreFile(ctx context.Context, c bus.Config, file io.ReadSeeker) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from, err := backup.NewReader(file)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	err = bus.Restore(ctx, c, keptBuckets(), from, log)
	if errors.Is(err, bus.ErrNotEmpty) && c.Embedded.Dir != "" {
		return fmt.Errorf("%w (%s)", err, storeContents(ctx, c, log))
	}
	return err
}

// storeContents says what a store holds, for whoever would restore over it.
func storeContents(ctx context.Context, c bus.Config, log *slog.Logger) string {
	reader, err := bus.OpenReader(ctx, c, log)
	if err != nil {
		return "what it holds cannot be told: " + err.Error()
	}
	states, _, err := reader.Streams(ctx)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := errors.Join(err, reader.Close(end)); err != nil {
		return "what it holds cannot be told: " + err.Error()
	}
	var parts []string
	for _, s := range states {
		parts = append(parts, fmt.Sprintf("%s with %d messages", s.Name, s.Messages))
	}
	return "it holds " + strings.Join(parts, ", ")
}
