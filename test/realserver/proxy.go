package realserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Proxy forwards connections to a server and can break them. A client under test is pointed at Addr; the
// others keep using the server itself. Its methods may be called from several goroutines.
type Proxy struct {
	target string
	port   port

	mu       sync.Mutex
	listener net.Listener // Nil while connections are refused.
	conns    map[net.Conn]struct{}
	hung     chan struct{} // Closed when data may flow; replaced by Hang.
	delay    time.Duration
	closed   chan struct{} // Closed by Close.
	work     sync.WaitGroup
}

// NewProxy starts a proxy in front of target, a host and port. Close ends it.
func NewProxy(target string) (*Proxy, error) {
	p, err := reservePort()
	if err != nil {
		return nil, err
	}
	flowing := make(chan struct{})
	close(flowing)
	proxy := &Proxy{
		target: target, port: p, conns: map[net.Conn]struct{}{}, hung: flowing, closed: make(chan struct{}),
	}
	if err := proxy.listen(); err != nil {
		p.release()
		return nil, err
	}
	return proxy, nil
}

// Addr returns the host and port at which the proxy listens.
func (p *Proxy) Addr() string { return p.port.addr() }

// Cut resets every connection. New ones are forwarded as before.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// Refuse resets every connection and refuses new ones until Pass, as if the server were gone.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.cut()
}

// Hang keeps connections open and accepts new ones, but lets no data through until Pass, as a network that
// drops packets would. What is sent meanwhile arrives afterwards.
func (p *Proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.hung) {
		p.hung = make(chan struct{})
	}
}

// Delay holds every piece of data for d before it goes on, in both directions. Zero ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Pass ends Refuse, Hang and Delay.
func (p *Proxy) Pass() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = 0
	p.flow()
	if p.listener != nil || isClosed(p.closed) {
		return nil
	}
	return p.listen()
}

// Close ends the proxy and returns when nothing of it is left.
func (p *Proxy) Close() {
	p.mu.Lock()
	if isClosed(p.closed) {
		p.mu.Unlock()
		return
	}
	close(p.closed)
	if p.listener != nil {
		_ = p.listener.Close()
	}
	p.cut()
	p.flow()
	p.mu.Unlock()
	p.work.Wait()
	p.port.release()
}

func (p *Proxy) flow() {
	if !isClosed(p.hung) {
		close(p.hung)
	}
}

func (p *Proxy) cut() {
	for c := range p.conns {
		reset(c)
	}
}

// listen must be called with the lock held, or before anybody else has the proxy.
func (p *Proxy) listen() error {
	l, err := p.port.listen()
	if err != nil {
		return fmt.Errorf("listen in front of %s: %w", p.target, err)
	}
	p.listener = l
	p.work.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.pause(pollInterval) // Of one connection, or for want of file descriptors; the listener is fine.
			continue
		}
		p.work.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	defer func() { _, _ = client.Close(), server.Close() }()
	if !p.track(client, server) {
		reset(client)
		reset(server)
		return
	}
	defer p.forget(client, server)
	var both sync.WaitGroup
	both.Go(func() { p.pump(server, client) })
	both.Go(func() { p.pump(client, server) })
	both.Wait()
}

// track makes a pair of connections known to Cut. It reports false when they came too late.
func (p *Proxy) track(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.closed) || p.listener == nil {
		return false
	}
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	return true
}

func (p *Proxy) forget(client, server net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

// pump forwards one direction to its end. Half-closed connections stay half-closed.
func (p *Proxy) pump(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		hung, delay := p.hung, p.delay
		p.mu.Unlock()
		<-hung
		p.pause(delay)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				reset(from)
				return
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
		if err != nil {
			reset(to)
			return
		}
	}
}

// pause waits for d, or until the proxy is closed.
func (p *Proxy) pause(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.closed:
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reset closes a connection so that the other end sees an error, not an orderly end.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
