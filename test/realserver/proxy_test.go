package realserver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// echo starts a server that answers every line with the same line, and a proxy in front of it.
func echo(t *testing.T) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	p, err := NewProxy(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// say sends a line and returns the answer that comes within d.
func say(t *testing.T, c net.Conn, line string, d time.Duration) (string, error) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSuffix(answer, "\n"), err
}

func mustSay(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if answer, err := say(t, c, line, 10*time.Second); err != nil || answer != line {
		t.Fatalf("said %q, got %q, %v", line, answer, err)
	}
}

func TestProxyCut(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	mustSay(t, c, "before")
	p.Cut()
	if _, err := say(t, c, "after", 10*time.Second); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the connection did not break but gave %v", err)
	}
	mustSay(t, dial(t, p), "new")
}

func TestProxyRefuse(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	mustSay(t, c, "before")
	p.Refuse()
	p.Refuse() // Twice is fine.
	if _, err := say(t, c, "after", 10*time.Second); err == nil {
		t.Error("the connection lives on")
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection is not refused: %v", err)
	}
	if err := p.Pass(); err != nil {
		t.Fatal(err)
	}
	mustSay(t, dial(t, p), "new")
}

func TestProxyHang(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	mustSay(t, c, "before")
	p.Hang()
	if answer, err := say(t, c, "into the void", 100*time.Millisecond); err == nil {
		t.Errorf("got %q through a hanging proxy", answer)
	}
	if err := p.Pass(); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(c).ReadString('\n'); answer != "into the void\n" {
		t.Errorf("what was sent meanwhile did not arrive: %q, %v", answer, err)
	}
}

func TestProxyDelay(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	p.Delay(50 * time.Millisecond)
	started := time.Now()
	mustSay(t, c, "slow")
	if took := time.Since(started); took < 100*time.Millisecond {
		t.Errorf("there and back took %s, want 50ms each way", took)
	}
}

func TestProxyOrderlyEnd(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	// More than any buffer on the way holds, so that an early reset would lose some of it.
	sent := strings.Repeat("x", 16<<20)
	go func() {
		_, _ = io.WriteString(c, sent)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || len(got) != len(sent) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(sent), err)
	}
}

func TestProxyInFrontOfNothing(t *testing.T) {
	port, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer port.release()
	p, err := NewProxy(port.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return // The reset was quicker than the dialling.
	}
	defer func() { _ = c.Close() }()
	if _, err := say(t, c, "hello", 10*time.Second); err == nil {
		t.Error("somebody answered")
	}
}

func TestProxyCloseWhileHanging(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	mustSay(t, c, "before")
	p.Hang()
	p.Close()
	p.Close() // Twice is fine.
	if _, err := say(t, c, "after", 10*time.Second); err == nil {
		t.Error("the connection lives on")
	}
}
