package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

const (
	// pageSize is what is asked for. Gitea clamps it silently to its
	// MAX_RESPONSE_ITEMS, 50 by default, so a short page says nothing.
	pageSize = 50
	// maxPages stops a server that never ends.
	maxPages = 2000
	// maxRereads is how often a list that changed while it was read is read
	// from the start.
	maxRereads = 3
)

// pages reads the pages of a list one after the other.
type pages[T any] struct {
	client *Client
	route  string
	path   string
	query  url.Values
	// field is where the list stands in an object, whose total_count is its
	// length; empty where the answer is the list itself.
	field string
}

// read returns page n, counted from 1, and the total that the server tells, or
// -1 where it tells none.
func (p pages[T]) read(ctx context.Context, n int) (items []T, total int, err error) {
	query := url.Values{}
	maps.Copy(query, p.query)
	query.Set("page", strconv.Itoa(n))
	query.Set("limit", strconv.Itoa(pageSize))
	if p.field != "" {
		return p.readField(ctx, query)
	}
	header, err := p.client.getJSON(ctx, call{route: p.route}, p.path, query, &items)
	if err != nil {
		return nil, 0, err
	}
	return items, totalCount(header), nil
}

// readField reads a page that stands in an object.
func (p pages[T]) readField(ctx context.Context, query url.Values) (items []T, total int, err error) {
	var object map[string]json.RawMessage
	if _, err := p.client.getJSON(ctx, call{route: p.route}, p.path, query, &object); err != nil {
		return nil, 0, err
	}
	for field, into := range map[string]any{p.field: &items, "total_count": &total} {
		if _, ok := object[field]; !ok {
			return nil, 0, fmt.Errorf("answer of Gitea lacks %s", field)
		}
		if err := json.Unmarshal(object[field], into); err != nil {
			return nil, 0, fmt.Errorf("%s in the answer of Gitea: %w", field, err)
		}
	}
	return items, total, nil
}

func totalCount(h http.Header) int {
	total, err := strconv.Atoi(h.Get("X-Total-Count"))
	if err != nil || total < 0 {
		return -1
	}
	return total
}

// exact reads a list whose total the server counts exactly, and returns all of
// it or an error. An entry that is added or removed between two pages shifts
// the rest; that shows in the total or in an entry seen twice, and then the
// list is read again. check, if not nil, refuses a page.
func exact[T any, K comparable](ctx context.Context, p pages[T], key func(T) K) ([]T, error) {
	all, more, err := exactUpTo(ctx, p, maxPages, key)
	if err == nil && more {
		return nil, fmt.Errorf("%w: it has more than %d pages", ErrIncomplete, maxPages)
	}
	return all, err
}

// exactUpTo is [exact] for the first pages of a list; more says that there are
// others.
func exactUpTo[T any, K comparable](ctx context.Context, p pages[T], most int, key func(T) K) (all []T, more bool, err error) {
	var why string
	for range maxRereads {
		all, total, problem, err := exactOnce(ctx, p, most, key)
		if err != nil {
			return nil, false, err
		}
		if problem == "" {
			return all, len(all) < total, nil
		}
		why = problem
	}
	return nil, false, fmt.Errorf("%w: %s", ErrIncomplete, why)
}

func exactOnce[T any, K comparable](ctx context.Context, p pages[T], most int, key func(T) K) (all []T, want int, problem string, err error) {
	seen := map[K]bool{}
	for n := 1; n <= most; n++ {
		items, total, err := p.read(ctx, n)
		switch {
		case err != nil:
			return nil, 0, "", err
		case total < 0:
			return nil, 0, "the server does not say how long it is", nil
		case n > 1 && total != want:
			return nil, 0, fmt.Sprintf("it grew or shrank from %d to %d entries while it was read", want, total), nil
		}
		want = total
		for _, item := range items {
			k := key(item)
			if seen[k] {
				return nil, 0, fmt.Sprintf("entry %v came twice", k), nil
			}
			seen[k] = true
		}
		all = append(all, items...)
		switch {
		case len(all) == total:
			return all, want, "", nil
		case len(all) > total, len(items) == 0:
			return nil, 0, fmt.Sprintf("%d of %d entries came", len(all), want), nil
		}
	}
	return all, want, "", nil
}

// untilEmpty reads a list whose total says too little, because the server
// leaves entries out of a page after it has counted it. It ends where enough
// says so, which is asked after each page with all entries, the number of
// empty pages since the last entry, and the total of the page.
func untilEmpty[T any](ctx context.Context, p pages[T], enough func(all []T, empty, total int) bool) ([]T, error) {
	var all []T
	empty := 0
	for n := 1; n <= maxPages; n++ {
		items, total, err := p.read(ctx, n)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		empty++
		if len(items) > 0 {
			empty = 0
		}
		if enough(all, empty, total) {
			return all, nil
		}
	}
	return nil, fmt.Errorf("%w: it has more than %d pages", ErrIncomplete, maxPages)
}

// readAll reads a body that the transport holds in memory.
func readAll(resp *http.Response) []byte {
	defer func() { _ = resp.Body.Close() }()
	data, _ := io.ReadAll(resp.Body)
	return data
}
