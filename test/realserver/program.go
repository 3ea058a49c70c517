package realserver

import (
	"context"
	"net/http"
	"path/filepath"
)

// ProgramOptions describe a program that runs beside the servers and is held like them: signalbox itself.
type ProgramOptions struct {
	// Name is the program's name in errors and the name of its log.
	Name string
	// Path is the program's file, and Args its arguments.
	Path string
	Args []string
	// Env is its environment ("NAME=value"), beside PATH, HOME and TMPDIR. Nothing else is inherited.
	Env []string
	// Dir is its working folder, which must exist; the log is in logs below it.
	Dir string
	// Ready is a URL that answers 200 when the program is ready.
	Ready string
}

// Program is a running program.
type Program struct{ process *process }

// StartProgram starts a program and returns when it is ready.
func StartProgram(ctx context.Context, o ProgramOptions) (*Program, error) {
	p := &Program{process: &process{command: command{
		name: o.Name, path: o.Path, args: o.Args, env: o.Env, dir: o.Dir,
		log:   filepath.Join(o.Dir, "logs", o.Name+".log"),
		ready: answers(http.DefaultClient, o.Ready),
	}}}
	if err := p.process.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Log returns the path of the log, which holds the output of every start.
func (p *Program) Log() string { return p.process.log }

// Ended returns a channel that is closed when the program, as it runs now, has ended.
func (p *Program) Ended() <-chan struct{} { return p.process.ended() }

// Stop ends the program gracefully, and by force if it takes longer than ten seconds.
func (p *Program) Stop() { p.process.stop() }

// Kill ends the program without warning.
func (p *Program) Kill() { p.process.kill() }

// Restart starts the program again, ending it first if it runs.
func (p *Program) Restart(ctx context.Context) error { return p.process.restart(ctx) }

// ReserveAddr reserves a loopback address for a program that listens, until release is called or the
// process that reserved it ends.
func ReserveAddr() (addr string, release func(), err error) {
	p, err := reservePort()
	if err != nil {
		return "", nil, err
	}
	return p.addr(), p.release, nil
}
