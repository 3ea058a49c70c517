package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed templates/*.html
var templateFiles embed.FS

// page is what a handler shows.
type page struct {
	// Template names a file of templates, without its ending, that defines "main".
	Template string
	Title    string
	// Nav is the path of the item of the navigation that this page belongs to.
	Nav string
	// Live is the query of /live that the page follows, such as "all"; empty where
	// it does not change.
	Live string
	// Code is that of HTTP; zero is 200.
	Code int
	// Data is .Data in the template.
	Data any
}

// layout is what a template gets.
type layout struct {
	page
	Viewer viewer
	// Whole says that the viewer sees the pages of the whole installation.
	Whole bool
	// CanSignIn says that the viewer is nobody, and need not be.
	CanSignIn bool
	Public    bool
	// Here is the path and query of the page, below the address, for the way back
	// from a sign-in.
	Here string
	Menu []item
	// Assets changes with the style and the script.
	Assets  string
	Version string
}

// item is one of the navigation.
type item struct {
	Path, Name string
	Here       bool
}

// menu is the navigation: what a viewer may see.
func menu(v *visit, here string) []item {
	items := []item{{Path: "/", Name: "Board"}}
	items = append(items, overviewMenu(v.sight)...)
	for i := range items {
		items[i].Here = items[i].Path == here
	}
	return items
}

// pages are the templates by name.
type pages struct{ byName map[string]*template.Template }

// loadPages reads the templates: each page is the layout with its own "main".
func loadPages(functions template.FuncMap) (*pages, error) {
	shared, err := template.New("layout").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("read the templates: %w", err)
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list the templates: %w", err)
	}
	p := &pages{map[string]*template.Template{}}
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("read the template of %s: %w", name, err)
		}
		p.byName[name] = t
	}
	return p, nil
}

// here is the path and query of a page that is asked for, as far as one can be led
// back there.
func here(r *http.Request) string {
	if r.Method != http.MethodGet {
		return "/"
	}
	return returnPath(r.URL.RequestURI())
}

// show answers with a page, or with its main part if the script asks for that.
func (s *Server) show(w http.ResponseWriter, v *visit, p page) error {
	t, ok := s.pages.byName[p.Template]
	if !ok {
		return fmt.Errorf("no template %q", p.Template)
	}
	l := layout{
		page: p, Viewer: v.viewer, Whole: v.sight.whole, Public: s.Public, Here: here(v.Request), Menu: menu(v, p.Nav),
		CanSignIn: v.viewer.anonymous() && s.SignIn != nil, Assets: s.assets.hash, Version: s.Version,
	}
	name := "page"
	if fragment(v.Request) {
		name = "fragment"
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, l); err != nil {
		return fmt.Errorf("make the page %s: %w", p.Template, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "X-Signalbox-Fragment")
	if p.Code != 0 {
		w.WriteHeader(p.Code)
	}
	// The other side may be gone; there is nobody to tell.
	_, _ = w.Write(b.Bytes())
	return nil
}
