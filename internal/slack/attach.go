package slack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	slackapi "github.com/slack-go/slack"

	"signalbox/internal/chat"
)

// Attach implements [chat.Poster]. The message that shows a picture takes no metadata;
// by the name of its file a picture is found again that was shown for the cause, see
// the package. Without the scope files:write, or where a workspace allows no files, it
// fails with [chat.ErrNoPictures].
func (a *Adapter) Attach(ctx context.Context, room chat.Room, thread, cause string, p chat.Picture) error {
	if room.Platform != chat.Slack || room.ID == "" {
		return fmt.Errorf("slack: %s is no room of Slack", room)
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("slack: %w", err)
	}
	k := key{room: room.ID, cause: cause, picture: true}
	release, err := a.alone(ctx, k)
	if err != nil {
		return err
	}
	defer release()
	if a.posted.Contains(k) {
		return nil
	}
	id, err := a.find(ctx, room.ID, thread, func(m *slackapi.Message) bool { return shows(m, cause) })
	if err != nil {
		return err
	}
	if id == "" {
		if id, err = a.share(ctx, room.ID, thread, cause, p); err != nil {
			return err
		}
	}
	a.posted.Add(k, id)
	return nil
}

// share uploads a picture and shows it in a room or a thread, and returns the id of
// the file.
// See https://docs.slack.dev/messaging/working-with-files#uploading_files.
func (a *Adapter) share(ctx context.Context, room, thread, cause string, p chat.Picture) (string, error) {
	name := fileName(p.Name, cause)
	var to *slackapi.GetUploadURLExternalResponse
	err := a.call(ctx, "files.getUploadURLExternal", func(ctx context.Context) (err error) {
		to, err = a.api.GetUploadURLExternalContext(ctx, slackapi.GetUploadURLExternalParameters{FileName: name, FileSize: len(p.PNG), AltTxt: p.Alt})
		return err
	})
	if err != nil {
		return "", err
	}
	if to.FileID == "" || to.UploadURL == "" {
		return "", errors.New("files.getUploadURLExternal: the answer names no file or no address")
	}
	// It goes with the token, and the SDK sends it to hosts of Slack alone.
	err = a.call(ctx, methodUpload, func(ctx context.Context) error {
		return a.api.UploadToURL(ctx, slackapi.UploadToURLParameters{UploadURL: to.UploadURL, Reader: bytes.NewReader(p.PNG), Filename: name})
	})
	if _, refused := errors.AsType[*answerError](err); refused {
		// Its text would hold the address, with which anybody could upload.
		return "", errors.New("upload: Slack names an address that is not one of its own; nothing was sent there")
	}
	if err != nil {
		return "", err
	}
	err = a.call(ctx, "files.completeUploadExternal", func(ctx context.Context) error {
		_, err := a.api.CompleteUploadExternalContext(ctx, slackapi.CompleteUploadExternalParameters{
			Files: []slackapi.FileSummary{{ID: to.FileID, Title: p.Name}}, Channel: room, ThreadTimestamp: thread,
		})
		return err
	})
	return to.FileID, err
}

// methodUpload is what sending a file is called in metrics and errors. It is no method
// of the Web API.
const methodUpload = "upload"

// fileName is the name of a picture with a mark of its cause.
func fileName(name, cause string) string {
	return strings.TrimSuffix(name, ".png") + "-" + mark(cause) + ".png"
}

// mark is what a cause is known by in the name of a file. Slack keeps that as it is,
// but for its length: there is no room for the cause.
func mark(cause string) string {
	sum := sha256.Sum256([]byte(cause))
	return hex.EncodeToString(sum[:8])
}

// shows reports whether a message shows the picture for a cause.
func shows(m *slackapi.Message, cause string) bool {
	for _, f := range m.Files {
		if strings.Contains(f.Name, mark(cause)) {
			return true
		}
	}
	return false
}
