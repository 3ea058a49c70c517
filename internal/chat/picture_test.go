package chat_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"

	"signalbox/internal/chat"
)

func TestPictureCheck(t *testing.T) {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	good := chat.Picture{Name: "volumes.png", Alt: "Two volumes, one of them full", PNG: file.Bytes(), Width: 4, Height: 3}
	for name, c := range map[string]struct {
		change func(*chat.Picture)
		want   error
	}{
		"good":           {func(*chat.Picture) {}, nil},
		"longest alt":    {func(p *chat.Picture) { p.Alt = strings.Repeat("ä", chat.MaxAlt) }, nil},
		"too long alt":   {func(p *chat.Picture) { p.Alt = strings.Repeat("ä", chat.MaxAlt+1) }, chat.ErrTooLong},
		"no alt":         {func(p *chat.Picture) { p.Alt = "" }, chat.ErrBadPicture},
		"broken alt":     {func(p *chat.Picture) { p.Alt = "\xff" }, chat.ErrBadPicture},
		"too large":      {func(p *chat.Picture) { p.PNG = make([]byte, chat.MaxPicture+1) }, chat.ErrTooLong},
		"no file":        {func(p *chat.Picture) { p.PNG = nil }, chat.ErrBadPicture},
		"no PNG":         {func(p *chat.Picture) { p.PNG = []byte("GIF89a") }, chat.ErrBadPicture},
		"other width":    {func(p *chat.Picture) { p.Width = 5 }, chat.ErrBadPicture},
		"no height":      {func(p *chat.Picture) { p.Height = 0 }, chat.ErrBadPicture},
		"no name":        {func(p *chat.Picture) { p.Name = "" }, chat.ErrBadPicture},
		"name of a path": {func(p *chat.Picture) { p.Name = "../volumes.png" }, chat.ErrBadPicture},
		"name of a GIF":  {func(p *chat.Picture) { p.Name = "volumes.gif" }, chat.ErrBadPicture},
		"name in a form": {func(p *chat.Picture) { p.Name = "a\"\r\nb.png" }, chat.ErrBadPicture},
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			c.change(&p)
			if err := p.Check(); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
