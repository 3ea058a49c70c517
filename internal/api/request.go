package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// invalidDetail is what an answer of 422 begins with.
const invalidDetail = "The request is not valid; errors says what is wrong where."

// output is an answer of 200.
type output[T any] struct {
	Body T
}

// register adds a resource. What all have in common is set here.
func register[I, T any](api huma.API, op huma.Operation, handler func(context.Context, *I) (T, error)) {
	op.Method = http.MethodGet
	op.Path = Prefix + op.Path
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{{
		Name: "If-None-Match", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "The ETag of an answer that you have. If it would be the same, the answer is 304 without a body.",
	}}
	op.Responses = map[string]*huma.Response{
		"200": {Headers: map[string]*huma.Param{"ETag": {Schema: &huma.Schema{Type: huma.TypeString}, Description: "Names this answer; another one has another."}}},
		"304": {Description: "Not Modified: it is the answer that If-None-Match names."},
	}
	huma.Register(api, op, func(ctx context.Context, in *I) (*output[T], error) {
		body, err := handler(ctx, in)
		if err != nil {
			return nil, err
		}
		return &output[T]{Body: body}, nil
	})
}

// strict refuses a query that nobody reads as it was meant: a parameter that does not
// exist, is given twice or is empty, as when a variable of a script was not set.
func strict(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		var known []string
		for _, p := range ctx.Operation().Parameters {
			if p.In == "query" {
				known = append(known, p.Name)
			}
		}
		u := ctx.URL()
		query, err := url.ParseQuery(u.RawQuery)
		var errs []error
		if err != nil {
			errs = append(errs, &huma.ErrorDetail{Location: "query", Message: "cannot be read; escape special characters, as curl does with --get --data-urlencode"})
		}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			at := &huma.ErrorDetail{Location: "query." + clip(name)}
			switch {
			case !slices.Contains(known, name) && len(known) == 0:
				at.Message = "there is no such parameter; this resource has none"
			case !slices.Contains(known, name):
				at.Message = "there is no such parameter; there are " + strings.Join(known, ", ")
			case len(query[name]) > 1:
				at.Message = "is given more than once; give it once, and several values separated by commas where that is possible"
			case query[name][0] == "":
				at.Message = "is empty; give a value, or leave the parameter out"
			default:
				continue
			}
			errs = append(errs, at)
		}
		if len(errs) > 0 {
			// That it cannot be written has been told on the standard error.
			_ = huma.WriteErr(api, ctx, http.StatusUnprocessableEntity, invalidDetail, errs...)
			return
		}
		next(ctx)
	}
}

// explain gives the errors that huma makes a sentence.
func explain(_ huma.Context, status string, v any) (any, error) {
	if e, ok := v.(*huma.ErrorModel); ok && status == "422" {
		e.Detail = invalidDetail
	}
	return v, nil
}

// invalid is an answer of 422 about one parameter, such as "query.repo".
func invalid(location, value, format string, args ...any) error {
	return huma.Error422UnprocessableEntity(invalidDetail, &huma.ErrorDetail{Location: location, Value: clip(value), Message: fmt.Sprintf(format, args...)})
}

// Paging says which part of a list is wanted.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"How many items at most."`
	Cursor string `query:"cursor" maxLength:"1024" doc:"Where to go on: next of the page before. Leave it out for the first page. What it is made of may change; keep the other parameters as they were."`
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items" doc:"The items of this page, in the order of the list."`
	Total int    `json:"total" minimum:"0" example:"1" doc:"How many items match on all pages, at this moment."`
	Next  string `json:"next,omitempty" doc:"The cursor of the next page; it is missing on the last one."`
}

// cursor makes one of the place of the last item in the order of a list.
func cursor(list string, place ...string) string {
	text, err := json.Marshal(append([]string{list}, place...))
	if err != nil {
		return "" // Strings can always be written.
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// place reads a cursor; it is nil for none.
func place(list, cursor string, parts int) ([]string, error) {
	if cursor == "" {
		return nil, nil
	}
	var out []string
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil || len(out) != parts+1 || out[0] != list {
		return nil, badCursor(cursor)
	}
	return out[1:], nil
}

func badCursor(cursor string) error {
	return invalid("query.cursor", cursor, "is no cursor of this list; use next of the page before as it is, or leave the parameter out")
}

// paged takes from items, which are sorted, the page after those that come before or
// at the cursor. Each item is made only if it is on the page.
func paged[S, T any](items []S, total int, p Paging, convert func(S) T, at func(S) string) Page[T] {
	out := Page[T]{Items: []T{}, Total: total}
	n := min(p.Limit, len(items))
	for _, item := range items[:n] {
		out.Items = append(out.Items, convert(item))
	}
	if n < len(items) {
		out.Next = at(items[n-1])
	}
	return out
}

// moment reads a time of a query, which huma has checked already; zero for none.
func moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalid("query."+name, text, "is no time; write it as of RFC 3339, such as 2026-09-07T03:00:00Z")
	}
	return t, nil
}
