package matrixtest

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// sync answers with what happened since a position, as soon as something did.
func (s *Server) sync(w http.ResponseWriter, c call) {
	since, err := number(c.URL.Query().Get("since"))
	if err != nil {
		badJSON.write(w)
		return
	}
	ms, _ := strconv.Atoi(c.URL.Query().Get("timeout"))
	timeout := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timeout.Stop()
	for over := false; ; {
		s.mu.Lock()
		news, changed := s.since(c.user, since), s.changed
		s.mu.Unlock()
		if over || len(news.join)+len(news.invite)+len(news.leave) > 0 || since == 0 {
			answer(w, http.StatusOK, map[string]any{
				"next_batch": position(news.end),
				"rooms":      map[string]any{"join": news.join, "invite": news.invite, "leave": news.leave},
			})
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			over = true
		case <-c.Context().Done():
			return
		}
	}
}

// news are what somebody has not seen yet.
type news struct {
	join, invite, leave map[string]any
	end                 int
}

func (s *Server) since(user string, since int) news {
	n := news{join: map[string]any{}, invite: map[string]any{}, leave: map[string]any{}, end: len(s.stream)}
	for id, r := range s.rooms {
		m := r.member(user)
		switch {
		case m == nil:
		case m.Content["membership"] == "join":
			if j := s.joined(r, m, since); j != nil {
				n.join[id] = j
			}
		case m.position <= since:
		case m.Content["membership"] == "invite":
			n.invite[id] = map[string]any{"invite_state": map[string]any{"events": []*Event{m}}}
		case since > 0:
			n.leave[id] = map[string]any{"timeline": map[string]any{"events": []*Event{m}}}
		}
	}
	return n
}

// joined is what happened in a room that somebody is in, or nil.
func (s *Server) joined(r *room, member *Event, since int) any {
	before, fresh := member.Unsigned["prev_content"].(map[string]any)
	came := member.position > since && (!fresh || before["membership"] != "join")
	var timeline, state []*Event
	for _, e := range s.stream {
		if e.Room == r.id && (e.position > since || came) {
			timeline = append(timeline, e)
		}
	}
	if len(timeline) == 0 {
		return nil
	}
	limited := len(timeline) > s.limit
	if limited {
		timeline = timeline[len(timeline)-s.limit:]
	}
	first := timeline[0].position
	for _, e := range r.state {
		if e.position < first && (came || since == 0 || (limited && e.position > since)) {
			state = append(state, e)
		}
	}
	slices.SortFunc(state, func(a, b *Event) int { return a.position - b.position })
	return map[string]any{
		"state":    map[string]any{"events": state},
		"timeline": map[string]any{"events": timeline, "limited": limited, "prev_batch": position(first - 1)},
	}
}

// messages are those of a room before a position, the newest first.
func (s *Server) messages(c call, r *room) any {
	query := c.URL.Query()
	from, err := number(query.Get("from"))
	if err != nil || query.Get("from") == "" {
		from = len(s.stream)
	}
	to, _ := number(query.Get("to"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	chunk, end := []*Event{}, ""
	for i := from - 1; i >= to && i >= 0; i-- {
		if s.stream[i].Room != r.id {
			continue
		}
		if limit > 0 && len(chunk) == limit {
			end = position(i + 1)
			break
		}
		chunk = append(chunk, s.stream[i])
	}
	body := map[string]any{"start": position(from), "chunk": chunk}
	if end != "" {
		body["end"] = end
	}
	return body
}
