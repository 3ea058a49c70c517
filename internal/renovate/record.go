package renovate

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"time"
)

// Levels as bunyan counts them.
const (
	levelDebug = 20
	levelInfo  = 30
	levelWarn  = 40
	levelError = 50
	levelFatal = 60
)

// Formats of a log.
const (
	formatJSON = "json"
	formatText = "text"
)

// record is one message of Renovate.
type record struct {
	line   int
	format string
	// process and context tell runs apart in the JSON form; the text form has
	// neither.
	process, context string
	level            int
	time             time.Time
	message          string
	// fields are the rest, by their exact names.
	fields map[string]json.RawMessage
}

// text returns a field that is a string, else "".
func (r *record) text(field string) string {
	var s string
	if json.Unmarshal(r.fields[field], &s) != nil {
		return ""
	}
	return s
}

// number returns a field that is a whole number, else 0.
func (r *record) number(field string) int {
	var n int
	if json.Unmarshal(r.fields[field], &n) != nil {
		return 0
	}
	return n
}

// decode reads a field into out, and says whether it was there and fitted.
func (r *record) decode(field string, out any) bool {
	raw, ok := r.fields[field]
	return ok && json.Unmarshal(raw, out) == nil
}

// stamp is the time that Gitea, GitHub, Docker or kubectl put before a line.
var stamp = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2}) `)

var bom = []byte("\xef\xbb\xbf")

// bare takes off what others put around a line: one time before it, colours,
// and the carriage returns of its end. A carriage return within is not the end
// of a line: Renovate indents after line feeds only.
func bare(text []byte) ([]byte, time.Time) {
	text = bytes.TrimRight(bytes.TrimPrefix(text, bom), "\r\n")
	var at time.Time
	if prefix := stamp.Find(text); prefix != nil {
		if t, err := time.Parse(time.RFC3339Nano, string(prefix[:len(prefix)-1])); err == nil {
			at, text = t, bytes.TrimPrefix(text[len(prefix):], bom)
		}
	}
	if bytes.IndexByte(text, 0x1b) >= 0 {
		text = ansi.ReplaceAll(text, nil)
	}
	return bytes.TrimRight(text, "\r"), at
}

// jsonEnd is the end of a record of bunyan's: the message, the time and the
// version come last. Quotes within a string are escaped, so what a string quotes
// does not match.
var jsonEnd = regexp.MustCompile(`,("msg":"(?:[^"\\]|\\.)*","time":"[^"\\]*","v":\d+)\}$`)

// parseJSON reads a line of LOG_FORMAT=json. end is the end of a line that was
// shortened.
func parseJSON(text, end []byte) (*record, bool) {
	if !bytes.HasPrefix(text, []byte("{")) {
		return nil, false
	}
	var fields map[string]json.RawMessage
	if end == nil {
		if json.Unmarshal(text, &fields) != nil {
			return nil, false
		}
	} else {
		fields = pairs(text)
		last := jsonEnd.FindSubmatch(bytes.TrimRight(end, "\r\n"))
		if last == nil {
			return nil, false
		}
		maps.Copy(fields, pairs(append([]byte("{"), last[1]...)))
	}
	r := &record{format: formatJSON, fields: fields, level: -1}
	var version int
	if r.text("name") != "renovate" || !r.decode("level", &r.level) || !r.decode("msg", &r.message) ||
		!r.decode("time", &r.time) || !r.decode("v", &version) || r.level < 0 {
		return nil, false
	}
	r.process = r.text("hostname") + " " + string(fields["pid"])
	r.context = r.text("logContext")
	return r, true
}

// pairs reads the fields of a JSON object as far as it goes.
func pairs(text []byte) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fields
	}
	for {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return fields
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return fields
		}
		fields[key] = value
	}
}

// textHead is the first line of a message in Renovate's own text form: the
// level, right-aligned, and a colon.
var textHead = regexp.MustCompile(`^(TRACE|DEBUG| INFO| WARN|ERROR|FATAL): `)

var textLevels = map[string]int{"TRACE": 10, "DEBUG": levelDebug, " INFO": levelInfo, " WARN": levelWarn, "ERROR": levelError, "FATAL": levelFatal}

// textMeta is what the text form puts behind a message: fields that say what it
// is about, and the module.
var (
	textModule = regexp.MustCompile(` \[[\w./-]+\]$`)
	textMeta   = regexp.MustCompile(`^(?:repository|baseBranch|packageFile|depType|dependency|dependencies|branch)=`)
	textField  = regexp.MustCompile(`, (baseBranch|packageFile|depType|dependency|dependencies|branch)=`)
)

func withoutModule(text string) string {
	if !strings.HasSuffix(text, "]") {
		return text
	}
	return textModule.ReplaceAllString(text, "")
}

// indent is how the text form begins each further line of a message.
const indent = "       "

// parseText reads the first line of a message in the text form. Its details are
// on the indented lines below.
func parseText(text []byte) (*record, bool) {
	head := textHead.Find(text)
	if head == nil {
		return nil, false
	}
	r := &record{format: formatText, level: textLevels[string(head[:5])], fields: map[string]json.RawMessage{}}
	r.message = string(text[len(head):])
	if at := metaStart(r.message); at >= 0 {
		meta := strings.TrimSuffix(withoutModule(r.message[at+2:]), ")")
		r.message = r.message[:at]
		r.addMeta(meta)
	} else {
		r.message = withoutModule(r.message)
	}
	return r, true
}

// metaStart finds the parenthesis of the fields. The last one that can be it is
// it, since what a message quotes stands before.
func metaStart(message string) int {
	whole := withoutModule(message)
	if !strings.HasSuffix(whole, ")") {
		return -1
	}
	if at := strings.LastIndex(whole, " (repository="); at >= 0 {
		return at
	}
	at := strings.LastIndex(whole, " (")
	if at < 0 || !textMeta.MatchString(whole[at+2:]) {
		return -1
	}
	return at
}

func (r *record) addMeta(meta string) {
	for meta != "" {
		rest := ""
		if next := textField.FindStringIndex(meta); next != nil {
			rest = meta[next[0]+2:]
			meta = meta[:next[0]]
		}
		if key, value, ok := strings.Cut(meta, "="); ok {
			if _, twice := r.fields[key]; !twice {
				r.fields[key], _ = json.Marshal(value)
			}
		}
		meta = rest
	}
}

// addDetails reads the indented lines of a message, without their indentation:
// fields of JSON with commas between them, and perhaps a stack after them. What
// a message is about stands in its first line only.
func (r *record) addDetails(details []byte) {
	for key, value := range pairs(append([]byte("{"), details...)) {
		if key != "repository" && key != "branch" {
			r.fields[key] = value
		}
	}
}
