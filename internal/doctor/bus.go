package doctor

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Directory is the folder of an embedded bus as it was seen.
type Directory struct {
	Path string
	// Absent says that it does not exist yet; Parent is the nearest folder above
	// that does, and Writable is about that one then.
	Absent bool
	Parent string
	// Fault is why it could not be looked at, or empty.
	Fault    string
	IsFolder bool
	Mode     fs.FileMode
	Writable bool
	// Free is the free space in bytes; negative where it is not known.
	Free int64
	// InUse says that a process has locked it. InUseFault is why that is not
	// known, or empty.
	InUse      bool
	InUseFault string
	// Running is what the process that uses it tells of itself; nil where it
	// does not answer, and then RunningFault says why.
	Running      *Running
	RunningFault string
}

// Running is a signalbox that runs.
type Running struct {
	Version string
	Started time.Time
	// Unhealthy is what is wrong with its bus, or empty.
	Unhealthy string
	Dead      Dead
}

// Dead is what could not be handled.
type Dead struct {
	// Fault is why it could not be read, or empty.
	Fault string
	Total int
	// Newest is the newest one, as far as there is one.
	NewestAt     time.Time
	NewestReason string
}

// Sizes of free space below which it is told, in bytes. The stream of events
// takes up to half a gigabyte.
const (
	littleSpace = 1 << 30
	noSpace     = 64 << 20
)

// Judge judges the folder of the bus, and the signalbox that uses it. version
// is that of this program.
func (d Directory) Judge(version string) []Finding {
	a := &about{subject: "bus"}
	if !d.folder(a) {
		return a.findings
	}
	d.space(a)
	d.lock(a, version)
	return a.findings
}

// folder judges the folder itself, and reports whether there is more to say.
func (d Directory) folder(a *about) bool {
	const owner = "Run bot doctor as the user that signalbox runs as; is it that one? chown the folder to it."
	switch {
	case d.Fault != "":
		a.add(Finding{Check: "bus-directory", Severity: Unknown, What: d.Path + " cannot be looked at: " + d.Fault, Remedy: owner})
		return false
	case d.Absent && !d.Writable:
		a.add(Finding{
			Check: "bus-directory", Severity: Problem, What: d.Path + " does not exist and cannot be made: " + d.Parent + " is not writable",
			Why: "signalbox does not start without it.", Remedy: "Make the folder and give it to the user that signalbox runs as.",
		})
		return false
	case d.Absent:
		a.add(Finding{Check: "bus-directory", Severity: Info, What: d.Path + " does not exist yet; signalbox makes it when it starts"})
		return false
	case !d.IsFolder:
		a.add(Finding{Check: "bus-directory", Severity: Problem, What: d.Path + " is not a folder", Why: "signalbox does not start without one.", Remedy: "Correct bus.embedded.dir."})
		return false
	case !d.Writable:
		a.add(Finding{
			Check: "bus-directory", Severity: Problem, What: d.Path + " is not writable", Why: "signalbox cannot keep anything, and takes no webhook.", Remedy: owner,
		})
	case d.Mode.Perm()&0o002 != 0:
		a.add(Finding{
			Check: "bus-directory", Severity: Problem, What: d.Path + " can be written by every user of the machine",
			Why: "The ledger of decisions is in it: who can write it can invent an approval.", Remedy: "chmod o-rwx " + d.Path,
		})
	case d.Mode.Perm()&0o005 != 0:
		a.add(Finding{
			Check: "bus-directory", Severity: Warning, What: d.Path + " can be read by every user of the machine",
			Why: "Titles and comments of pull requests are in it, of private repositories too.", Remedy: "chmod o-rwx " + d.Path,
		})
	}
	return true
}

func (d Directory) space(a *about) {
	switch {
	case d.Free < 0:
	case d.Free < noSpace:
		a.add(Finding{
			Check: "bus-space", Severity: Problem, What: fmt.Sprintf("%s has %s left", d.Path, size(d.Free)),
			Why: "When it is full signalbox takes no webhook and records no decision.", Remedy: "Make room; 2 GiB is plenty.",
		})
	case d.Free < littleSpace:
		a.add(Finding{
			Check: "bus-space", Severity: Warning, What: fmt.Sprintf("%s has %s left", d.Path, size(d.Free)),
			Why: "The events alone may take half a gigabyte.", Remedy: "Make room; 2 GiB is plenty.",
		})
	}
}

func size(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

func (d Directory) lock(a *about, version string) {
	switch {
	case d.Running != nil:
		d.Running.judge(a, version)
	case d.InUseFault != "":
		a.add(Finding{Check: "running", Severity: Unknown, What: "whether signalbox runs is not known: " + d.InUseFault})
	case d.InUse:
		a.add(Finding{
			Check: "running", Severity: Unknown, What: "a process uses " + d.Path + " and does not answer: " + d.RunningFault,
			Remedy: "Run bot doctor as the same user as signalbox, and with the same version.",
		})
	default:
		a.add(Finding{
			Check: "running", Severity: Info, What: "signalbox does not run on " + d.Path + " now",
			Remedy: "bot run starts it. If it runs elsewhere, run bot doctor there.",
		})
	}
}

func (r Running) judge(a *about, version string) {
	if r.Version != version {
		a.add(Finding{
			Check: "running", Severity: Warning, What: fmt.Sprintf("signalbox %s runs, and this is %s", r.Version, version),
			Why: "What the two do may differ.", Remedy: "Restart signalbox with this version, or run bot doctor of that one.",
		})
	}
	if r.Unhealthy != "" {
		a.add(Finding{
			Check: "bus-health", Severity: Problem, What: "the bus of the running signalbox is not healthy: " + r.Unhealthy,
			Why: "It takes no webhook until it is.", Remedy: "See its log; restart it if that does not help.",
		})
	}
	r.Dead.judge(a)
	if r.Unhealthy == "" && r.Version == version {
		a.ok("running", "signalbox %s runs since %s", r.Version, r.Started.UTC().Format("2006-01-02 15:04 UTC"))
	}
}

func (d Dead) judge(a *about) {
	switch {
	case d.Fault != "":
		a.add(Finding{Check: "dead-letters", Severity: Unknown, What: "what could not be handled cannot be read: " + d.Fault})
	case d.Total > 0:
		a.add(Finding{
			Check: "dead-letters", Severity: Warning,
			What: fmt.Sprintf("%s could not be handled; the newest of %s: %s",
				plural(d.Total, "message"), d.NewestAt.UTC().Format("2006-01-02 15:04 UTC"), oneLine(d.NewestReason)),
			Why:    "What they were about was found later by looking again, unless that failed too.",
			Remedy: "Mend the reason. They are forgotten after 90 days.",
		})
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// NATS is an external bus as it was seen.
type NATS struct {
	// Servers are their addresses, for people.
	Servers string
	// Fault is why it could not be used, or empty: what the bus says of it
	// includes what to do.
	Fault string
	// Wanted is how many replicas the configuration asks for; 0 leaves them.
	Wanted int
	// Streams are those that exist, and Missing the names of those that do not.
	Streams []Stream
	Missing []string
	// Running says that somebody waits for events; RunningFault why that is not
	// known, or empty.
	Running      bool
	RunningFault string
	Dead         Dead
}

// Stream is a stream of the bus.
type Stream struct {
	Name      string
	Clustered bool
	// Replicas is how many servers shall hold it, Current how many have all of
	// it.
	Replicas, Current int
	Leader            string
}

// Judge judges an external bus.
func (n NATS) Judge() []Finding {
	a := &about{subject: "bus"}
	if n.Fault != "" {
		a.add(Finding{Check: "bus", Severity: Problem, What: n.Fault, Why: "signalbox does not start without its bus."})
		return a.findings
	}
	var single, behind []string
	for _, s := range n.Streams {
		switch {
		case s.Clustered && s.Leader == "":
			a.add(Finding{
				Check: "bus-health", Severity: Problem, What: "stream " + s.Name + " has no leader", Why: "It takes nothing until it has one.",
				Remedy: "Most of the NATS servers must run and reach each other.",
			})
		case s.Current < s.Replicas:
			behind = append(behind, s.Name)
		case s.Clustered && s.Replicas == 1:
			single = append(single, s.Name)
		case n.Wanted > 0 && s.Replicas != n.Wanted:
			a.add(Finding{
				Check: "bus-replicas", Severity: Info, What: fmt.Sprintf("stream %s has %s, and the configuration asks for %d", s.Name, plural(s.Replicas, "replica"), n.Wanted),
				Remedy: "signalbox changes it when it starts.",
			})
		}
	}
	if len(behind) > 0 {
		a.add(Finding{
			Check: "bus-replicas", Severity: Warning, What: "not every replica of " + some(behind) + " has all of it", Why: "One more failure could stop signalbox.",
			Remedy: "nats stream report shows which server is behind.",
		})
	}
	if len(single) > 0 {
		a.add(Finding{
			Check: "bus-replicas", Severity: Warning, What: some(single) + " " + haveHas(single) + " one replica in a cluster of servers",
			Why: "If that server goes signalbox stops; if its disk is lost so are the decisions.", Remedy: "Set bus.nats.replicas: 3 and restart signalbox.",
		})
	}
	if len(n.Missing) > 0 {
		a.add(Finding{Check: "bus", Severity: Info, What: some(n.Missing) + " " + doDoes(n.Missing) + " not exist yet; signalbox makes what is missing when it starts"})
	}
	n.Dead.judge(a)
	n.running(a)
	return a.findings
}

func (n NATS) running(a *about) {
	switch {
	case n.RunningFault != "":
		a.add(Finding{Check: "running", Severity: Unknown, What: "whether signalbox runs is not known: " + n.RunningFault})
	case n.Running:
		a.ok("running", "NATS at %s has what is needed, and signalbox runs on it", n.Servers)
	default:
		a.add(Finding{Check: "running", Severity: Info, What: "no signalbox runs on NATS at " + n.Servers + " now", Remedy: "bot run starts it."})
	}
}

func haveHas(list []string) string {
	if len(list) == 1 {
		return "has"
	}
	return "have"
}

func doDoes(list []string) string {
	if len(list) == 1 {
		return "does"
	}
	return "do"
}
