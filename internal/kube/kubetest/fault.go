package kubetest

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is what a [Fault] decides on.
type Request struct {
	// Verb is "list", "watch", "get", "discover" or "probe".
	Verb string
	// Resource is such as "kustomizations.kustomize.toolkit.fluxcd.io", for
	// discovery such as "apis/apps/v1", for a log "pods/log"; empty for a probe.
	Resource string
	// Namespace is set where the request is for one namespace.
	Namespace string
	// Name is set where the request is for one object by name.
	Name string
}

// Fault answers a request with an error; nil lets it through. It may wait for
// the context, as a server does that does not answer.
type Fault func(context.Context, Request) error

// Break makes the fault answer from now on and cuts every open watch. Nil
// mends the cluster.
func (c *Cluster) Break(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
	if f != nil {
		c.cut(func(*stream) bool { return true })
	}
}

// Cut ends every open watch, as a server does when it restarts.
func (c *Cluster) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut(func(*stream) bool { return true })
}

// Forget makes every watch that resumes from before now start anew, as an API
// server does that has compacted its history, and cuts the open ones.
func (c *Cluster) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tables {
		t.history, t.oldest = nil, c.version+1
	}
	c.version++
	c.cut(func(*stream) bool { return true })
}

// Mute keeps back the bookmarks of watches that start from now on, as some
// proxies do.
func (c *Cluster) Mute(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = on
}

// Stall keeps the open watches open, but they tell of nothing more, as when
// whoever is between keeps a connection that is dead behind it.
func (c *Cluster) Stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.watches)
}

// Backup is the state of a cluster at one moment.
type Backup struct {
	version int64
	tables  map[schema.GroupResource]*table
}

// Backup returns the present state.
func (c *Cluster) Backup() Backup {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Backup{c.version, copied(c.tables)}
}

// Restore makes a backup the present state. The versions count on from there,
// so that those given since are given again.
func (c *Cluster) Restore(b Backup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version, c.tables = b.version, copied(b.tables)
	for _, t := range c.tables {
		t.history, t.oldest = nil, c.version
	}
	c.cut(func(*stream) bool { return true })
}

// copied copies the tables. Objects are never changed once they are stored.
func copied(tables map[schema.GroupResource]*table) map[schema.GroupResource]*table {
	c := map[schema.GroupResource]*table{}
	for gr, t := range tables {
		copied := *t
		copied.served, copied.objects, copied.history = maps.Clone(t.served), maps.Clone(t.objects), nil
		c[gr] = &copied
	}
	return c
}

// check asks the fault, without the lock.
func (c *Cluster) check(ctx context.Context, r Request) error {
	c.mu.Lock()
	f := c.fault
	c.mu.Unlock()
	if f == nil {
		return ctx.Err()
	}
	if err := f(ctx, r); err != nil {
		return err
	}
	return ctx.Err()
}

// Down is the [Fault] of an API server that does not run.
func Down(context.Context, Request) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// Hang is the [Fault] of an API server that takes requests and never answers.
func Hang(ctx context.Context, _ Request) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Expired is the [Fault] of credentials that are no longer good.
func Expired(context.Context, Request) error {
	return apierrors.NewUnauthorized("the token has expired")
}

// Forbid returns the [Fault] of a missing right to use a verb on a resource.
// An empty verb stands for each but discovery, and an empty resource for each.
func Forbid(verb, resource string) Fault {
	return func(_ context.Context, r Request) error {
		if verb != "" && verb != r.Verb || resource != "" && resource != r.Resource || r.Verb == "probe" ||
			verb == "" && r.Verb == "discover" {
			return nil
		}
		gr := schema.ParseGroupResource(r.Resource)
		scope := "at the cluster scope"
		if r.Namespace != "" {
			scope = `in the namespace "` + r.Namespace + `"`
		}
		return apierrors.NewForbidden(gr, r.Name, errors.New(`User "signalbox" cannot `+r.Verb+` resource "`+gr.Resource+
			`" in API group "`+gr.Group+`" `+scope))
	}
}
