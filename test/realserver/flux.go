package realserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

const (
	// crdFolder is where Flux's modules keep their CustomResourceDefinitions.
	crdFolder = "config/crd/bases"
	// FluxNamespace is the namespace that Flux takes for its own. It exists once Flux was started.
	FluxNamespace = "flux-system"
)

// Flux is Flux's source-controller and kustomize-controller, watching all namespaces of one cluster.
type Flux struct {
	source, kustomize *process
	ports             []port
}

// StartFlux installs Flux's CustomResourceDefinitions in the cluster, starts both controllers, and returns
// when they are ready. They look again at failing sources and unready dependencies within seconds, where
// Flux by default waits half a minute and more.
func StartFlux(ctx context.Context, k *Kube, o Options) (*Flux, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	programs, err := o.Builder.Build(ctx, nameSourceController, nameKustomizeController)
	if err != nil {
		return nil, err
	}
	if err := InstallFluxCRDs(ctx, k, o.Builder); err != nil {
		return nil, err
	}
	if err := k.CreateNamespace(ctx, FluxNamespace); err != nil {
		return nil, err
	}
	ports, err := reservePorts(5)
	if err != nil {
		return nil, err
	}
	f := &Flux{ports: ports}
	storage := ports[4].addr()
	f.source = fluxController(o, k, programs[0], ports[0:2],
		"--storage-path="+filepath.Join(o.Dir, "artifacts"), "--storage-addr="+storage, "--storage-adv-addr="+storage)
	f.kustomize = fluxController(o, k, programs[1], ports[2:4])
	if err := os.MkdirAll(filepath.Join(o.Dir, "artifacts"), 0o755); err != nil {
		f.Stop()
		return nil, fmt.Errorf("start %s: %w", nameSourceController, err)
	}
	if err := f.Restart(ctx); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

func fluxController(o Options, k *Kube, program Built, ports []port, more ...string) *process {
	metrics, health := ports[0].addr(), ports[1].addr()
	return &process{command: command{
		name: program.Name,
		path: program.Binary(),
		args: append([]string{
			"--metrics-addr=" + metrics, "--health-addr=" + health,
			"--watch-all-namespaces", "--log-encoding=json", "--log-level=info",
			"--requeue-dependency=2s", "--max-retry-delay=5s",
		}, more...),
		env:   []string{"RUNTIME_NAMESPACE=" + FluxNamespace, "KUBECONFIG=" + k.Kubeconfig()},
		dir:   o.Dir,
		log:   o.logFile(program.Name),
		ready: answers(http.DefaultClient, "http://"+health+"/readyz"),
	}}
}

// InstallFluxCRDs installs the CustomResourceDefinitions of both controllers. StartFlux does it by itself;
// alone it is for a cluster in which Flux objects exist that nobody reconciles.
func InstallFluxCRDs(ctx context.Context, k *Kube, b Builder) error {
	return eachFluxCRD(ctx, b, k.Apply)
}

// RemoveFluxCRDs deletes them again, and with them every Flux object. Stop Flux before.
func RemoveFluxCRDs(ctx context.Context, k *Kube, b Builder) error {
	return eachFluxCRD(ctx, b, k.Delete)
}

func eachFluxCRD(ctx context.Context, b Builder, do func(context.Context, []byte) error) error {
	programs, err := b.Build(ctx, nameSourceController, nameKustomizeController)
	if err != nil {
		return err
	}
	for _, p := range programs {
		paths, err := filepath.Glob(filepath.Join(p.Dir, crdFolder, "*.yaml"))
		if err != nil {
			return fmt.Errorf("list the CustomResourceDefinitions of %s: %w", p.Name, err)
		}
		if len(paths) == 0 {
			return fmt.Errorf("list the CustomResourceDefinitions of %s: there are none in %s", p.Name, p.Dir)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read a CustomResourceDefinition of %s: %w", p.Name, err)
			}
			if err := do(ctx, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop ends both controllers for good and gives their ports back.
func (f *Flux) Stop() {
	f.kustomize.stop()
	f.source.stop()
	releasePorts(f.ports)
}

// Kill ends both controllers without warning.
func (f *Flux) Kill() {
	f.kustomize.kill()
	f.source.kill()
}

// Restart starts both controllers again with the same ports and artifacts, ending them first if they run.
func (f *Flux) Restart(ctx context.Context) error {
	started := make(chan error, 2)
	for _, p := range []*process{f.source, f.kustomize} {
		go func() { started <- p.restart(ctx) }()
	}
	return errors.Join(<-started, <-started)
}
