package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/decision"
	"signalbox/internal/recording"
)

// eventFlags are the flags of bot events as they are written.
type eventFlags struct {
	path, output, export       string
	repo, pull, cluster, since string
	kinds                      []string
	follow                     bool
	length                     time.Duration
}

func newEventsCommand() *cobra.Command {
	var f eventFlags
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show what is on the bus, follow it, or record it",
		Long: `Show what is on the bus, a line for each thing: events, facts, the records of pull
requests, decisions, work that waits, and what could not be handled. Without
--since what was stored in the last hour; with --follow also what is from now on.

With --export it is recorded in a file instead, for bot replay: what is true now,
the events that are still kept, and with --follow every change until you end it.
The file holds names, titles and texts of pull requests, policies and messages of
controllers, and no secret; what was said in chats is left out.

With an embedded bus a running signalbox is asked on the socket in its data
folder, which only its own user can use; if none runs, the folder is opened. An
external bus is read directly. No token is needed, and nothing is changed.`,
		Example: `  bot events --config signalbox.yaml --follow
  bot events --pull 'ops/home-gitops#12' --since 24h
  bot events --cluster prod --kind fact --output jsonl
  bot events --export today.jsonl --follow --for 8h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := newWatch(f, time.Now())
			if err != nil {
				return err
			}
			c, err := loadConfig(cmd, f.path, config.Validate)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if f.length > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, f.length)
				defer cancel()
			}
			if f.export != "" {
				return w.export(ctx, c, f.export, cmd)
			}
			return w.show(ctx, c, cmd.OutOrStdout())
		},
	}
	configFlag(cmd, &f.path)
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "line", "line or jsonl")
	flags.StringVar(&f.export, "export", "", "record in this new `file`, for bot replay; - is the standard output")
	flags.StringVar(&f.repo, "repo", "", "only this repository, OWNER/REPO")
	flags.StringVar(&f.pull, "pull", "", "only this pull request, OWNER/REPO#NUMBER")
	flags.StringVar(&f.cluster, "cluster", "", "only facts of this cluster")
	kindFlag(cmd, &f.kinds, recording.Kinds())
	flags.StringVar(&f.since, "since", "", "only from this time on: 2026-09-07, 2026-09-07T03:00:00Z, or an age such as 36h or 7d (default 1h, or all for --export)")
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on with what happens from now on")
	flags.DurationVar(&f.length, "for", 0, "follow for this long, such as 8h")
	cmd.MarkFlagsMutuallyExclusive("repo", "pull")
	cmd.MarkFlagsMutuallyExclusive("export", "output")
	return cmd
}

// watch is what bot events looks for.
type watch struct {
	filter recording.Filter
	tail   bus.Tail
	json   bool
	names  recording.Names
}

// defaultSince is how far back bot events looks.
const defaultSince = time.Hour

func newWatch(f eventFlags, now time.Time) (*watch, error) {
	w := &watch{tail: bus.Tail{Follow: f.follow}, json: f.output == "jsonl"}
	if !w.json && f.output != "line" {
		return nil, fmt.Errorf("--output %q is not known; give line or jsonl", f.output)
	}
	w.filter.Repo, w.filter.Cluster = f.repo, f.cluster
	if f.pull != "" {
		t, err := parseTarget(f.pull)
		if err != nil {
			return nil, fmt.Errorf("--pull %w", err)
		}
		w.filter.Repo, w.filter.Number = t.owner+"/"+t.name, t.number
	} else if owner, name, ok := strings.Cut(f.repo, "/"); f.repo != "" && (!ok || owner == "" || name == "" || strings.ContainsAny(name, "/#")) {
		return nil, fmt.Errorf("--repo %q names no repository; write OWNER/REPO", f.repo)
	}
	var err error
	if w.filter.Kinds, err = kindsOf(f.kinds, recording.Kinds()); err != nil {
		return nil, err
	}
	switch {
	case f.export != "" && len(f.kinds) > 0:
		return nil, errors.New("--export records every kind: what is left out could not be evaluated again; leave --kind out")
	case f.length < 0, f.length > 0 && !f.follow:
		return nil, errors.New("--for says how long to follow; give it with --follow, such as --follow --for 8h")
	}
	if w.filter.Since, err = decision.ParseSince(f.since, now); err != nil {
		return nil, fmt.Errorf("--since %w", err)
	}
	if f.since == "" && f.export == "" {
		w.filter.Since = now.Add(-defaultSince)
	}
	// What repositories are called is in the records, so they are always read.
	w.tail.Since, w.tail.Kinds = w.filter.Since, recording.Kinds()
	if k := w.filter.Kinds; len(k) > 0 && !slices.Contains(k, recording.Pull) {
		w.tail.Kinds = append(slices.Clone(k), recording.Pull)
	} else if len(k) > 0 {
		w.tail.Kinds = k
	}
	return w, nil
}

// show prints each line that is wanted.
func (w *watch) show(ctx context.Context, c *config.Config, out io.Writer) error {
	buffered := bufio.NewWriter(out)
	live := false
	err := record(ctx, c, w.tail, func(recording.Header) error { return nil }, func(l recording.Line) error {
		a := w.names.About(l)
		if l.Kind == recording.Now {
			live = true
			return buffered.Flush()
		}
		if !w.filter.Wanted(l, a) {
			return nil
		}
		if err := w.print(buffered, l, a); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		if live {
			return buffered.Flush()
		}
		return nil
	})
	return errors.Join(err, buffered.Flush())
}

// print prints one line, for a program or a person.
func (w *watch) print(out io.Writer, l recording.Line, a recording.About) error {
	if w.json {
		lines := json.NewEncoder(out)
		lines.SetEscapeHTML(false)
		return lines.Encode(l)
	}
	_, err := fmt.Fprintf(out, "%s  %-8s  %-24s  %s%s\n", l.At.UTC().Format("2006-01-02T15:04:05.000Z"), l.Kind,
		auditCell(where(a)), auditCell(a.Text), eventOf(a))
	return err
}

// where says what a line is about: a pull request, a repository or a cluster.
func where(a recording.About) string {
	name := a.Repo.String()
	if a.Repo.Name == "" && a.Repo.ID != 0 {
		name = fmt.Sprintf("repository %d", a.Repo.ID)
	}
	switch {
	case a.Number != 0:
		return fmt.Sprintf("%s#%d", name, a.Number)
	case a.Repo.ID != 0:
		return name
	}
	return cmp.Or(a.Cluster, "-")
}

func eventOf(a recording.About) string {
	if a.Event == "" {
		return ""
	}
	return "  event=" + auditCell(a.Event)
}

// maxExport bounds a recording in a file, in bytes.
const maxExport = 1 << 30

// errFull says that a recording has its greatest size.
var errFull = fmt.Errorf("the recording is %d MiB, which is the most", maxExport>>20)

// export records what is needed to evaluate again what is asked for.
func (w *watch) export(ctx context.Context, c *config.Config, path string, cmd *cobra.Command) (err error) {
	out, where := cmd.OutOrStdout(), "the standard output"
	if path != "-" {
		// It holds texts that may be nobody else's business.
		file, failed := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if failed != nil {
			return fmt.Errorf("make the recording: %w", failed)
		}
		defer func() {
			err = errors.Join(err, file.Close())
		}()
		out, where = file, path
	}
	counted := &countingWriter{to: out}
	var writer *recording.Writer
	n, whole := 0, false
	err = record(ctx, c, w.tail, func(h recording.Header) error {
		writer, err = recording.NewWriter(counted, h)
		return err
	}, func(l recording.Line) error {
		if !w.filter.Needed(l, w.names.About(l)) {
			return nil
		}
		if counted.n > maxExport {
			return fmt.Errorf("%w; it ends at %s", errFull, l.At.UTC().Format(time.RFC3339))
		}
		n, whole = n+1, whole || l.Kind == recording.Now
		return writer.Write(l)
	})
	if err == nil && !whole {
		err = errors.New("it was ended before all was read that is there, so it cannot be evaluated")
	}
	if err != nil {
		return fmt.Errorf("record in %s: %w", where, err)
	}
	cmd.PrintErrf("%d lines are in %s.\n", n, where)
	return nil
}

// countingWriter counts the bytes that go through it.
type countingWriter struct {
	to io.Writer
	n  int64
}

// Write implements [io.Writer].
func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.n += int64(n)
	return n, err
}
