package matrix

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"maunium.net/go/mautrix"

	"signalbox/internal/chat"
)

// maxReason bounds what is shown of the words of a homeserver, in bytes.
const maxReason = 300

// errNotConnected: the homeserver has not told yet who signalbox is and which rooms
// are encrypted.
var errNotConnected = errors.New("not connected to the homeserver yet")

// failure makes an error of what a request came to. It is one of those of package
// chat where they fit, and never shows the token, whatever the server answers.
func (a *Adapter) failure(doing string, err error) error {
	if err == nil {
		return nil
	}
	code, said := "", mautrix.HTTPError{}
	var answer mautrix.RespError
	if errors.As(err, &answer) {
		code = answer.ErrCode
	}
	if errors.As(err, &said) && said.Response != nil && said.Response.StatusCode == http.StatusRequestEntityTooLarge {
		code = "M_TOO_LARGE" // Not all say so.
	}
	reason := a.reason(err)
	switch code {
	case "M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED", "M_USER_LOCKED":
		return fmt.Errorf("%s: %w; log the account in again and configure the new token (%s)", doing, chat.ErrRevoked, reason)
	case "M_FORBIDDEN", "M_NOT_FOUND":
		return fmt.Errorf("%s: %w; invite it into the room again and let it speak there (%s)", doing, chat.ErrGone, reason)
	case "M_TOO_LARGE":
		return fmt.Errorf("%s: %w (%s)", doing, chat.ErrTooLong, reason)
	case "M_LIMIT_EXCEEDED":
		return fmt.Errorf("%s: %w", doing, &chat.RetryError{After: retryAfter(answer, said.Response), Err: errors.New(reason)})
	}
	return &requestError{text: doing + ": " + reason, err: err}
}

// requestError has a text of its own, because that of the client's errors may hold
// an answer of any length.
type requestError struct {
	text string
	err  error
}

func (e *requestError) Error() string { return e.text }

func (e *requestError) Unwrap() error { return e.err }

// reason is what went wrong, in few words.
func (a *Adapter) reason(err error) string {
	var answer mautrix.RespError
	var said mautrix.HTTPError
	var wait net.Error
	var request *url.Error
	var text string
	switch {
	case errors.As(err, &answer):
		text = strings.TrimSuffix(answer.ErrCode+": "+answer.Err, ": ")
	case errors.As(err, &wait) && wait.Timeout():
		text = "no answer in time"
	case errors.As(err, &request):
		text = request.Err.Error() // Without the URL, which may be long.
	case errors.As(err, &said) && said.WrappedError != nil:
		text = said.Message + ": " + said.WrappedError.Error()
	case errors.As(err, &said) && said.Response != nil:
		text = "the homeserver answered " + said.Response.Status
	default:
		text = err.Error()
	}
	if token := a.config.Token.Reveal(); token != "" {
		text = strings.ReplaceAll(text, token, a.config.Token.String())
	}
	return cut(oneLine(text), maxReason)
}

// retryAfter is how long the homeserver wants to be left alone: a second where it
// does not say.
func retryAfter(answer mautrix.RespError, resp *http.Response) time.Duration {
	const longest = time.Hour
	if ms, ok := answer.ExtraData["retry_after_ms"].(float64); ok && ms > 0 {
		return min(time.Duration(min(ms, float64(longest.Milliseconds())))*time.Millisecond, longest)
	}
	if resp != nil {
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return min(time.Duration(min(seconds, 3600))*time.Second, longest)
		}
	}
	return time.Second
}

// permanent reports whether asking again would bring the same: the homeserver has
// understood a request and refused it, or a key is missing.
func permanent(err error) bool {
	if errors.Is(err, chat.ErrGone) || errors.Is(err, errNoKey) {
		return true
	}
	var again *chat.RetryError
	var said mautrix.HTTPError
	return !errors.Is(err, chat.ErrRevoked) && !errors.As(err, &again) && errors.As(err, &said) &&
		said.RespError != nil && said.Response != nil && said.Response.StatusCode >= 400 && said.Response.StatusCode < 500
}

// cut shortens a text to at most n bytes, between two characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
