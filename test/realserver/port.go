package realserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"
)

// The ports given to servers lie below those from which systems pick the local end of a connection (32768
// and up on Linux), so that a server that is down for a while finds its port free when it comes back.
const (
	firstPort = 20000
	lastPort  = 31999
)

// port is a loopback port that belongs to this process until it is released.
type port struct {
	number int
	lock   *flock.Flock
}

// reservePort picks a port that nobody listens on and that no other harness has reserved. The reservation
// is a file lock, so that it ends with the process however the process ends.
func reservePort() (port, error) {
	folder := filepath.Join(os.TempDir(), "signalbox-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return port{}, fmt.Errorf("reserve a port: %w", err)
	}
	for range 100 {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		lock := flock.New(filepath.Join(folder, strconv.Itoa(number)))
		held, err := lock.TryLock()
		if err != nil {
			return port{}, fmt.Errorf("reserve a port: %w", err)
		}
		if !held {
			continue
		}
		p := port{number: number, lock: lock}
		if l, err := p.listen(); err == nil {
			_ = l.Close()
			return p, nil
		}
		p.release()
	}
	return port{}, errors.New("reserve a port: found none free in 100 tries")
}

// reservePorts reserves n different ports, or none.
func reservePorts(n int) ([]port, error) {
	var ports []port
	for range n {
		p, err := reservePort()
		if err != nil {
			releasePorts(ports)
			return nil, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}

func releasePorts(ports []port) {
	for _, p := range ports {
		p.release()
	}
}

func (p port) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

func (p port) listen() (net.Listener, error) { return net.Listen("tcp", p.addr()) }

func (p port) release() { _ = p.lock.Unlock() }
