package web

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

// auditQuery is what is asked of the ledger.
type auditQuery struct {
	decision.Filter
	values url.Values
	// Problems are what of the question cannot be read, in plain words.
	Problems []string
}

// auditQueryOf reads a question. Its words mean what they mean to "bot audit".
func (s *Server) auditQueryOf(v *visit) auditQuery {
	q := auditQuery{values: v.URL.Query()}
	get := func(name string) string { return strings.TrimSpace(q.values.Get(name)) }
	wrong := func(format string, args ...any) { q.Problems = append(q.Problems, fmt.Sprintf(format, args...)) }

	repo, number, numbered := strings.Cut(get("repo"), "#")
	if owner, name, ok := strings.Cut(repo, "/"); repo != "" && (!ok || owner == "" || name == "" || strings.Contains(name, "/")) {
		wrong("%q names no repository; write owner/name", repo)
	}
	q.Repo = repo
	if !numbered {
		number = strings.TrimPrefix(get("pull"), "#")
	}
	if number != "" {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n <= 0 {
			wrong("%q is no number of a pull request; write one such as 12", number)
		}
		q.Number = n
	}
	q.Person = strings.TrimPrefix(get("person"), "@")
	for _, k := range q.values["kind"] {
		switch {
		case k == "":
		case slices.Contains(decision.Kinds(), decision.Kind(k)):
			q.Kinds = append(q.Kinds, decision.Kind(k))
		default:
			wrong("the kind %q is not known", clean(k))
		}
	}
	var err error
	if q.Since, err = decision.ParseSince(get("since"), v.now); err != nil {
		wrong("since: %v", err)
	}
	if q.Until, err = decision.ParseUntil(get("until"), v.now); err != nil {
		wrong("until: %v", err)
	}
	return q
}

// found returns the entries that a viewer sees and asks for, in the order of the
// ledger, and how many they see. Names are looked up in what they see only, so that
// the answer tells nothing of the rest.
func (s *Server) found(v *visit, q auditQuery) (found decision.Ledger, seen int) {
	all := s.Decisions.All()
	if !v.sight.everything {
		all = slices.DeleteFunc(slices.Clone(all), func(e decision.Entry) bool { return !v.sight.repo(e.Repo.ID) })
	}
	if len(q.Problems) > 0 {
		return nil, len(all)
	}
	return q.Apply(all), len(all)
}

// auditPage is what the page of the ledger shows.
type auditPage struct {
	Query                            auditQuery
	Repo, Pull, Person, Since, Until string
	Kinds                            []option
	Repos                            []string
	Filtered                         bool
	Rows                             []auditRow
	Seen                             int
	Pager                            pager
	All, CSV, JSONL                  string
}

// auditRow is an entry as it is shown.
type auditRow struct {
	decision.Entry
	Sign sign
	// PullURL leads to the pull request, and Where to where it was said, or is empty.
	PullURL, Where string
}

// Told is the command of an entry, where it says more than its kind.
func (r auditRow) Told() string {
	if r.Kind == decision.Refused || r.Kind == decision.Answered {
		return r.Command
	}
	return ""
}

// audit shows the ledger, the newest entries first.
func (s *Server) audit(w http.ResponseWriter, v *visit) error {
	q := s.auditQueryOf(v)
	found, seen := s.found(v, q)
	slices.Reverse(found)
	address := func(path string) func(url.Values) string {
		return func(values url.Values) string {
			if len(values) == 0 {
				return s.path(path)
			}
			return s.path(path) + "?" + values.Encode()
		}
	}
	get := q.values.Get
	whole := with(q.values, "page", "")
	data := auditPage{
		Query: q, Repo: get("repo"), Pull: get("pull"), Person: get("person"), Since: get("since"), Until: get("until"),
		Seen: seen, All: s.path("/audit"), CSV: address("/audit.csv")(whole), JSONL: address("/audit.jsonl")(whole),
		Filtered: len(q.Problems) > 0 || q.Repo+q.Person+get("since")+get("until") != "" || q.Number != 0 || len(q.Kinds) > 0,
		Kinds:    []option{{"", "any kind", false}},
	}
	for _, k := range decision.Kinds() {
		data.Kinds = append(data.Kinds, option{string(k), strings.ReplaceAll(string(k), "-", " "), slices.Contains(q.Kinds, k)})
	}
	for _, r := range s.Pulls.Repositories() {
		if v.sight.repo(r.ID) {
			data.Repos = append(data.Repos, r.String())
		}
	}
	var rows decision.Ledger
	rows, data.Pager = paginate(found, q.values, address("/audit"))
	names := s.repoNames()
	for _, e := range rows {
		data.Rows = append(data.Rows, s.auditRowOf(e, names))
	}
	code := http.StatusOK
	if len(q.Problems) > 0 {
		code = http.StatusBadRequest
	}
	return s.show(w, v, page{Template: "audit", Title: "Audit", Nav: "/audit", Live: "all", Code: code, Data: data})
}

// repoNames are how the repositories are called now, by id.
func (s *Server) repoNames() map[int64]pull.Repo {
	names := map[int64]pull.Repo{}
	for _, r := range s.Pulls.Repositories() {
		names[r.ID] = r
	}
	return names
}

func (s *Server) auditRowOf(e decision.Entry, names map[int64]pull.Repo) auditRow {
	r := auditRow{Entry: e, Sign: kindSign(e.Kind), Where: webAddress(e.URL)}
	repo, ok := names[e.Repo.ID]
	if !ok {
		repo = e.Repo
	}
	if _, open := s.Pulls.Get(e.Ref()); open {
		r.PullURL = s.path(pullPath(repo, e.Number))
	} else {
		r.PullURL = s.Gitea.JoinPath(url.PathEscape(repo.Owner), url.PathEscape(repo.Name), "pulls", strconv.FormatInt(e.Number, 10)).String()
	}
	return r
}

// kindSign shows the kind of an entry.
func kindSign(k decision.Kind) sign {
	word := strings.ReplaceAll(string(k), "-", " ")
	switch k {
	case decision.Approve, decision.Merged, decision.Unhold, decision.Unfreeze:
		return sign{"clear", "✓", word}
	case decision.Hold, decision.Freeze:
		return sign{"waiting", "‖", word}
	case decision.Override:
		return sign{"overridden", "»", word}
	case decision.Refused, decision.MergeFailed:
		return sign{"blocked", "✕", word}
	case decision.ApproveCancel, decision.OverrideCancel, decision.MergeCancel:
		return sign{"undecided", "↶", word}
	default:
		return sign{"none", "•", word}
	}
}

func (s *Server) auditCSV(w http.ResponseWriter, v *visit) error {
	return s.export(w, v, "text/csv; charset=utf-8; header=present", "csv", decision.WriteCSV)
}

func (s *Server) auditJSONL(w http.ResponseWriter, v *visit) error {
	return s.export(w, v, "application/jsonl; charset=utf-8", "jsonl", decision.WriteJSONLines)
}

// export answers with all entries that are asked for, in the order of the ledger.
func (s *Server) export(w http.ResponseWriter, v *visit, kind, ending string, write func(io.Writer, iter.Seq[decision.Entry]) error) error {
	q := s.auditQueryOf(v)
	if len(q.Problems) > 0 {
		return &problem{Code: http.StatusBadRequest, Title: "The question cannot be read", Text: strings.Join(q.Problems, "; ") + "."}
	}
	found, _ := s.found(v, q)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="signalbox-audit-`+v.now.UTC().Format("2006-01-02")+"."+ending+`"`)
	// An error is of the other side, which sees that the answer broke off.
	if err := write(w, slices.Values(found)); err != nil {
		s.Log.DebugContext(v.Context(), "export of the ledger broke off", "error", err)
	}
	return nil
}
