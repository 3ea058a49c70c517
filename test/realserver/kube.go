package realserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Kube is a Kubernetes API server with its own etcd. Its methods may be called from several goroutines,
// except where the package says otherwise.
type Kube struct {
	etcd      *Etcd
	process   *process
	port      port
	access    Access
	config    string
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	mapper    *restmapper.DeferredDiscoveryRESTMapper
}

// StartKube starts etcd and kube-apiserver, and returns when the API server is ready.
func StartKube(ctx context.Context, o Options) (*Kube, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	program, err := o.Builder.one(ctx, nameKubeAPIServer)
	if err != nil {
		return nil, err
	}
	etcd, err := StartEtcd(ctx, o)
	if err != nil {
		return nil, err
	}
	p, err := reservePort()
	if err != nil {
		etcd.Stop()
		return nil, err
	}
	k := &Kube{etcd: etcd, port: p}
	if err := k.start(ctx, o, program); err != nil {
		etcd.Stop()
		p.release()
		return nil, err
	}
	return k, nil
}

func (k *Kube) start(ctx context.Context, o Options, program Built) error {
	files, err := writeKubeSecrets(filepath.Join(o.Dir, "pki"))
	if err != nil {
		return fmt.Errorf("prepare %s: %w", nameKubeAPIServer, err)
	}
	k.access = Access{Server: "https://" + k.port.addr(), CA: files.ca, Token: files.token}
	k.config = filepath.Join(o.Dir, "kubeconfig")
	if err := WriteKubeconfig(k.config, map[string]Access{"admin": k.access}); err != nil {
		return err
	}
	config, err := k.access.Config()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("prepare a client of %s: %w", nameKubeAPIServer, err)
	}
	if k.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return fmt.Errorf("prepare a client of %s: %w", nameKubeAPIServer, err)
	}
	if k.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, client); err != nil {
		return fmt.Errorf("prepare a client of %s: %w", nameKubeAPIServer, err)
	}
	k.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(k.discovery))

	k.process = &process{command: command{
		name: nameKubeAPIServer,
		path: program.Binary(),
		args: []string{
			"--etcd-servers=" + k.etcd.URL(),
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", k.port.number),
			"--advertise-address=127.0.0.1",
			// Nothing runs in this cluster that would look for the API server by its service.
			"--endpoint-reconciler-type=none",
			"--tls-cert-file=" + files.path("tls.crt"), "--tls-private-key-file=" + files.path("tls.key"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + files.path("sa.key"), "--service-account-signing-key-file=" + files.path("sa.key"),
			"--token-auth-file=" + files.path("tokens.csv"),
			"--authorization-mode=RBAC",
			"--service-cluster-ip-range=10.0.0.0/24",
			"--disable-admission-plugins=ServiceAccount",
			"--profiling=false",
		},
		dir:   o.Dir,
		log:   o.logFile(nameKubeAPIServer),
		ready: answers(client, k.access.Server+"/readyz"),
	}}
	return k.process.start(ctx)
}

// Access returns how to reach the API server as an administrator.
func (k *Kube) Access() Access { return k.access }

// Kubeconfig returns the path of a kubeconfig with one context named admin.
func (k *Kube) Kubeconfig() string { return k.config }

// Addr returns the host and port of the API server, the target for a [Proxy].
func (k *Kube) Addr() string { return k.port.addr() }

// Dynamic returns a client with an administrator's rights.
func (k *Kube) Dynamic() dynamic.Interface { return k.dynamic }

// Stop ends the API server and etcd for good and gives their ports back.
func (k *Kube) Stop() {
	k.process.stop()
	k.etcd.Stop()
	k.port.release()
}

// Kill ends the API server without warning; etcd stays.
func (k *Kube) Kill() { k.process.kill() }

// Restart starts the API server again with the same port and data, ending it first if it runs.
func (k *Kube) Restart(ctx context.Context) error { return k.process.restart(ctx) }

// kubeSecrets are the files that an API server needs before its first start.
type kubeSecrets struct {
	dir   string
	ca    []byte
	token string
}

func (s kubeSecrets) path(name string) string { return filepath.Join(s.dir, name) }

// writeKubeSecrets makes a serving certificate, a key that signs service account tokens and the
// administrator's token.
func writeKubeSecrets(dir string) (kubeSecrets, error) {
	s := kubeSecrets{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, err
	}
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return s, fmt.Errorf("make a certificate: %w", err)
	}
	signing, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return s, fmt.Errorf("make a key: %w", err)
	}
	s.ca = crt // The certificate is followed by the authority that signed it.
	s.token = randomSecret()
	return s, errors.Join(
		os.WriteFile(s.path("tls.crt"), crt, 0o600),
		os.WriteFile(s.path("tls.key"), key, 0o600),
		os.WriteFile(s.path("sa.key"), signing, 0o600),
		os.WriteFile(s.path("tokens.csv"), []byte(s.token+`,admin,1,"system:masters"`+"\n"), 0o600),
	)
}

// randomSecret returns a secret nobody can guess, in letters and digits.
func randomSecret() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // Never fails.
	return hex.EncodeToString(b)
}
