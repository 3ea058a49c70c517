package slack

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"signalbox/internal/chat"
)

// defaultWait is how long to wait where Slack limits without a time.
const defaultWait = 30 * time.Second

// revoked are the codes of Slack for a token that is not accepted any more.
var revoked = map[string]bool{
	"account_inactive": true, "invalid_auth": true, "not_authed": true, "not_allowed_token_type": true,
	"token_expired": true, "token_revoked": true,
}

// remedy says to a person what to do about a code.
type remedy struct {
	class error
	text  string
}

const (
	invite = "invite signalbox into the channel with /invite"
	open   = "ask an administrator of the workspace to let signalbox write there"
	again  = "it was deleted, or is too old to be changed"
	apart  = "the person cannot be written to"
	shape  = "Slack does not take it like that"
	files  = "ask an administrator of the workspace to allow files, or to make room for them"
)

// remedies are the codes of Slack for which trying again is in vain.
var remedies = map[string]remedy{
	"channel_not_found": {chat.ErrGone, invite},
	"not_in_channel":    {chat.ErrGone, invite},
	"is_archived":       {chat.ErrGone, "the channel is archived; restore it, or configure another"},

	"message_not_found":       {chat.ErrGone, again},
	"cant_update_message":     {chat.ErrGone, again},
	"edit_window_closed":      {chat.ErrGone, again},
	"thread_not_found":        {chat.ErrGone, again},
	"cannot_reply_to_message": {chat.ErrGone, again},

	"restricted_action":                        {chat.ErrGone, open},
	"restricted_action_non_threadable_channel": {chat.ErrGone, open},
	"restricted_action_read_only_channel":      {chat.ErrGone, open},
	"restricted_action_thread_locked":          {chat.ErrGone, open},
	"restricted_action_thread_only_channel":    {chat.ErrGone, open},

	"cannot_dm_bot":         {chat.ErrGone, apart},
	"messages_tab_disabled": {chat.ErrGone, "allow messages to the app under \"App Home\""},
	"user_disabled":         {chat.ErrGone, apart},
	"user_not_found":        {chat.ErrGone, apart},
	"user_not_in_channel":   {chat.ErrGone, apart},
	"user_not_visible":      {chat.ErrGone, apart},

	"invalid_blocks":        {chat.ErrTooLong, shape},
	"invalid_blocks_format": {chat.ErrTooLong, shape},
	"metadata_too_large":    {chat.ErrTooLong, shape},
	"msg_blocks_too_long":   {chat.ErrTooLong, shape},
	"msg_too_long":          {chat.ErrTooLong, shape},
	"no_text":               {chat.ErrTooLong, shape},

	"alt_txt_too_large":           {chat.ErrTooLong, shape},
	"file_upload_size_restricted": {chat.ErrTooLong, shape},

	"file_type_not_allowed":               {chat.ErrNoPictures, files},
	"file_uploads_disabled":               {chat.ErrNoPictures, files},
	"file_uploads_except_images_disabled": {chat.ErrNoPictures, files},
	"storage_limit_reached":               {chat.ErrNoPictures, files},
}

// limits are the codes of Slack that ask to come back later.
var limits = map[string]bool{"message_limit_exceeded": true, "rate_limited": true, "ratelimited": true}

// codeOf says in one word how a call ended. The word is a label: what is not known
// here is "other".
func codeOf(err error) string {
	if err == nil {
		return "ok"
	}
	if answer, ok := errors.AsType[slackapi.SlackErrorResponse](err); ok {
		_, known := remedies[answer.Err]
		if known || revoked[answer.Err] || limits[answer.Err] || answer.Err == "missing_scope" {
			return answer.Err
		}
		return "other"
	}
	if _, ok := errors.AsType[*slackapi.RateLimitedError](err); ok {
		return "429"
	}
	if status, ok := errors.AsType[slackapi.StatusCodeError](err); ok {
		return strconv.Itoa(status.Code)
	}
	return "error"
}

// translate makes an error of the package chat of one of the SDK.
func translate(method string, err error) error {
	if answer, ok := errors.AsType[slackapi.SlackErrorResponse](err); ok {
		return answered(method, answer)
	}
	if limit, ok := errors.AsType[*slackapi.RateLimitedError](err); ok {
		return &chat.RetryError{After: max(limit.RetryAfter, time.Second), Err: fmt.Errorf("%s: Slack limits the rate", method)}
	}
	if status, ok := errors.AsType[slackapi.StatusCodeError](err); ok {
		if status.Code == http.StatusTooManyRequests {
			return &chat.RetryError{After: defaultWait, Err: fmt.Errorf("%s: Slack limits the rate", method)}
		}
		if status.Code == http.StatusRequestEntityTooLarge {
			return fmt.Errorf("%s: %w (HTTP %d)", method, chat.ErrTooLong, status.Code)
		}
		return fmt.Errorf("%s: HTTP %d", method, status.Code)
	}
	if transport, ok := errors.AsType[*url.Error](err); ok {
		// Its text would hold the address.
		return fmt.Errorf("%s: %w", method, transport.Err)
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", method, err)
	}
	return &answerError{method: method, err: err}
}

// answerError: the answer is not what the SDK expects.
type answerError struct {
	method string
	err    error
}

func (e *answerError) Error() string {
	return fmt.Sprintf("%s: the answer is not understood: %v", e.method, e.err)
}

func (e *answerError) Unwrap() error { return e.err }

// answered translates what Slack answered with "ok": false.
func answered(method string, answer slackapi.SlackErrorResponse) error {
	r, known := remedies[answer.Err]
	switch {
	case known:
		return fmt.Errorf("%s: %w (%s): %s", method, r.class, answer.Err, r.text)
	case revoked[answer.Err]:
		return fmt.Errorf("%s: %w (%s)", method, chat.ErrRevoked, answer.Err)
	case limits[answer.Err]:
		return &chat.RetryError{After: defaultWait, Err: fmt.Errorf("%s: Slack limits the rate", method)}
	case answer.Err == "missing_scope":
		return &scopeError{method: method, needed: answer.Needed}
	default:
		return fmt.Errorf("%s: Slack answers %q", method, answer.Err)
	}
}

// scopeError says which scope the app lacks.
type scopeError struct{ method, needed string }

func (e *scopeError) Error() string {
	return fmt.Sprintf("%s: the app lacks the scope %s; add it under \"OAuth & Permissions\" and install the app again", e.method, e.needed)
}

// Unwrap returns [chat.ErrNoPictures] for a call that shows a picture.
func (e *scopeError) Unwrap() error {
	if strings.HasPrefix(e.method, "files.") {
		return chat.ErrNoPictures
	}
	return nil
}
