package web

import (
	"html/template"
	"maps"
	"net/url"
	"strconv"

	"signalbox/internal/web/fluxgraph"
)

// overviewRoutes are the pages of the whole installation: clusters, digests, the
// ledger and health.
func (s *Server) overviewRoutes(r router) {
	r.whole("GET /clusters", s.clusters)
	r.whole("GET /clusters/{name}", s.cluster)
	r.whole("GET /digests", s.digests)
	r.whole("GET /digests/now", s.digestNow)
	r.whole("GET /digests/{name}/{scheduled}", s.digest)
	r.page("GET /audit", s.audit)
	r.page("GET /audit.csv", s.auditCSV)
	r.page("GET /audit.jsonl", s.auditJSONL)
	r.whole("GET /health", s.health)
	r.operators("POST /health/retry", s.retryDeadLetter)
	r.operators("POST /health/drop", s.dropDeadLetter)
}

// overviewMenu are their items of the navigation. The ledger shows to everybody what
// they may see of it.
func overviewMenu(see sight) []item {
	audit := item{Path: "/audit", Name: "Audit"}
	if !see.whole {
		return []item{audit}
	}
	return []item{
		{Path: "/clusters", Name: "Clusters"}, {Path: "/digests", Name: "Digests"}, audit, {Path: "/health", Name: "Health"},
	}
}

// pageSize is how many rows a page of a long list has.
const pageSize = 100

// pager leads through a long list.
type pager struct {
	// From and To are the first and last row of this page, from 1; Total how many
	// there are.
	From, To, Total int
	// Previous and Next are addresses, or empty.
	Previous, Next string
}

// paginate returns the part of a list that a query asks for. A page that there is not
// is the nearest one that there is.
func paginate[T any](all []T, query url.Values, address func(url.Values) string) ([]T, pager) {
	pages := max(1, (len(all)+pageSize-1)/pageSize)
	n, err := strconv.Atoi(query.Get("page"))
	if err != nil {
		n = 1
	}
	n = min(max(n, 1), pages)
	from := (n - 1) * pageSize
	to := min(from+pageSize, len(all))
	p := pager{From: min(from+1, to), To: to, Total: len(all)}
	at := func(n int) string {
		return address(with(query, "page", strconv.Itoa(n)))
	}
	if n > 1 {
		p.Previous = at(n - 1)
	}
	if n < pages {
		p.Next = at(n + 1)
	}
	return all[from:to], p
}

// with returns a query with other values, which are names and values in turn; an
// empty value takes the name out.
func with(query url.Values, values ...string) url.Values {
	out := url.Values{}
	maps.Copy(out, query)
	for i := 0; i+1 < len(values); i += 2 {
		if out.Del(values[i]); values[i+1] != "" {
			out.Set(values[i], values[i+1])
		}
	}
	return out
}

// option is one of a list to choose from.
type option struct {
	Value, Name string
	Here        bool
}

func options(here string, pairs ...string) []option {
	var out []option
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, option{pairs[i], pairs[i+1], pairs[i] == here})
	}
	return out
}

// fluxState is a state of an object of Flux as it is shown.
type fluxState struct{ fluxgraph.State }

// Sign is its sign as a picture.
func (s fluxState) Sign() template.HTML { return fluxgraph.Sign(s.State) }
