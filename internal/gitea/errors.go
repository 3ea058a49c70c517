package gitea

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/events"
	"signalbox/internal/pull"
)

// What an error of the client can be, to be asked with [errors.Is].
var (
	// ErrNotFound means that there is no such thing, or that the account of the
	// token may not see it: Gitea answers both alike.
	ErrNotFound = pull.ErrNotFound
	// ErrForbidden means that the account or the scope of the token lacks a
	// right. The message of Gitea says which.
	ErrForbidden = pull.ErrForbidden
	// ErrUnauthorized means that Gitea does not accept the token, as after it
	// was revoked.
	ErrUnauthorized = errors.New("token not accepted")
	// ErrUnknownCommit means that the repository has no such commit (yet).
	ErrUnknownCommit = pull.ErrUnknownCommit
	// ErrMoved means that the repository is now called otherwise, or that
	// another one took its name. [Client.RepoByID] tells its name.
	ErrMoved = errors.New("repository moved")
	// ErrTooLarge means that an answer is longer than what is read.
	ErrTooLarge = errors.New("answer too large")
	// ErrIncomplete means that a list could not be read to its end, or kept
	// changing while it was read.
	ErrIncomplete = pull.ErrIncomplete
)

// maxMessage bounds what an error repeats of an answer, in bytes.
const maxMessage = 200

// answerError is an answer that is no success.
type answerError struct {
	code    int
	message string
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("HTTP %d", e.code)
	if name := http.StatusText(e.code); name != "" {
		text += " " + name
	}
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// Is makes the answer comparable to the errors of this package.
func (e *answerError) Is(target error) bool {
	switch e.code {
	case http.StatusNotFound:
		return target == ErrNotFound
	case http.StatusForbidden:
		return target == ErrForbidden
	case http.StatusUnauthorized:
		return target == ErrUnauthorized
	}
	return false
}

// fail names the operation in an error and puts the error into the words of
// this package. It returns nil for a nil error.
func (c *Client) fail(err error, resp *sdk.Response, operation string, args ...any) error {
	if err == nil {
		return nil
	}
	var transport *url.Error
	switch {
	case resp != nil && resp.Response != nil && (resp.StatusCode < 200 || resp.StatusCode > 299):
		err = c.answer(resp.Response, []byte(err.Error()))
	case errors.As(err, &transport):
		// The address is known to whoever reads the operation; the cause is what
		// helps.
		err = transport.Err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(operation, args...), err)
}

// answer makes an error of an answer. The body may be the JSON of Gitea, the
// message that the SDK took from it, or the page of a proxy.
func (c *Client) answer(resp *http.Response, body []byte) error {
	message := string(body)
	var known struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &known) == nil {
		message = known.Message
	} else if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		message = ""
	}
	var err error = &answerError{code: resp.StatusCode, message: c.clean(message)}
	if wait, ok := retryAfter(resp.Header, time.Now()); ok && temporary(resp.StatusCode) {
		err = events.RetryAfter(err, wait)
	}
	return err
}

// clean makes one short line of a text from outside, without the token.
func (c *Client) clean(s string) string {
	if token := c.token.Reveal(); token != "" {
		s = strings.ReplaceAll(s, token, c.token.String())
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}
