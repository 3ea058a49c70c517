package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"signalbox/internal/precondition"
	"signalbox/internal/yamlfile"
)

// Policy is a valid policy, ready to be evaluated. The zero value has no rules.
// It is never changed after [Load].
type Policy struct {
	// Name says where it is from, for people: "operator" or the path and commit.
	Name string
	file File
}

// Load reads and validates a policy. The name is used in messages. All problems
// are reported at once; the policy is nil if there is any.
func Load(name string, data []byte) (*Policy, yamlfile.Problems) {
	var f File
	doc, problems := yamlfile.Decode(name, data, &f)
	if len(problems) > 0 {
		return nil, problems
	}
	return compile(name, f, doc, nil)
}

// Compile validates a policy that stands within another document, such as the
// operator's configuration, at the given path.
func Compile(name string, f File, doc *yamlfile.Document, at yamlfile.Path) (*Policy, yamlfile.Problems) {
	return compile(name, f, doc, at)
}

func compile(name string, f File, doc *yamlfile.Document, at yamlfile.Path) (*Policy, yamlfile.Problems) {
	v := validator{doc: doc, at: at}
	v.file(&f)
	if len(v.problems) > 0 {
		v.problems.Sort()
		return nil, v.problems
	}
	return &Policy{Name: name, file: f}, nil
}

// MergeMethod returns how signalbox merges, or "" if it does not.
func (p *Policy) MergeMethod() string {
	if p == nil || p.file.Merge == nil || !p.file.Merge.Enabled {
		return ""
	}
	return p.file.Merge.Method
}

// Teams returns the teams that the policy names, each as it is written.
func (p *Policy) Teams() []string {
	var teams []string
	for _, rule := range p.file.Approvals {
		teams = append(teams, rule.From.Teams...)
	}
	if p.file.Override != nil {
		teams = append(teams, p.file.Override.From.Teams...)
	}
	slices.Sort(teams)
	return slices.Compact(teams)
}

// validator collects what is wrong with the meaning of a policy; its shape was
// checked before.
type validator struct {
	doc      *yamlfile.Document
	at       yamlfile.Path
	problems yamlfile.Problems
}

func (v *validator) add(path yamlfile.Path, hint, format string, args ...any) {
	v.problems = append(v.problems, v.doc.Problem(path, fmt.Sprintf(format, args...), hint))
}

func (v *validator) file(f *File) {
	switch f.Version {
	case 1:
	case 0:
		v.add(v.at.At("version"), "write version: 1", "is missing")
	default:
		v.add(v.at.At("version"), "this signalbox reads version 1", "version %d is not known", f.Version)
	}
	for i, t := range f.Targets {
		at := v.at.At("targets", i)
		if strings.TrimSpace(t.Cluster) == "" {
			v.add(at.At("cluster"), "name a cluster of the configuration of signalbox", "is missing")
		}
		if len(t.Paths) == 0 {
			v.add(at.At("paths"), "name at least one path", "is missing")
		}
		v.globs(at.At("paths"), t.Paths)
	}
	if len(f.Preconditions) > maxRules {
		v.add(v.at.At("preconditions"), "", "has %d rules; %d are the most", len(f.Preconditions), maxRules)
	}
	names := map[string]bool{}
	for i := range f.Preconditions {
		v.precondition(v.at.At("preconditions", i), &f.Preconditions[i], names)
	}
	names = map[string]bool{}
	for i := range f.Approvals {
		v.approval(v.at.At("approvals", i), &f.Approvals[i], names)
	}
	if f.Override != nil {
		v.override(v.at.At("override"), f.Override)
	}
	if f.Merge != nil {
		v.merge(v.at.At("merge"), f.Merge)
	}
}

// Lengths of an override.
const (
	defaultTTL = 4 * time.Hour
	maxTTL     = 7 * 24 * time.Hour
)

func (v *validator) override(at yamlfile.Path, o *OverrideRule) {
	v.people(at.At("from"), o.From)
	switch {
	case o.TTL == 0:
		o.TTL = yamlfile.Duration(defaultTTL)
	case o.TTL.D() > maxTTL:
		v.add(at.At("ttl"), "an override is for an emergency", "is longer than %s", maxTTL)
	}
}

var mergeMethods = []string{"merge", "rebase", "rebase-merge", "squash", "fast-forward-only"}

func (v *validator) merge(at yamlfile.Path, m *MergeRule) {
	if m.Method == "" {
		m.Method = mergeMethods[0]
	}
	if !slices.Contains(mergeMethods, m.Method) {
		v.add(at.At("method"), yamlfile.Suggest(m.Method, mergeMethods), "%q is not known", m.Method)
	}
}

// maxRules bounds the preconditions of one policy: each may have something watched
// or read.
const maxRules = 100

// maxName bounds the name of a rule, in bytes: it stands in a commit status.
const maxName = 80

func (v *validator) name(at yamlfile.Path, name string, seen map[string]bool) {
	switch {
	case strings.TrimSpace(name) == "":
		v.add(at.At("name"), "say in a few words what must be true", "is missing")
	case len(name) > maxName:
		v.add(at.At("name"), "", "is longer than %d bytes", maxName)
	case strings.ContainsAny(name, "\r\n"):
		v.add(at.At("name"), "", "has a line break")
	case seen[name]:
		v.add(at.At("name"), "names tell the rules apart", "%q is the name of an earlier rule", name)
	}
	seen[name] = true
}

func (v *validator) precondition(at yamlfile.Path, p *Precondition, names map[string]bool) {
	v.name(at, p.Name, names)
	v.scope(at, p.Scope)
	v.unless(at, p.Unless)
	given := p.Given()
	kinds := precondition.NewValidator(v.doc)
	for _, k := range given {
		k.Kind.Validate(kinds, at.At(k.Name))
	}
	v.problems = append(v.problems, kinds.Problems()...)
	if len(given) != 1 {
		v.add(at, "give exactly one of: "+strings.Join(precondition.Names(), ", "), "has %d kinds of check", len(given))
	}
}

func (v *validator) approval(at yamlfile.Path, r *ApprovalRule, names map[string]bool) {
	v.name(at, r.Name, names)
	v.scope(at, r.Scope)
	v.unless(at, r.Unless)
	switch {
	case r.Count < 0:
		v.add(at.At("count"), "", "is %d; it must be at least 1", r.Count)
	case r.Count == 0:
		r.Count = 1
	}
	v.people(at.At("from"), r.From)
	switch r.Survive {
	case SurviveNone, SurviveIdenticalDiff:
	case "":
		r.Survive = SurviveNone
	default:
		v.add(at.At("survive"), yamlfile.Suggest(r.Survive, []string{SurviveNone, SurviveIdenticalDiff}), "%q is not known", r.Survive)
	}
}

func (v *validator) people(at yamlfile.Path, p People) {
	if len(p.Teams)+len(p.Users) == 0 {
		v.add(at, "name teams or users", "names nobody")
	}
	v.words(at.At("teams"), p.Teams)
	v.words(at.At("users"), p.Users)
	for i, team := range p.Teams {
		if strings.Count(team, "/") > 1 {
			v.add(at.At("teams", i), `write "team" or "organisation/team"`, "%q has more than one slash", team)
		}
	}
}

func (v *validator) unless(at yamlfile.Path, s *Scope) {
	if s == nil {
		return
	}
	at = at.At("unless")
	v.scope(at, *s)
	if len(s.Paths)+len(s.Base)+len(s.Labels)+len(s.Author) == 0 {
		v.add(at, "give paths, base, labels or author", "is empty")
	}
}

func (v *validator) scope(at yamlfile.Path, s Scope) {
	v.globs(at.At("paths"), s.Paths)
	v.patterns(at.At("base"), s.Base)
	v.patterns(at.At("labels"), s.Labels)
	v.words(at.At("author"), s.Author)
}

func (v *validator) words(at yamlfile.Path, words []string) {
	for i, w := range words {
		if strings.TrimSpace(w) == "" || strings.TrimSpace(w) != w {
			v.add(at.At(i), "", "%q is empty or has space around it", w)
		}
	}
}

// patterns checks globs of names that are not paths.
func (v *validator) patterns(at yamlfile.Path, globs []string) {
	v.words(at, globs)
	for i, g := range globs {
		if g != "" && !doublestar.ValidatePattern(g) {
			v.add(at.At(i), "check its brackets and braces", "%q is not a valid glob", g)
		}
	}
}

// globs checks globs of paths, which run from the root without a slash.
func (v *validator) globs(at yamlfile.Path, globs []string) {
	for i, g := range globs {
		switch {
		case g == "":
			v.add(at.At(i), `write ** for every file`, "is empty")
		case strings.HasPrefix(g, "/"):
			v.add(at.At(i), fmt.Sprintf("write %q", strings.TrimLeft(g, "/")), "%q has a leading slash; paths start at the root of the repository without one", g)
		case strings.HasPrefix(g, "./") || strings.HasPrefix(g, "../") || strings.Contains(g, "//"):
			v.add(at.At(i), "write the path from the root of the repository", "%q is not a clean path", g)
		case strings.HasSuffix(g, "/"):
			v.add(at.At(i), fmt.Sprintf("write %q for all that is in the folder", g+"**"), "%q ends with a slash and would match no file", g)
		case !doublestar.ValidatePattern(g):
			v.add(at.At(i), "check its brackets and braces", "%q is not a valid glob", g)
		}
	}
}
