package deploy

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"signalbox/internal/config"
)

func TestPodsAreConfined(t *testing.T) {
	yes, no, user := true, false, int64(65532)
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			i := render(t, example)
			pod, c := i.pod().Spec, i.container()
			if diff := cmp.Diff(&corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
				FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
				SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}, pod.SecurityContext); diff != "" {
				t.Errorf("the pod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}, c.SecurityContext); diff != "" {
				t.Errorf("the container (-want +got):\n%s", diff)
			}
			if len(pod.Containers)+len(pod.InitContainers) != 1 || pod.HostNetwork || pod.HostPID || pod.HostIPC {
				t.Error("there is more than one container, or it shares what is the node's")
			}
			for _, v := range pod.Volumes {
				if v.HostPath != nil {
					t.Errorf("volume %s is a folder of the node", v.Name)
				}
				if v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o400) {
					t.Errorf("secret %s can be read by others", v.Name)
				}
			}
			if pod.AutomountServiceAccountToken == nil || !*pod.AutomountServiceAccountToken || pod.ServiceAccountName != "signalbox" {
				t.Error("the pod does not get the token of the account signalbox, with which it reads its cluster")
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("resources %+v do not bound what it takes", c.Resources)
			}
			if _, tag, tagged := strings.Cut(path.Base(c.Image), ":"); !tagged || tag == "latest" {
				t.Errorf("image %s names no version", c.Image)
			}
		})
	}
}

// TestProbes: alive is who answers, and ready is whose bus takes events.
func TestProbes(t *testing.T) {
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			c := render(t, example).container()
			for name, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != name || probe.HTTPGet.Port.StrVal != "http" {
					t.Errorf("there is no probe of %s at the port http: %+v", name, probe)
				}
			}
			if c.StartupProbe == nil || c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold < 60 {
				t.Error("a slow start is taken for a failure")
			}
		})
	}
}

// TestVariants: what is kept has one writer, and what is shared is never away.
func TestVariants(t *testing.T) {
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	rolling := appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &none},
	}
	for _, tc := range []struct {
		example  string
		replicas int32
		strategy appsv1.DeploymentStrategy
		budgets  int
		claims   int
		spread   int
		args     []string
	}{
		{"single", 1, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, 0, 1, 0, []string{"run"}},
		{"replicas", 2, rolling, 1, 0, 2, []string{"run"}},
		{"agent", 1, rolling, 0, 0, 0, []string{"agent"}},
	} {
		t.Run(tc.example, func(t *testing.T) {
			i := render(t, tc.example)
			spec := i.deployment.Spec
			if spec.Replicas == nil || *spec.Replicas != tc.replicas {
				t.Errorf("replicas is %v, want %d", spec.Replicas, tc.replicas)
			}
			if diff := cmp.Diff(tc.strategy, spec.Strategy); diff != "" {
				t.Errorf("strategy (-want +got):\n%s", diff)
			}
			if len(i.budgets) != tc.budgets || len(i.claims) != tc.claims || len(i.pod().Spec.TopologySpreadConstraints) != tc.spread {
				t.Errorf("%d budgets, %d claims, %d constraints", len(i.budgets), len(i.claims), len(i.pod().Spec.TopologySpreadConstraints))
			}
			if want := append(tc.args, "--config", "/etc/signalbox/signalbox.yaml"); !slices.Equal(i.container().Args, want) {
				t.Errorf("args are %q, want %q", i.container().Args, want)
			}
			for _, b := range i.budgets {
				selects(t, "the budget "+b.Name, b.Spec.Selector, i.pod().Labels)
				if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntVal < 1 || b.Spec.MaxUnavailable.IntVal >= tc.replicas {
					t.Errorf("budget %s keeps nodes from being drained, or protects nothing", b.Name)
				}
			}
			for _, c := range i.pod().Spec.TopologySpreadConstraints {
				selects(t, "the constraint of "+c.TopologyKey, c.LabelSelector, i.pod().Labels)
			}
			for _, c := range i.claims {
				if c.Annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
					t.Errorf("Flux would remove the claim %s, and with it the ledger", c.Name)
				}
			}
		})
	}
}

func selects(t *testing.T, what string, selector *metav1.LabelSelector, on map[string]string) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || s.Empty() || !s.Matches(labels.Set(on)) {
		t.Errorf("%s selects %s (%v), which is not %v", what, s, err, on)
	}
}

// TestNamesMeet: what names a port, a label, a claim or an account means one
// that is there.
func TestNamesMeet(t *testing.T) {
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			i := render(t, example)
			selects(t, "the Deployment", i.deployment.Spec.Selector, i.pod().Labels)
			ports := map[string]int32{}
			for _, p := range i.container().Ports {
				ports[p.Name] = p.ContainerPort
			}
			services := map[string]bool{}
			for _, s := range i.services {
				selects(t, "the Service", metav1.SetAsLabelSelector(s.Spec.Selector), i.pod().Labels)
				for _, p := range s.Spec.Ports {
					services[s.Name+" "+p.Name] = true
					if ports[p.TargetPort.StrVal] == 0 {
						t.Errorf("service %s sends to the port %s, which no container has", s.Name, p.TargetPort.String())
					}
				}
			}
			for _, p := range i.policies {
				selects(t, "the policy "+p.Name, &p.Spec.PodSelector, i.pod().Labels)
				for _, rule := range p.Spec.Ingress {
					if len(rule.From) == 0 {
						t.Errorf("policy %s lets everybody in", p.Name)
					}
					for _, port := range rule.Ports {
						if port.Port == nil || ports[port.Port.StrVal] == 0 {
							t.Errorf("policy %s opens %v, which no container listens on", p.Name, port.Port)
						}
					}
				}
			}
			claims := map[string]bool{}
			for _, c := range i.claims {
				claims[c.Name] = true
			}
			for _, v := range i.pod().Spec.Volumes {
				if v.PersistentVolumeClaim != nil && !claims[v.PersistentVolumeClaim.ClaimName] {
					t.Errorf("volume %s is of the claim %s, which there is not", v.Name, v.PersistentVolumeClaim.ClaimName)
				}
				if v.ConfigMap != nil {
					if _, ok := i.configMaps[v.ConfigMap.Name]; !ok {
						t.Errorf("volume %s is of the ConfigMap %s, which there is not", v.Name, v.ConfigMap.Name)
					}
				}
			}
			if text, ok := i.rest[schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}]; ok {
				for _, rule := range decode(t, text, &networkingv1.Ingress{}).Spec.Rules {
					for _, p := range rule.HTTP.Paths {
						if s := p.Backend.Service; !services[s.Name+" "+s.Port.Name] {
							t.Errorf("the Ingress sends to %s %s, which there is not", s.Name, s.Port.Name)
						}
						if p.Path != "/"+config.ReceiverPath {
							t.Errorf("the Ingress opens %s", p.Path)
						}
					}
				}
			}
		})
	}
}

// TestSecretsAreKnown: each variable is one that the program reads as the path of
// a file, below the mount of the Secret.
func TestSecretsAreKnown(t *testing.T) {
	known := []string{
		config.EnvGiteaToken, config.EnvWebhookSecret, config.EnvSlackBotToken, config.EnvSlackAppToken,
		config.EnvSlackSigningSecret, config.EnvMatrixToken, config.EnvMatrixPickleKey, config.EnvOAuthSecret,
	}
	for _, example := range examples {
		var got []string
		for _, e := range render(t, example).container().Env {
			name, ofFile := strings.CutSuffix(e.Name, "_FILE")
			if !ofFile || path.Dir(e.Value) != "/secrets" {
				t.Errorf("%s: %s=%s is not the file of a secret", example, e.Name, e.Value)
			}
			got = append(got, name)
		}
		want := known
		if example == "agent" {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: secrets are %q, want %q", example, got, want)
		}
	}
}

// TestConfigurationsFit: each is valid, keeps its data on the volume and its
// secrets below their mount, and asks for no address that the network policies
// do not allow.
func TestConfigurationsFit(t *testing.T) {
	for _, example := range []string{"single", "replicas"} {
		t.Run(example, func(t *testing.T) {
			i := render(t, example)
			file := configOf(t, i)
			c, warnings, problems := config.Load(config.Source{Path: file, Purpose: config.Validate})
			if len(warnings)+len(problems) > 0 {
				t.Fatalf("%v %v", warnings.Err(), problems.Err())
			}
			mounts := map[string]bool{}
			for _, m := range i.container().VolumeMounts {
				mounts[m.MountPath] = m.ReadOnly
			}
			addresses := []string{c.Gitea.URL.String()}
			if c.Bus.Embedded != nil {
				dir := c.Bus.Embedded.Dir
				if readOnly, mounted := mounts[path.Dir(dir)]; !mounted || readOnly {
					t.Errorf("the data in %s is not below a volume that can be written", dir)
				}
				if i.deployment.Spec.Replicas == nil || *i.deployment.Spec.Replicas != 1 {
					t.Error("several replicas share a folder")
				}
			}
			if n := c.Bus.NATS; n != nil {
				addresses = append(addresses, n.URLs...)
				for _, f := range []string{n.CredentialsFile, n.CAFile} {
					if _, mounted := mounts[path.Dir(f)]; !mounted {
						t.Errorf("%s is not below a volume", f)
					}
				}
			}
			for _, a := range addresses {
				if !reachable(i, portOf(t, a)) {
					t.Errorf("no network policy allows %s", a)
				}
			}
			for _, port := range []int{53, 443, 6443} {
				if !reachable(i, port) {
					t.Errorf("no network policy allows port %d: DNS and the API server", port)
				}
			}
			if reachable(i, 22) {
				t.Error("the network policies allow what nobody asks for")
			}
			for _, cluster := range c.Clusters {
				if !cluster.InCluster {
					t.Errorf("cluster %s is not that of the pod", cluster.Name)
				}
			}
		})
	}
}

// TestAgentReachesItsBus: it has no way to speak to but that, and its configuration is
// that of an agent.
func TestAgentReachesItsBus(t *testing.T) {
	i := render(t, "agent")
	c, warnings, problems := config.Load(config.Source{Path: configOf(t, i), Purpose: config.ValidateAgent})
	if len(warnings)+len(problems) > 0 {
		t.Fatalf("%v %v", warnings.Err(), problems.Err())
	}
	if len(c.Clusters) != 1 || !c.Clusters[0].InCluster {
		t.Errorf("it watches %+v, and not the cluster of its pod", c.Clusters)
	}
	if !reachable(i, 4222) || !reachable(i, 443) {
		t.Error("the network policies do not allow NATS and the API server")
	}
	if m := i.container().VolumeMounts; slices.ContainsFunc(m, func(m corev1.VolumeMount) bool { return !m.ReadOnly }) {
		t.Errorf("it has something to write to: %v", m)
	}
}

// TestComponentsGoTogether: the order in which components are named does not
// matter to what they leave.
func TestComponentsGoTogether(t *testing.T) {
	for _, components := range [][]string{{"private-ca", "agent"}, {"agent", "private-ca"}} {
		overlay := t.TempDir()
		at, err := filepath.Abs(".")
		if err != nil {
			t.Fatal(err)
		}
		if at, err = filepath.Rel(overlay, at); err != nil {
			t.Fatal(err)
		}
		text := "resources: [" + path.Join(at, "base") + "]\ncomponents:\n"
		for _, c := range components {
			text += "  - " + path.Join(at, "components", c) + "\n"
		}
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := build(t, overlay).container()
		if want := []corev1.EnvVar{{Name: "SSL_CERT_DIR", Value: "/etc/signalbox-ca"}}; !slices.Equal(c.Env, want) {
			t.Errorf("%v: the environment is %v, want %v", components, c.Env, want)
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/signalbox-ca" }) {
			t.Errorf("%v: the certificates are not mounted: %v", components, c.VolumeMounts)
		}
	}
}

// portOf returns the port of a URL.
func portOf(t *testing.T, text string) int {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if u.Port() == "" {
		return map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// reachable reports whether the policies allow a port of anybody.
func reachable(i *install, port int) bool {
	return slices.ContainsFunc(i.policies, func(p networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return len(r.To) == 0 && (len(r.Ports) == 0 || slices.ContainsFunc(r.Ports, func(p networkingv1.NetworkPolicyPort) bool {
				return p.Port != nil && p.Port.IntVal == int32(port)
			}))
		})
	})
}
