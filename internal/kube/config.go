package kube

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	discoveryclient "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says which cluster a [Watcher] watches and how. Exactly one of
// InCluster, Kubeconfig, REST and Client says how to reach it.
type Config struct {
	// Cluster is the name that facts and rules use. It must not be empty.
	Cluster string

	// InCluster uses the service account of the pod that signalbox runs in.
	InCluster bool
	// Kubeconfig is the path of a kubeconfig file, and Context the context to
	// take from it; empty means its current one.
	Kubeconfig string
	Context    string
	// REST is a ready configuration.
	REST *rest.Config
	// Client is a ready client, such as that of a stand-in cluster. Probe must
	// be set with it, and only with it. Discovery and Logs may be; without them
	// resources that are wished for cannot be found, and logs not be read.
	Client    dynamic.Interface
	Probe     Probe
	Discovery Discovery
	Logs      Logs

	Limits Limits
}

// Limits are the times of a [Watcher]. The zero value of each means its
// default.
type Limits struct {
	// ProbeEvery is the time between two probes of the API server (10s), and
	// Probe the time that one may take (5s).
	ProbeEvery time.Duration
	Probe      time.Duration
	// Sync is how long a request or a first complete list may take before its
	// kind is failing (30s).
	Sync time.Duration
	// Grace is how long a watch that stood may be away before its kind is
	// failing (15s).
	Grace time.Duration
	// Idle is how long a watch may deliver nothing, not even the bookmark that
	// an API server sends each minute, before it is opened again (90s).
	Idle time.Duration
	// Hold is the least time for which the last settled state of an object
	// stands while its controller is at work (5m); see [Project].
	Hold time.Duration
	// Start is how long at the start the facts of an earlier life or of another
	// replica may stand while the first lists arrive (3s). After it, and
	// for what is wished later at once, facts say that nothing is known yet.
	Start time.Duration
}

func (l Limits) withDefaults() Limits {
	l.ProbeEvery = cmp.Or(l.ProbeEvery, 10*time.Second)
	l.Probe = cmp.Or(l.Probe, 5*time.Second)
	l.Sync = cmp.Or(l.Sync, 30*time.Second)
	l.Grace = cmp.Or(l.Grace, 15*time.Second)
	l.Idle = cmp.Or(l.Idle, 90*time.Second)
	l.Hold = cmp.Or(l.Hold, 5*time.Minute)
	l.Start = cmp.Or(l.Start, 3*time.Second)
	return l
}

// Requests per second that the client allows itself, and how many at once. The
// API server has its own fairness; these only stop a runaway.
const (
	clientQPS   = 50
	clientBurst = 100
)

// validate reports what is wrong with the configuration itself.
func (c Config) validate() error {
	if c.Cluster == "" {
		return errors.New("cluster has no name")
	}
	n := 0
	for _, given := range []bool{c.InCluster, c.Kubeconfig != "", c.REST != nil, c.Client != nil} {
		if given {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("cluster %s: give exactly one of in-cluster, a kubeconfig, a REST configuration and a client", c.Cluster)
	}
	if (c.Client != nil) != (c.Probe != nil) || (c.Discovery != nil || c.Logs != nil) && c.Client == nil {
		return fmt.Errorf("cluster %s: a client and a probe go together", c.Cluster)
	}
	if c.Context != "" && c.Kubeconfig == "" {
		return fmt.Errorf("cluster %s: context %q needs a kubeconfig", c.Cluster, c.Context)
	}
	return nil
}

// connection is how a cluster is reached.
type connection struct {
	client    dynamic.Interface
	probe     Probe
	discovery Discovery
	logs      Logs
	// source is the content of the kubeconfig that it was made from.
	source []byte
}

// connect makes the clients. It reads files, but does not connect.
func (c Config) connect() (*connection, error) {
	if c.Client != nil {
		return &connection{client: c.Client, probe: c.Probe, discovery: c.Discovery, logs: c.Logs}, nil
	}
	conn := &connection{}
	cfg, err := c.rest(conn)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Cluster, err)
	}
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "signalbox")
	cfg.QPS = cmp.Or(cfg.QPS, clientQPS)
	cfg.Burst = cmp.Or(cfg.Burst, clientBurst)
	// A timeout for all requests would end every watch; each has its own.
	cfg.Timeout = 0
	// That a version is deprecated is nothing that a user of signalbox can mend.
	cfg.WarningHandler = rest.NoWarnings{}
	if conn.client, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Cluster, err)
	}
	if conn.probe, err = newProbe(cfg); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Cluster, err)
	}
	client, err := discoveryclient.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Cluster, err)
	}
	conn.discovery, conn.logs = discovery{client.RESTClient()}, newLogs(client.RESTClient())
	return conn, nil
}

func (c Config) rest(conn *connection) (*rest.Config, error) {
	switch {
	case c.InCluster:
		return rest.InClusterConfig()
	case c.Kubeconfig != "":
		var err error
		if conn.source, err = os.ReadFile(c.Kubeconfig); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig},
			&clientcmd.ConfigOverrides{CurrentContext: c.Context},
		).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
		}
		return cfg, nil
	default:
		return rest.CopyConfig(c.REST), nil
	}
}

// connection returns how the cluster is reached now.
func (w *Watcher) connection() *connection {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn
}

// reconnect takes over a kubeconfig that was written anew, as it is when its
// credentials are renewed. Only beat may call it. Files that the kubeconfig points to, and the
// credentials of a pod, are read again by the client itself.
func (w *Watcher) reconnect() {
	if w.cfg.Kubeconfig == "" {
		return
	}
	source, err := os.ReadFile(w.cfg.Kubeconfig)
	if err != nil || bytes.Equal(source, w.connection().source) || bytes.Equal(source, w.refused) {
		return
	}
	conn, err := w.cfg.connect()
	if err != nil {
		// It may be half written; it is looked at again when it changes.
		w.refused = source
		w.log.Warn("the kubeconfig was changed and cannot be used", "error", err)
		return
	}
	w.mu.Lock()
	w.conn = conn
	w.mu.Unlock()
	w.log.Info("the kubeconfig was changed and is used from now on")
	w.restart()
}
