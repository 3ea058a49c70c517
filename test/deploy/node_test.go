//go:build e2e

package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"signalbox/internal/doctor"
	"signalbox/test/realserver"
)

// namespace is where signalbox is installed, and also its name.
const namespace = "signalbox"

// pod is signalbox as a pod.
type pod struct {
	t *testing.T
	corev1.Pod
	image image
	// root is its file system, and addr where its port http is.
	root, addr string
	env        []string
	log        *os.File
	cmd        *exec.Cmd
	done       chan error
}

// node does with a Deployment what a kubelet does with one pod of it: it returns
// when the pod is ready. What the user of the pod cannot write to because it is root's stands for
// the read-only root file system.
func node(t *testing.T, deployment string) *pod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program as another user in a folder of its own")
	}
	p := &pod{t: t, image: readImage(t), root: t.TempDir()}
	var err error
	p.log, err = os.Create(filepath.Join(t.TempDir(), "log"))
	p.check(err)
	t.Cleanup(func() { _ = p.log.Close() })
	p.admit(deployment)
	p.image.unpack(t, p.root)
	for _, m := range p.Spec.Containers[0].VolumeMounts {
		p.mount(m)
	}
	p.account()
	addr, release, err := realserver.ReserveAddr()
	p.check(err)
	t.Cleanup(release)
	p.addr = addr
	p.environ()
	p.start()
	return p
}

// admit makes the pod of the Deployment, as far as the API server takes it; the
// Pod Security Standard of the namespace is enforced there.
func (p *pod) admit(deployment string) {
	p.t.Helper()
	ctx := p.t.Context()
	var d appsv1.Deployment
	get(p.t, realserver.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: deployment}, &d)
	want := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: namespace, Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
	object, err := kuberuntime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		p.t.Fatal(err)
	}
	pods := world.Kube.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	admitted, err := pods.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		p.t.Fatalf("the API server does not take the pod: %v", err)
	}
	if err := kuberuntime.DefaultUnstructuredConverter.FromUnstructured(admitted.Object, &p.Pod); err != nil {
		p.t.Fatal(err)
	}
	if c := p.Spec.SecurityContext; c == nil || c.RunAsUser == nil || int(*c.RunAsUser) != p.image.user {
		p.t.Errorf("the pod runs as another user than the %d of the image", p.image.user)
	}
}

// get reads an object of the cluster into its type.
func get(t *testing.T, ref realserver.Ref, into any) {
	t.Helper()
	o, err := world.Kube.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := kuberuntime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
}

// mount fills a volume, with the owners and modes that a kubelet gives it.
func (p *pod) mount(m corev1.VolumeMount) {
	p.t.Helper()
	at := filepath.Join(p.root, m.MountPath)
	for _, v := range p.Spec.Volumes {
		switch {
		case v.Name != m.Name:
		case v.ConfigMap != nil:
			var c corev1.ConfigMap
			get(p.t, realserver.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: v.ConfigMap.Name}, &c)
			for key, text := range c.Data {
				p.write(filepath.Join(at, key), []byte(text), os.FileMode(*v.ConfigMap.DefaultMode))
			}
			return
		case v.Secret != nil:
			var s corev1.Secret
			get(p.t, realserver.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: v.Secret.SecretName}, &s)
			for key, value := range s.Data {
				p.write(filepath.Join(at, key), value, os.FileMode(*v.Secret.DefaultMode))
			}
			return
		case v.PersistentVolumeClaim != nil:
			var c corev1.PersistentVolumeClaim
			get(p.t, realserver.Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: v.PersistentVolumeClaim.ClaimName}, &c)
			p.check(os.MkdirAll(at, 0o755))
			p.check(os.Chown(at, 0, int(*p.Spec.SecurityContext.FSGroup)))
			p.check(os.Chmod(at, 0o775|os.ModeSetgid))
			return
		}
	}
	p.t.Fatalf("nothing is known of the volume %s", m.Name)
}

// write writes a file of a volume; the group of the pod may read it too.
func (p *pod) write(path string, content []byte, mode os.FileMode) {
	p.t.Helper()
	p.check(os.MkdirAll(filepath.Dir(path), 0o755))
	p.check(os.WriteFile(path, content, mode))
	p.check(os.Chown(path, 0, int(*p.Spec.SecurityContext.FSGroup)))
	p.check(os.Chmod(path, mode|0o440))
}

func (p *pod) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// account puts the token of the pod's account where programs look for it, unless
// the pod does not want it.
func (p *pod) account() {
	p.t.Helper()
	if auto := p.Spec.AutomountServiceAccountToken; auto != nil && !*auto {
		return
	}
	access, err := world.Kube.ServiceAccount(p.t.Context(), namespace, p.Spec.ServiceAccountName)
	p.check(err)
	at := filepath.Join(p.root, "var", "run", "secrets", "kubernetes.io", "serviceaccount")
	p.write(filepath.Join(at, "token"), []byte(access.Token), 0o600)
	p.write(filepath.Join(at, "ca.crt"), access.CA, 0o644)
	p.write(filepath.Join(at, "namespace"), []byte(namespace), 0o644)
}

// environ is the environment: that of the image, of the pod and of the cluster.
// The port of the container is another one here, where others may use it, and there is
// no Ingress before it.
func (p *pod) environ() {
	p.t.Helper()
	u, err := url.Parse(world.Kube.Access().Server)
	p.check(err)
	p.env = append(p.env, p.image.env...)
	p.env = append(p.env, "HOME=/", "HOSTNAME="+p.Name, "KUBERNETES_SERVICE_HOST="+u.Hostname(), "KUBERNETES_SERVICE_PORT="+u.Port(), "SIGNALBOX_LISTEN="+p.addr, "SIGNALBOX_WEBHOOK_URL=http://"+p.addr+"/")
	for _, e := range p.Spec.Containers[0].Env {
		if e.ValueFrom != nil {
			p.t.Fatalf("%s comes from elsewhere", e.Name)
		}
		p.env = append(p.env, e.Name+"="+e.Value)
	}
}

// command is a program in the pod, as its user.
func (p *pod) command(args ...string) *exec.Cmd {
	user := uint32(*p.Spec.SecurityContext.RunAsUser)
	return &exec.Cmd{
		Path: p.image.entrypoint[0], Args: append([]string{p.image.entrypoint[0]}, args...), Env: p.env, Dir: "/",
		SysProcAttr: &syscall.SysProcAttr{
			Chroot: p.root, Credential: &syscall.Credential{Uid: user, Gid: uint32(*p.Spec.SecurityContext.RunAsGroup), Groups: []uint32{uint32(*p.Spec.SecurityContext.FSGroup)}},
			Setpgid: true, Pdeathsig: syscall.SIGKILL,
		},
	}
}

// start starts the container and waits until its probes pass.
func (p *pod) start() {
	p.t.Helper()
	c := p.Spec.Containers[0]
	p.cmd = p.command(c.Args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.done = make(chan error, 1)
	started := make(chan error)
	go func() {
		// The kernel ends it with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.done <- p.cmd.Wait()
		}
	}()
	p.check(<-started)
	p.t.Cleanup(p.stop)
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		eventually(p.t, "signalbox answers on "+probe.HTTPGet.Path, func() error {
			select {
			case err := <-p.done:
				p.done <- err
				p.t.Fatalf("signalbox has ended: %v\n%s", err, p.told())
			default:
			}
			_, err := p.get(probe.HTTPGet.Path)
			return err
		})
	}
}

// stop ends the container as a kubelet does.
func (p *pod) stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	grace := time.NewTimer(time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second)
	defer grace.Stop()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("signalbox ended with %v\n%s", err, p.told())
		}
	case <-grace.C:
		_ = p.cmd.Process.Kill()
		p.t.Errorf("signalbox did not end in its grace period: %v\n%s", <-p.done, p.told())
	}
	if p.t.Failed() {
		p.t.Logf("the log of signalbox:\n%s", p.told())
	}
	p.cmd = nil
}

// told is what the container has written.
func (p *pod) told() string {
	p.t.Helper()
	text, err := os.ReadFile(p.log.Name())
	p.check(err)
	return string(text)
}

// exec runs the program once more in the pod, as kubectl exec does, and returns
// what it prints and its exit code.
func (p *pod) exec(args ...string) (out string, code int) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := p.command(append(args, "--config", "/etc/signalbox/signalbox.yaml")...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if stderr.Len() > 0 {
		p.t.Logf("%s: %s", strings.Join(args, " "), &stderr)
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// examine runs the doctor in the pod.
func (p *pod) examine() (findings []doctor.Finding, code int) {
	p.t.Helper()
	out, code := p.exec("doctor", "-o", "json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	return r.Findings, code
}

// get asks the container for a page.
func (p *pod) get(path string) (string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, (&url.URL{Scheme: "http", Host: p.addr, Path: path}).String(), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return string(body), err
}
