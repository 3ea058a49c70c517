package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxFile = 8 << 20
	maxAlt  = 1000
	// MethodUpload names the sending of a file, which is no method of the Web API, for
	// [Server.Fail] and [Server.Calls].
	MethodUpload = "upload"
)

// File is a file that the app uploads in three steps: it asks for an address, sends
// the content there, and shows the file in a conversation.
type File struct {
	ID, Name, Title, Alt string
	Content              []byte

	ticket string // Of the address.
	length int    // As it was announced.
	sent   bool
	shown  bool
}

// json is a file as the Web API shows it.
func (f *File) json() map[string]any {
	return map[string]any{
		"id": f.ID, "name": f.Name, "title": f.Title, "alt_txt": f.Alt, "user": UserID, "size": len(f.Content), "mode": "hosted",
		"mimetype": http.DetectContentType(f.Content), "filetype": strings.TrimPrefix(http.DetectContentType(f.Content), "image/"),
	}
}

// Uploads are the files that the app has sent, shown or not, the oldest first.
func (s *Server) Uploads() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []File
	for _, f := range s.files {
		if f.sent {
			out = append(out, *f)
		}
	}
	return out
}

// SetUploadRoot lets Slack name addresses under another root for uploads.
func (s *Server) SetUploadRoot(root string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploads = root
}

func (s *Server) uploadURL(in url.Values) answer {
	length, err := strconv.Atoi(in.Get("length"))
	switch {
	case err != nil || length <= 0 || in.Get("filename") == "":
		return failed("missing_argument")
	case length > maxFile:
		return failed("file_upload_size_restricted")
	case utf8.RuneCountInString(in.Get("alt_txt")) > maxAlt:
		return failed("alt_txt_too_large")
	}
	f := &File{ID: s.id("F"), Name: in.Get("filename"), Alt: in.Get("alt_txt"), ticket: s.id("upload"), length: length}
	s.files = append(s.files, f)
	return answer{"upload_url": s.uploads + "/upload/v1/" + f.ticket, "file_id": f.ID}
}

// serveUpload takes the content of a file, raw or in a form. Who has the address may
// send it.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	content, err := fileIn(http.MaxBytesReader(w, r.Body, 2*maxFile), r)
	if err != nil {
		http.Error(w, "not a file", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.calls[MethodUpload]++
	fault := s.takeFault(MethodUpload)
	s.mu.Unlock()
	if s.goWrong(w, r, fault) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.ticket != r.PathValue("ticket") {
			continue
		}
		if f.sent || len(content) != f.length {
			s.problems = append(s.problems, fmt.Sprintf("%d bytes of %s, of which %d were announced, sent before: %t", len(content), f.Name, f.length, f.sent))
			break
		}
		f.Content, f.sent = content, true
		_, _ = fmt.Fprintf(w, "OK - %d", len(content))
		return
	}
	http.Error(w, "no such upload", http.StatusBadRequest)
}

// fileIn reads the content of a request, or of the file in its form.
func fileIn(body io.Reader, r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		return io.ReadAll(body)
	}
	r.Body = io.NopCloser(body)
	form, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	part, err := form.NextPart()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(part)
}

func (s *Server) completeUpload(in url.Values) answer {
	var wanted []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if json.Unmarshal([]byte(in.Get("files")), &wanted) != nil || len(wanted) != 1 {
		return failed("invalid_arguments")
	}
	var f *File
	for _, known := range s.files {
		if known.ID == wanted[0].ID && known.sent && !known.shown {
			f = known
		}
	}
	if f == nil {
		return failed("file_not_found")
	}
	c, refused := s.writable(in.Get("channel_id"))
	if refused != nil {
		return refused
	}
	if f.Title = wanted[0].Title; f.Title == "" {
		f.Title = f.Name
	}
	f.shown = true
	s.add(c, &Message{User: UserID, BotID: BotID, Thread: in.Get("thread_ts"), Files: []*File{f}})
	return answer{"files": []any{map[string]any{"id": f.ID, "title": f.Title}}}
}
