package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/attachment"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
)

// Attach implements [chat.Poster]. The same cause is shown once for as long as with
// Post; what is tried again may be uploaded again, which nobody sees. In an encrypted
// room the homeserver holds the file encrypted, and its key is in the message. A
// homeserver that takes no files fails with [chat.ErrNoPictures].
func (a *Adapter) Attach(ctx context.Context, room chat.Room, thread, cause string, p chat.Picture) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("matrix: %w", err)
	}
	where, transaction := id.RoomID(room.ID), transaction("picture", room.ID, cause)
	if a.posted.Contains(sent{where, transaction}) {
		return nil
	}
	d, err := a.enter(ctx, where)
	if err != nil {
		return err
	}
	content, err := a.upload(ctx, d, p)
	if err != nil {
		return err
	}
	inThread(content, thread)
	_, err = a.say(ctx, d, content, transaction)
	return err
}

// upload hands a picture to the homeserver, and returns the message that shows it.
func (a *Adapter) upload(ctx context.Context, d door, p chat.Picture) (*event.MessageEventContent, error) {
	const pngType = "image/png"
	content := &event.MessageEventContent{
		// With a name beside it, the body is what is shown below the picture, and told
		// of it to whoever cannot see it.
		MsgType: event.MsgImage, Body: p.Alt, FileName: p.Name, Mentions: &event.Mentions{},
		Info: &event.FileInfo{MimeType: pngType, Width: p.Width, Height: p.Height, Size: len(p.PNG)},
	}
	// What it is called and of what type is told to the people in the room alone.
	file := mautrix.ReqUploadMedia{ContentBytes: p.PNG, ContentType: pngType}
	if d.encrypted {
		content.File = &event.EncryptedFileInfo{EncryptedFile: *attachment.NewEncryptedFile()}
		file.ContentBytes, file.ContentType = bytes.Clone(p.PNG), "application/octet-stream"
		content.File.EncryptInPlace(file.ContentBytes)
	}
	doing := "upload a picture for " + d.room.String()
	at, err := ask(ctx, a, doing, func(ctx context.Context) (*mautrix.RespMediaUpload, error) { return a.client.UploadMedia(ctx, file) })
	switch {
	case err == nil && at.ContentURI.IsEmpty():
		return nil, &requestError{text: doing + ": the homeserver's answer names no file"}
	case err == nil:
	case permanent(err) && !errors.Is(err, chat.ErrTooLong):
		// It is not the room that refuses.
		return nil, fmt.Errorf("%s: %w; ask whoever runs the homeserver to let signalbox upload files (%s)", doing, chat.ErrNoPictures, a.reason(err))
	default:
		return nil, err
	}
	if d.encrypted {
		content.File.URL = at.ContentURI.CUString()
	} else {
		content.URL = at.ContentURI.CUString()
	}
	return content, nil
}

// errElsewhere: the token, and what signalbox says, go to the homeserver alone.
var errElsewhere = errors.New("the homeserver sends to another host, which is not followed; configure the address that it sends to, if that is right")

// stay follows a redirect to the same host, and not from https to http.
func stay(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Hostname() != first.Hostname() || (first.Scheme == "https" && next.URL.Scheme != "https") {
		return errElsewhere
	}
	if len(before) >= 10 {
		return errors.New("the homeserver redirects without an end")
	}
	return nil
}
