package realserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"
)

// registryDate is when the first version of every package was published; each further one is a day younger.
var registryDate = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// StartRegistry starts an npm registry on the loopback address, with the versions of each package, the
// oldest first. It answers what somebody asks who looks for updates and has no files of the packages. Its
// URL is what npm's setting "registry" wants, and its Close ends it.
func StartRegistry(packages map[string][]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/"))
		versions := packages[name]
		if err != nil || len(versions) == 0 {
			http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(packument(name, versions)) // Nobody is left to hear of it.
	}))
}

// packument is what a registry says of a package.
func packument(name string, versions []string) map[string]any {
	all, times := map[string]any{}, map[string]string{}
	for i, version := range versions {
		all[version] = map[string]any{"name": name, "version": version, "dist": map[string]any{}}
		times[version] = registryDate.AddDate(0, 0, i).Format(time.RFC3339)
	}
	return map[string]any{
		"name": name, "dist-tags": map[string]string{"latest": versions[len(versions)-1]}, "versions": all, "time": times,
	}
}
