package doctor

import (
	"cmp"
	"slices"
	"strings"

	"signalbox/internal/policy"
)

// Object is an object of a cluster that a rule asks about.
type Object struct{ Kind, Namespace, Name string }

// String is the object as people write it.
func (o Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Objects returns what rules ask about, by the name of the cluster. A rule asks
// it of every cluster that its change reaches; which of the targets that is
// depends on the change, so all of them are taken.
func Objects(clusters []string, files ...*policy.File) map[string][]Object {
	out := map[string][]Object{}
	for _, f := range files {
		if f == nil {
			continue
		}
		for i := range f.Preconditions {
			o, ok := objectOf(&f.Preconditions[i])
			if !ok {
				continue
			}
			for _, cluster := range reach(f, clusters) {
				if !slices.Contains(out[cluster], o) {
					out[cluster] = append(out[cluster], o)
				}
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Object) int { return cmp.Compare(a.String(), b.String()) })
	}
	return out
}

// objectOf returns the object of Flux that a precondition names.
func objectOf(p *policy.Precondition) (o Object, ok bool) {
	switch {
	case p.Flux != nil:
		o.Kind, o.Namespace, o.Name = p.Flux.Object()
	case p.DependsOn != nil && p.DependsOn.Kustomization != "":
		o.Kind = "Kustomization"
		o.Namespace, o.Name, _ = strings.Cut(p.DependsOn.Kustomization, "/")
	default:
		return o, false
	}
	return o, true
}

// reach returns the clusters that rules are likely about: those of the targets,
// or all of them where there are none.
func reach(f *policy.File, clusters []string) []string {
	if len(f.Targets) == 0 {
		return clusters
	}
	var out []string
	for _, t := range f.Targets {
		if slices.Contains(clusters, t.Cluster) && !slices.Contains(out, t.Cluster) {
			out = append(out, t.Cluster)
		}
	}
	return out
}

// Kind is a kind of object on a cluster.
type Kind struct {
	Name string
	// Version is the one that is read, or empty; then Why says why.
	Version, Why string
	// Unread says that it could not be looked for.
	Unread bool
}

// Cluster is a cluster as it was seen.
type Cluster struct {
	Name string
	// Misconfigured is why it was not even asked, or empty.
	Misconfigured string
	// Fault is why nothing could be read, or empty; Refused says that it
	// answered and refused the credentials.
	Fault   string
	Refused bool
	Version string
	Clock   Clock
	Kinds   []Kind
	// Missing are needed rights that the account lacks, and Excess some that it
	// has without need, in the words of kubectl. RightsFault is why they are not
	// known, or empty.
	Missing, Excess []string
	RightsFault     string
	// Asked are the objects that rules ask about; Absent of them are not there,
	// and Unread could not be looked for. Elsewhere are those of Absent that
	// another cluster has.
	Asked, Absent, Unread, Elsewhere []Object
	// Wishes are what rules read beside Flux's objects, and Unlooked how many more
	// of them there are. WishesFault is why the rights for them could not be asked
	// for, or empty. Role is what gives the account those that it lacks, as YAML.
	Wishes      []SeenWish
	Unlooked    int
	WishesFault string
	Role        string
	// Followers are the repositories of which rules ask what is applied.
	Followers []Follower
}

// Judge judges a cluster.
func (c Cluster) Judge() []Finding {
	a := &about{subject: "cluster " + c.Name}
	const unknown = "Every rule about it is unknown, and no pull request it is about is clear."
	switch {
	case c.Misconfigured != "":
		a.add(Finding{
			Check: "cluster", Severity: Problem, What: c.Misconfigured, Why: unknown,
			Remedy: "Correct the cluster in the configuration. inCluster: true works in a pod only.",
		})
		return a.findings
	case c.Refused:
		a.add(Finding{
			Check: "cluster-credentials", Severity: Problem, What: c.Fault, Why: unknown,
			Remedy: "Renew the credentials in the kubeconfig; for inCluster: true, give the pod a service account.",
		})
		return a.findings
	case c.Fault != "":
		a.add(Finding{
			Check: "cluster", Severity: Unknown, What: c.Fault, Why: unknown,
			Remedy: "Can this machine reach it? Try: kubectl version with the same kubeconfig and context.",
		})
		return a.findings
	}
	c.Clock.judgeCluster(a)
	c.rights(a)
	c.kinds(a)
	c.objects(a)
	c.follows(a)
	if len(a.findings) == 0 {
		a.ok("cluster", "Kubernetes%s, with no more rights than needed; %s", ifThen(c.Version != "", " "+c.Version), c.installed())
	}
	c.wishes(a)
	return a.findings
}

// Agent is what tells of a cluster that is not watched from here.
type Agent struct {
	Cluster string
	// Fault is why it does not answer, or empty.
	Fault string
}

// Judge judges an agent.
func (g Agent) Judge() []Finding {
	a := &about{subject: "cluster " + g.Cluster}
	if g.Fault == "" {
		a.ok("agent", "the agent of the cluster answers")
		return a.findings
	}
	a.add(Finding{
		Check: "agent", Severity: Problem, What: "the agent of the cluster does not answer: " + g.Fault,
		Why:    "What only an agent sees is unknown while it is silent, and no pull request that asks about this cluster is clear.",
		Remedy: "Run it there: bot agent --cluster " + g.Cluster + ". Its log says why signalbox does not hear it.",
	})
	return a.findings
}

// judgeCluster is silent where a cluster does not tell its time: nothing but a
// large difference matters.
func (c Clock) judgeCluster(a *about) {
	if !c.Date.IsZero() {
		c.judge(a, "the API server")
	}
}

func (c Cluster) rights(a *about) {
	if c.RightsFault != "" {
		a.add(Finding{
			Check: "cluster-rights", Severity: Unknown, What: "what the account may do cannot be asked: " + c.RightsFault,
			Remedy: "Every account may usually ask that; the ClusterRole system:basic-user allows it.",
		})
	}
	if len(c.Missing) > 0 {
		a.add(Finding{
			Check: "cluster-rights", Severity: Problem, What: "the account may not " + some(c.Missing),
			Why:    "What signalbox cannot watch is unknown, and never clear.",
			Remedy: "Give the account a ClusterRole that allows exactly:\n  " + strings.Join(grouped(c.Missing), "\n  "),
		})
	}
	if len(c.Excess) > 0 {
		what := "the account may also " + some(c.Excess)
		if c.Excess[0] == "* *" {
			what = "the account may do everything, as a cluster-admin"
		}
		a.add(Finding{
			Check: "cluster-rights", Severity: Warning, What: what,
			Why:    "signalbox only lists and watches what rules ask about. Whoever gets hold of its credentials gets all of that.",
			Remedy: "Give signalbox a service account of its own, with list and watch on Flux's kinds and what rules ask about, and nothing else.",
		})
	}
}

// grouped joins the verbs of rights that differ in nothing else.
func grouped(rights []string) []string {
	var order []string
	verbs := map[string][]string{}
	for _, r := range rights {
		verb, rest, _ := strings.Cut(r, " ")
		if verbs[rest] == nil {
			order = append(order, rest)
		}
		verbs[rest] = append(verbs[rest], verb)
	}
	out := make([]string, len(order))
	for i, rest := range order {
		out[i] = strings.Join(verbs[rest], ", ") + " " + rest
	}
	return out
}

// wanted reports whether a rule asks about a kind.
func (c Cluster) wanted(kind string) bool {
	return slices.ContainsFunc(c.Asked, func(o Object) bool { return o.Kind == kind })
}

func (c Cluster) kinds(a *about) {
	var unread []string
	for _, k := range c.Kinds {
		switch {
		case k.Unread:
			unread = append(unread, k.Name)
		case k.Version == "" && c.wanted(k.Name):
			a.add(Finding{
				Check: "cluster-kinds", Severity: Problem, What: "rules ask about a " + k.Name + ", and " + k.Why,
				Why: "Such a rule is unknown, and never met.", Remedy: "Install that part of Flux, or remove the rule.",
			})
		}
	}
	// A missing right says it already.
	if len(unread) > 0 && len(c.Missing) == 0 {
		a.add(Finding{Check: "cluster-kinds", Severity: Unknown, What: "whether the cluster has " + some(unread) + " cannot be read"})
	}
	if !slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.Version != "" || k.Unread }) {
		a.add(Finding{
			Check: "cluster-kinds", Severity: Warning, What: "Flux is not installed", Why: "Nothing is known of this cluster but that it answers.",
			Remedy: "Install Flux: flux install.",
		})
	}
}

// installed lists the kinds with their versions.
func (c Cluster) installed() string {
	var has []string
	for _, k := range c.Kinds {
		if k.Version != "" {
			has = append(has, k.Name+" "+k.Version)
		}
	}
	return "it has " + names(has)
}

func (c Cluster) objects(a *about) {
	for _, o := range c.Absent {
		f := Finding{
			Check: "cluster-objects", Severity: Warning, What: "rules ask about " + o.String() + ", which does not exist",
			Why:    "What reaches this cluster and the rule is about waits for it.",
			Remedy: "Correct the name in the policy, or create the object.",
		}
		if slices.Contains(c.Elsewhere, o) {
			f.Severity = Info
			f.What = "rules ask about " + o.String() + ", which another cluster has and this one has not"
			f.Remedy = "If the rule is not meant for this cluster, say in targets which paths reach it."
		}
		a.add(f)
	}
	if len(c.Unread) > 0 && len(c.Missing) == 0 && !slices.ContainsFunc(c.Unread, func(o Object) bool { return c.lacks(o.Kind) }) {
		what := make([]string, len(c.Unread))
		for i, o := range c.Unread {
			what[i] = o.String()
		}
		a.add(Finding{Check: "cluster-objects", Severity: Unknown, What: "whether " + some(what) + " " + are(what) + " there cannot be read"})
	}
}

func (c Cluster) lacks(kind string) bool {
	return slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.Name == kind && k.Version == "" })
}

func are(list []string) string {
	if len(list) == 1 {
		return "is"
	}
	return "are"
}

// Elsewhere notes on each cluster which of its absent objects others have.
func Elsewhere(clusters []Cluster) {
	for i := range clusters {
		for _, o := range clusters[i].Absent {
			for _, other := range clusters {
				if other.Name != clusters[i].Name && slices.Contains(other.Asked, o) &&
					!slices.Contains(other.Absent, o) && !slices.Contains(other.Unread, o) && other.Fault == "" && other.Misconfigured == "" {
					clusters[i].Elsewhere = append(clusters[i].Elsewhere, o)
					break
				}
			}
		}
	}
}
