package realserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
)

// Options say where a server keeps its things and where its program comes from.
type Options struct {
	// Dir is a new folder for the server: its data, and its logs under logs. It is created when missing and
	// never removed. It must be given.
	Dir string
	// Builder provides the program.
	Builder Builder
}

func (o Options) check() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("Options.Dir is empty: name a folder for the server's data and logs")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("find the folder %s: %w", o.Dir, err)
	}
	o.Dir = dir
	return o, nil
}

func (o Options) logFile(name string) string { return filepath.Join(o.Dir, "logs", name+".log") }

// Etcd is a running etcd of one member, without encryption and without waiting for the disk.
type Etcd struct {
	process *process
	ports   []port
	client  string
}

// StartEtcd starts an etcd and returns when it answers.
func StartEtcd(ctx context.Context, o Options) (*Etcd, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	program, err := o.Builder.one(ctx, nameEtcd)
	if err != nil {
		return nil, err
	}
	ports, err := reservePorts(2)
	if err != nil {
		return nil, err
	}
	client, peer := "http://"+ports[0].addr(), "http://"+ports[1].addr()
	e := &Etcd{ports: ports, client: client, process: &process{command: command{
		name: nameEtcd,
		path: program.Binary(),
		args: []string{
			"--name=one", "--data-dir=" + filepath.Join(o.Dir, "etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=one=" + peer,
			"--log-level=warn",
			// A killed process loses nothing by this, only a machine that loses power would.
			"--unsafe-no-fsync",
		},
		dir:   o.Dir,
		log:   o.logFile(nameEtcd),
		ready: answers(http.DefaultClient, client+"/readyz"),
	}}}
	if err := e.process.start(ctx); err != nil {
		releasePorts(ports)
		return nil, err
	}
	return e, nil
}

// URL returns the address for clients.
func (e *Etcd) URL() string { return e.client }

// Stop ends etcd for good and gives its ports back.
func (e *Etcd) Stop() {
	e.process.stop()
	releasePorts(e.ports)
}

// Kill ends etcd without warning.
func (e *Etcd) Kill() { e.process.kill() }

// Restart starts etcd again with the same ports and data, ending it first if it runs.
func (e *Etcd) Restart(ctx context.Context) error { return e.process.restart(ctx) }
