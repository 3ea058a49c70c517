package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"signalbox/internal/bus"
	"signalbox/internal/decision"
	"signalbox/internal/events"
)

// A signalbox on an embedded bus is the only one that can read it. So it answers
// questions on a socket beside it: bot audit, bot doctor and others ask there. Who may
// use it is decided by the file system: the socket is in a folder of its own
// that only signalbox's user can enter. It only reads.
const (
	adminFolder = "admin"
	adminSocket = "socket"
	// maxSocketPath is the length in bytes that every system takes.
	maxSocketPath = 103
)

func adminPath(dir string) string { return filepath.Join(dir, adminFolder, adminSocket) }

// adminAbout is what a running signalbox tells of itself.
type adminAbout struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Unhealthy is what is wrong with the bus, or empty.
	Unhealthy string `json:"unhealthy,omitempty"`
}

// adminDead is what could not be handled.
type adminDead struct {
	Total  int       `json:"total"`
	At     time.Time `json:"at,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// adminEvent is the place of an event on the bus.
type adminEvent struct {
	Seq uint64 `json:"seq"`
}

// serveAdmin answers on the socket until ctx ends. A signalbox without it works
// all the same, so it is told and not an error when there can be none.
func (a *app) serveAdmin(ctx context.Context) error {
	if a.appConfig.bus.Embedded.Dir == "" {
		return nil
	}
	listener, err := listenAdmin(ctx, a.appConfig.bus.Embedded.Dir)
	if err != nil {
		a.log.WarnContext(ctx, "no local socket; bot audit, bot backup, bot doctor and bot events cannot ask this process", "error", err)
		return nil
	}
	return serveHTTP(ctx, listener, &http.Server{Handler: a.adminRoutes(ctx, time.Now().UTC())})
}

// listenAdmin makes the socket. Nobody else has one there: the lock of the bus
// is held, so what is there is left over.
func listenAdmin(ctx context.Context, dir string) (net.Listener, error) {
	path := adminPath(dir)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path %s is longer than %d bytes, which a socket cannot have; give the bus a shorter folder", path, maxSocketPath)
	}
	folder := filepath.Dir(path)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if info, err := os.Lstat(folder); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", folder)
	}
	// The folder keeps others out before the socket is there.
	if err := os.Chmod(folder, 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// endingWith has what is answered end with the context too: a server waits for what it
// is at, and who follows the bus does so until the end.
func endingWith(ctx context.Context, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		answer(w, r.WithContext(asked))
	}
}

// adminRoutes answers. What takes long ends with the context.
func (a *app) adminRoutes(ctx context.Context, started time.Time) http.Handler {
	mux := http.NewServeMux()
	reader := a.bus.Reader()
	mux.HandleFunc("GET /v1/about", func(w http.ResponseWriter, r *http.Request) {
		out := adminAbout{Version: versionText(), Started: started}
		if err := a.bus.Health(r.Context()); err != nil {
			out.Unhealthy = err.Error()
		}
		answerJSON(w, out, nil)
	})
	mux.HandleFunc("GET /v1/dead", func(w http.ResponseWriter, r *http.Request) {
		out, err := readDead(r.Context(), reader)
		answerJSON(w, out, err)
	})
	mux.HandleFunc("GET /v1/last-push", func(w http.ResponseWriter, r *http.Request) {
		repo, err := strconv.ParseInt(r.FormValue("repo"), 10, 64)
		if err != nil {
			http.Error(w, "repo is not the id of a repository", http.StatusBadRequest)
			return
		}
		seq, err := lastPush(r.Context(), reader, repo)
		answerJSON(w, adminEvent{seq}, err)
	})
	mux.HandleFunc("GET /v1/digest", a.serveDigest)
	mux.HandleFunc("GET /v1/backup", endingWith(ctx, a.serveBackup))
	mux.HandleFunc("GET /v1/recording", endingWith(ctx, a.serveRecording))
	mux.HandleFunc("GET /v1/decisions", func(w http.ResponseWriter, r *http.Request) {
		ledger, err := reader.Decisions(r.Context())
		if err != nil {
			answerJSON(w, nil, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		out := bufio.NewWriter(w)
		lines := json.NewEncoder(out)
		for _, e := range ledger {
			if err := lines.Encode(decision.Line{Seq: e.Seq, Entry: e}); err != nil {
				return
			}
		}
		// Who reads sees that the answer broke off.
		_ = out.Flush()
	})
	return mux
}

// answerJSON sends JSON, or an error as text.
func answerJSON(w http.ResponseWriter, out any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func readDead(ctx context.Context, r *bus.Reader) (adminDead, error) {
	newest, total, err := r.DeadLetters(ctx, 1)
	out := adminDead{Total: total}
	if len(newest) > 0 {
		out.At, out.Reason = newest[0].Time, newest[0].Reason
	}
	return out, err
}

// lastPush returns the place of the last push of a repository on the bus.
func lastPush(ctx context.Context, r *bus.Reader, repoID int64) (uint64, error) {
	return r.LastEvent(ctx, events.BranchPushed{Repo: events.Repo{ID: repoID}}.BusSubject())
}

// adminClient asks a running signalbox on its socket.
type adminClient struct {
	http *http.Client
	// patience bounds a question.
	patience time.Duration
}

// newAdminClient makes a client for the signalbox on the bus in a folder. Whether
// one runs shows with the first question: see [noSocket].
func newAdminClient(dir string) *adminClient {
	path := adminPath(dir)
	return &adminClient{patience: adminTime, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		DisableKeepAlives: true,
	}}}
}

// adminTime bounds a question that takes no longer than the views in memory.
const adminTime = 30 * time.Second

func (c *adminClient) get(ctx context.Context, path string, query url.Values, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	return c.stream(ctx, path, query, read)
}

// stream is get for an answer that may take as long as it likes.
func (c *adminClient) stream(ctx context.Context, path string, query url.Values, read func(io.Reader) error) error {
	// The host is not used; the socket is.
	address := url.URL{Scheme: "http", Host: "signalbox", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if transport, ok := errors.AsType[*url.Error](err); ok {
			err = transport.Err
		}
		return fmt.Errorf("ask the running signalbox: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("the running signalbox answers %s: %s", resp.Status, text)
	}
	return read(resp.Body)
}

func (c *adminClient) value(ctx context.Context, path string, query url.Values, into any) error {
	return c.get(ctx, path, query, func(r io.Reader) error { return json.NewDecoder(r).Decode(into) })
}

func (c *adminClient) about(ctx context.Context) (out adminAbout, err error) {
	return out, c.value(ctx, "/v1/about", nil, &out)
}

func (c *adminClient) dead(ctx context.Context) (out adminDead, err error) {
	return out, c.value(ctx, "/v1/dead", nil, &out)
}

func (c *adminClient) lastPush(ctx context.Context, repoID int64) (uint64, error) {
	var out adminEvent
	err := c.value(ctx, "/v1/last-push", url.Values{"repo": {strconv.FormatInt(repoID, 10)}}, &out)
	return out.Seq, err
}

func (c *adminClient) decisions(ctx context.Context) (ledger decision.Ledger, err error) {
	err = c.get(ctx, "/v1/decisions", nil, func(r io.Reader) error {
		lines := json.NewDecoder(r)
		for {
			var l decision.Line
			if err := lines.Decode(&l); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("the answer broke off: %w", err)
			}
			l.Entry.Seq = l.Seq
			ledger = append(ledger, l.Entry)
		}
	})
	return ledger, err
}
