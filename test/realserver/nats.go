package realserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nats-io/nkeys"
)

// natsNodes is the number of servers of a cluster: the least that may lose one.
const natsNodes = 3

// NATSCluster is three nats-servers on the configuration of deploy/examples/nats. Every connection between
// two of them goes through proxies of its own, so that a server can be cut off from the others while
// clients reach all of them.
type NATSCluster struct {
	nodes []*NATSNode
	// links are the proxies between two servers: links[i][j] is how i reaches j.
	links [natsNodes][natsNodes]*Proxy
	seed  string
}

// NATSNode is one server of a cluster. Its data outlives Kill.
type NATSNode struct {
	// Name is its server_name.
	Name    string
	process *process
	// ports are those for clients, for the other servers and for monitoring.
	ports []port
}

// StartNATS starts a cluster and returns when it takes streams.
func StartNATS(ctx context.Context, o Options) (*NATSCluster, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	program, err := o.Builder.one(ctx, nameNATS)
	if err != nil {
		return nil, err
	}
	c := &NATSCluster{}
	if err := c.prepare(o, program); err != nil {
		c.Stop()
		return nil, fmt.Errorf("prepare %s: %w", nameNATS, err)
	}
	// None of them is ready before two of them run.
	started := make(chan error, natsNodes)
	for _, n := range c.nodes {
		go func() { started <- n.process.start(ctx) }()
	}
	var errs []error
	for range natsNodes {
		errs = append(errs, <-started)
	}
	if err := errors.Join(errs...); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// prepare reserves the ports, starts the proxies and writes the files.
func (c *NATSCluster) prepare(o Options, program Built) error {
	for i := range natsNodes {
		ports, err := reservePorts(3)
		if err != nil {
			return err
		}
		n := &NATSNode{Name: fmt.Sprintf("nats-%d", i), ports: ports}
		dir := filepath.Join(o.Dir, n.Name)
		n.process = &process{command: command{
			name: n.Name, path: program.Binary(), args: []string{"--config", filepath.Join(dir, "nats.conf")}, dir: dir,
			log: o.logFile(n.Name), ready: answers(http.DefaultClient, n.monitor("healthz?js-meta-only=true")),
		}}
		c.nodes = append(c.nodes, n)
	}
	for i, from := range c.nodes {
		for j, to := range c.nodes {
			if from == to {
				continue
			}
			link, err := NewProxy(to.ports[1].addr())
			if err != nil {
				return err
			}
			c.links[i][j] = link
		}
	}
	return c.configure(o)
}

// configure makes the key of signalbox and the file of each server.
func (c *NATSCluster) configure(o Options) error {
	user, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	public, err := user.PublicKey()
	if err != nil {
		return err
	}
	seed, err := user.Seed()
	if err != nil {
		return err
	}
	servers, err := serversFolder()
	if err != nil {
		return err
	}
	example, err := os.ReadFile(filepath.Join(servers, "..", "..", "deploy", "examples", "nats", "nats.conf"))
	if err != nil {
		return err
	}
	for i, n := range c.nodes {
		text, err := natsConfig(string(example), c.replacements(i, public))
		if err != nil {
			return err
		}
		if err := errors.Join(
			os.MkdirAll(n.process.dir, 0o755),
			os.WriteFile(filepath.Join(n.process.dir, "nats.conf"), []byte(text), 0o600),
		); err != nil {
			return err
		}
	}
	c.seed = filepath.Join(o.Dir, "signalbox.nk")
	return os.WriteFile(c.seed, seed, 0o600)
}

// replacements are what one server has in the place of what the example says.
func (c *NATSCluster) replacements(i int, public string) map[string]string {
	n := c.nodes[i]
	values := map[string]string{
		"server_name: nats-0":      "server_name: " + n.Name,
		"listen: 0.0.0.0:4222":     "listen: " + n.ports[0].addr(),
		"listen: 0.0.0.0:6222":     "listen: " + n.ports[1].addr(),
		"http: 127.0.0.1:8222":     "http: " + n.ports[2].addr(),
		"store_dir: /var/lib/nats": "store_dir: " + filepath.Join(n.process.dir, "data"),
		// Servers tell each other where the others are, and clients too. That would lead past the proxies, so
		// they tell of a port at which nobody listens, and clients nothing.
		"name: signalbox\n": "name: signalbox\n  advertise: \"127.0.0.1:1\"\n  no_advertise: true\n",
		"UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4": public,
	}
	for j := range natsNodes {
		route := fmt.Sprintf("    nats://nats-%d.example.org:6222\n", j)
		values[route] = ""
		if link := c.links[i][j]; link != nil {
			values[route] = "    nats://" + link.Addr() + "\n"
		}
	}
	return values
}

// natsConfig puts values in the place of those of the example. Each must stand there once, so that what the
// tests run on stays what the example says.
func natsConfig(example string, values map[string]string) (string, error) {
	for old, now := range values {
		if n := strings.Count(example, old); n != 1 {
			return "", fmt.Errorf("the example of NATS says %q %d times, want once", old, n)
		}
		example = strings.Replace(example, old, now, 1)
	}
	return example, nil
}

// Nodes returns the servers.
func (c *NATSCluster) Nodes() []*NATSNode { return c.nodes }

// Seed returns the path of the seed with which signalbox signs in.
func (c *NATSCluster) Seed() string { return c.seed }

// Stop ends all servers for good and gives their ports back.
func (c *NATSCluster) Stop() {
	var all sync.WaitGroup
	for _, n := range c.nodes {
		all.Go(func() {
			n.process.stop()
			releasePorts(n.ports)
		})
	}
	all.Wait()
	for _, from := range c.links {
		for _, link := range from {
			if link != nil {
				link.Close()
			}
		}
	}
}

// CutOff separates a server from the others until Rejoin; its clients still reach it. What is on its way is
// dropped as by a network that is gone: nobody is told.
func (c *NATSCluster) CutOff(node *NATSNode) { c.each(node, (*Proxy).Hang) }

// Rejoin ends CutOff. The connections of before are reset, as after a cut that was long.
func (c *NATSCluster) Rejoin(node *NATSNode) error {
	var errs []error
	c.each(node, func(p *Proxy) {
		p.Refuse()
		errs = append(errs, p.Pass())
	})
	return errors.Join(errs...)
}

func (c *NATSCluster) each(node *NATSNode, do func(*Proxy)) {
	for i, from := range c.nodes {
		for j, to := range c.nodes {
			if link := c.links[i][j]; link != nil && (from == node || to == node) {
				do(link)
			}
		}
	}
}

// Leader returns the server that leads a stream, by what most of those say that answer; an error if they
// know of none.
func (c *NATSCluster) Leader(ctx context.Context, stream string) (*NATSNode, error) {
	votes := map[string]int{}
	best := ""
	for _, n := range c.nodes {
		leader, err := n.leaderOf(ctx, stream)
		if err != nil || leader == "" {
			continue
		}
		votes[leader]++
		if votes[leader] > votes[best] {
			best = leader
		}
	}
	for _, n := range c.nodes {
		if n.Name == best && votes[best] >= 2 {
			return n, nil
		}
	}
	return nil, fmt.Errorf("stream %s has no leader that two servers know", stream)
}

// Addr returns the host and port for clients, the target for a [Proxy].
func (n *NATSNode) Addr() string { return n.ports[0].addr() }

// Kill ends the server without warning.
func (n *NATSNode) Kill() { n.process.kill() }

// Restart starts the server again with the same ports and data, ending it first if it runs. It returns when
// the server knows who leads the cluster.
func (n *NATSNode) Restart(ctx context.Context) error { return n.process.restart(ctx) }

// Ready is nil when the server has caught up with all of its streams and consumers.
func (n *NATSNode) Ready(ctx context.Context) error {
	return answers(http.DefaultClient, n.monitor("healthz"))(ctx)
}

func (n *NATSNode) monitor(path string) string { return "http://" + n.ports[2].addr() + "/" + path }

// leaderOf asks one server who leads a stream.
func (n *NATSNode) leaderOf(ctx context.Context, stream string) (string, error) {
	query := url.Values{"accounts": {"true"}, "streams": {"true"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.monitor("jsz?"+query.Encode()), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return "", err
	}
	var info struct {
		Accounts []struct {
			Streams []struct {
				Name    string `json:"name"`
				Cluster struct {
					Leader string `json:"leader"`
				} `json:"cluster"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("read what %s says of its streams: %w", n.Name, err)
	}
	for _, a := range info.Accounts {
		for _, s := range a.Streams {
			if s.Name == stream {
				return s.Cluster.Leader, nil
			}
		}
	}
	return "", fmt.Errorf("%s has no stream %s", n.Name, stream)
}
