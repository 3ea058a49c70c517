package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

//go:embed static
var staticFiles embed.FS

// assets are the style, the script and the icon. Their addresses hold a hash of
// all of them, so that they may be kept for long.
type assets struct {
	hash  string
	files map[string][]byte
}

func loadAssets() (*assets, error) {
	a := &assets{files: map[string][]byte{}}
	sum := sha256.New()
	entries, err := fs.ReadDir(staticFiles, "static")
	if err != nil {
		return nil, fmt.Errorf("list the assets: %w", err)
	}
	for _, e := range entries {
		b, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the assets: %w", err)
		}
		a.files[e.Name()] = b
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(b), b)
	}
	a.hash = hex.EncodeToString(sum.Sum(nil))[:16]
	return a, nil
}

// serve answers with an asset. While replicas of two versions run, one may be
// asked for what the other has: it gives its own, which is not kept.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	b, ok := a.files[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", typeOf(r.PathValue("file")))
	if r.PathValue("hash") == a.hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(b)
}

// typeOf is the type of an asset. What a machine says of its own is not asked for
// those that matter.
func typeOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(ext)
	}
}
