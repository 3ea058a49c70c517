package slacktest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is the JSON of an answer without its "ok"; a code is an error.
type answer map[string]any

func failed(code string) answer { return answer{"error": code} }

// maxForm bounds a request.
const maxForm = 8 << 20

// serveMethod serves a method of the Web API.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if r.URL.RawQuery != "" {
		s.problem("%s has something in its address", r.URL.Path)
	}
	method := r.PathValue("method")
	s.mu.Lock()
	s.calls[method]++
	fault := s.takeFault(method)
	s.mu.Unlock()
	if s.goWrong(w, r, fault) {
		return
	}
	out := failed(fault.Code)
	if fault.Code == "" {
		out = s.carryOut(method, r)
	}
	if fault.Lose {
		panic(http.ErrAbortHandler)
	}
	out["ok"] = out["error"] == nil
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(out)
}

// goWrong answers as a fault says, and reports whether that is the answer.
func (s *Server) goWrong(w http.ResponseWriter, r *http.Request, fault Fault) bool {
	switch {
	case fault.After > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(fault.After/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
	case fault.Status != 0:
		http.Error(w, "<html>broken</html>", fault.Status)
	case fault.Garble:
		_, _ = w.Write([]byte("<html>"))
	case fault.Hang:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
	default:
		return false
	}
	return true
}

// methods are what a token may call, with the scope it takes; where the scope
// depends on the conversation it is empty.
var methods = map[string]struct {
	token, scope string
	call         func(*Server, url.Values) answer
}{
	"auth.test":             {BotToken, "", (*Server).authTest},
	"apps.connections.open": {AppToken, "", (*Server).openConnection},
	"chat.postMessage":      {BotToken, "chat:write", (*Server).postMessage},
	"chat.postEphemeral":    {BotToken, "chat:write", (*Server).postEphemeral},
	"chat.update":           {BotToken, "chat:write", (*Server).update},
	"conversations.open":    {BotToken, "im:write", (*Server).open},
	"conversations.history": {BotToken, "", (*Server).history},
	"conversations.replies": {BotToken, "", (*Server).replies},

	"files.getUploadURLExternal":   {BotToken, "files:write", (*Server).uploadURL},
	"files.completeUploadExternal": {BotToken, "files:write", (*Server).completeUpload},
}

// carryOut checks the token and the scope, and carries a call out.
func (s *Server) carryOut(method string, r *http.Request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := methods[method]
	if !ok {
		s.problems = append(s.problems, "no method "+method)
		return failed("unknown_method")
	}
	given := r.PostForm.Get("token")
	if given == "" {
		given = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	switch {
	case given == "":
		return failed("not_authed")
	case s.refusal[given] != "":
		return failed(s.refusal[given])
	case given != m.token:
		return failed("invalid_auth")
	}
	if m.scope != "" {
		if refused := s.need(m.scope); refused != nil {
			return refused
		}
	}
	return m.call(s, r.PostForm)
}

// need notes that a scope is needed, and refuses if the app lacks it.
func (s *Server) need(scope string) answer {
	if !s.granted(scope) {
		return answer{"error": "missing_scope", "needed": scope, "provided": strings.Join(s.options.Scopes, ",")}
	}
	s.used[scope] = true
	return nil
}

func (s *Server) granted(scope string) bool {
	return s.options.Scopes == nil || slices.Contains(s.options.Scopes, scope)
}

func (s *Server) authTest(url.Values) answer {
	return answer{"url": "https://example.slack.com/", "team": "Example", "user": "signalbox", "team_id": TeamID, "user_id": UserID, "bot_id": BotID}
}

func (s *Server) openConnection(url.Values) answer { return answer{"url": s.socketURL()} }
