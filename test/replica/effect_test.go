//go:build e2e

package replica

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"signalbox/internal/gitea/giteatest"
)

// effects records what signalbox asks Gitea to do, in the order in which Gitea was asked. Only signalbox
// writes by the API; people act on the stand-in itself.
type effects struct {
	mu   sync.Mutex
	list []effect
}

// effect is one request that changes something.
type effect struct {
	at           time.Time
	method, path string
	body         []byte
}

// watch records the effects on a stand-in.
func watch(forge *giteatest.Server) *effects {
	e := &effects{}
	forge.Fail(func(r *http.Request) *giteatest.Response {
		if r.Method == http.MethodGet {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil // It broke off, and so nothing is done.
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		e.mu.Lock()
		defer e.mu.Unlock()
		e.list = append(e.list, effect{time.Now(), r.Method, strings.TrimPrefix(r.URL.Path, "/api/v1"), body})
		return nil
	})
	return e
}

// matching returns the effects with a method and a path that matches as a whole.
func (e *effects) matching(method, path string) []effect {
	whole := regexp.MustCompile("^" + path + "$")
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []effect
	for _, x := range e.list {
		if x.method == method && whole.MatchString(x.path) {
			out = append(out, x)
		}
	}
	return out
}

// posted is a status as it was posted.
type posted struct {
	at          time.Time
	State       string `json:"state"`
	Context     string `json:"context"`
	Description string `json:"description"`
}

// statuses returns what was posted on a commit, by context.
func (e *effects) statuses(sha string) (map[string][]posted, error) {
	out := map[string][]posted{}
	for _, x := range e.matching(http.MethodPost, ".*/statuses/"+sha) {
		var p posted
		if err := json.Unmarshal(x.body, &p); err != nil {
			return nil, fmt.Errorf("status on %s: %w", sha, err)
		}
		p.at = x.at
		out[p.Context] = append(out[p.Context], p)
	}
	return out, nil
}

// repeats counts the statuses that say what the one before said.
func repeats(list []posted) int {
	n := 0
	for i := 1; i < len(list); i++ {
		if list[i].State == list[i-1].State && list[i].Description == list[i-1].Description {
			n++
		}
	}
	return n
}
