package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/backup"
	"signalbox/internal/bus"
	"signalbox/internal/config"
)

func newBackupCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write decisions and state to a file, also while signalbox runs",
		Long: `Write the ledger, and what else cannot be made again from Gitea and the clusters,
to one file; "-" is the standard output. docs/backup.md says what that is, and what
it is not: secrets are never in it.

It can be done at any time. With an embedded bus a running signalbox is asked on the
socket in its data folder, which only its own user can use; if none runs, the folder
is opened. An external bus is read directly. Nothing is changed there.

The file is read to its end while it is written, so one that is there is whole. It is
for its owner alone, and never written over another. Whoever can change it decides
what was approved after a restore: keep it like the data folder itself.`,
		Example: `  bot backup --config signalbox.yaml /backup/signalbox-$(date +%F).backup
  bot backup --config signalbox.yaml - | ssh backup@example.org 'cat > signalbox.backup'
  gunzip -c signalbox.backup | jq -c .entry.value`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(cmd, path, config.Validate)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), backupTime)
			defer cancel()
			write := func(to io.Writer) (backup.Head, backup.End, error) { return takeBackup(ctx, busConfig(c), to) }
			name, out := args[0], cmd.OutOrStdout()
			var head backup.Head
			var end backup.End
			if name == "-" {
				// What is said must not be in it.
				head, end, err = write(out)
				out = cmd.ErrOrStderr()
			} else {
				head, end, err = saveBackup(name, write)
			}
			if err != nil {
				return err
			}
			return describeBackup(out, head, end)
		},
	}
	configFlag(cmd, &path)
	return cmd
}

// backupTime bounds a backup.
const backupTime = 10 * time.Minute

// takeBackup writes a backup of a store, and reads along: nothing passes for one that
// is not whole.
func takeBackup(ctx context.Context, c bus.Config, to io.Writer) (head backup.Head, end backup.End, err error) {
	in, out := io.Pipe()
	checked := make(chan error, 1)
	go func() {
		var err error
		head, end, err = backup.Check(in)
		in.CloseWithError(err) // Who still writes stops then.
		checked <- err
	}()
	to = io.MultiWriter(to, out)
	err = storeQuestion{
		command: "bot backup",
		ask: func(running *adminClient) error {
			running.patience = backupTime
			return running.get(ctx, "/v1/backup", nil, func(answer io.Reader) error {
				_, err := io.Copy(to, answer)
				return err
			})
		},
		read: func(r *bus.Reader) error { return writeBackup(ctx, r, to) },
	}.put(ctx, c)
	out.CloseWithError(err)
	if wrong := <-checked; err == nil {
		err = wrong
	}
	if err != nil {
		return backup.Head{}, backup.End{}, fmt.Errorf("back up: %w", err)
	}
	return head, end, nil
}

// writeBackup writes what a reader reads. What goes wrong at the start, goes wrong before
// anything is written.
func writeBackup(ctx context.Context, r *bus.Reader, to io.Writer) error {
	layout, err := r.Layout(ctx)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(to, 64<<10)
	w, err := backup.NewWriter(buffered, backup.Head{Version: versionText(), Layout: layout, At: time.Now()})
	if err != nil {
		return err
	}
	if err := r.Backup(ctx, w, keptBuckets()); err != nil {
		return err
	}
	if _, err := w.Close(); err != nil {
		return err
	}
	return buffered.Flush()
}

// lazyWriter says whether anything was written.
type lazyWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *lazyWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// serveBackup answers on the socket. Who reads sees if the answer breaks off: the last
// line is missing.
func (a *app) serveBackup(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	w.Header().Set("Content-Type", "application/gzip")
	out := &lazyWriter{ResponseWriter: w}
	err := writeBackup(ctx, a.bus.Reader(), out)
	if err == nil {
		return
	}
	a.log.WarnContext(ctx, "a backup broke off", "error", err)
	if !out.begun {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// saveBackup writes a backup to a file that is not there before it is whole, and on the
// disk. There may be no file of that name: an older backup may be the one that is needed.
func saveBackup(path string, write func(io.Writer) (backup.Head, backup.End, error)) (head backup.Head, end backup.End, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s is there already, and a backup is not written over another; give another name", path)
		}
		return head, end, err
	}
	// It is made for its owner alone.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return head, end, fmt.Errorf("write the backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if head, end, err = write(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return head, end, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return head, end, fmt.Errorf("write the backup: %w", err)
	}
	return head, end, nil
}

// describeBackup says what is in a backup.
func describeBackup(out io.Writer, head backup.Head, end backup.End) error {
	_, err := fmt.Fprintf(out, "A backup of signalbox %s, layout %d, of %s:\n", head.Version, head.Layout, head.At.Format(time.RFC3339))
	for _, b := range end.Buckets {
		if err == nil {
			_, err = fmt.Fprintf(out, "  %-14s %6d\n", b.Name, b.Entries)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "  SHA-256 of its lines %s\n", end.SHA256)
	}
	return err
}
