package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"signalbox/internal/secret"
)

// Prefix begins the path of every resource.
const Prefix = "/api/v1"

// Config is what the API is made of. Every source is needed.
type Config struct {
	// Tokens are what a request must bring one of. With none, the API tells what it
	// would answer, and nothing else.
	Tokens []secret.Value
	// URL is the address of signalbox as people open it, with a slash at its end. A
	// proxy takes its path off before it passes a request on. It may be nil where that
	// is not known; the description then names no server.
	URL *url.URL
	// Clusters are the names of the configured clusters, in their order.
	Clusters []string

	Pulls     Pulls
	Facts     Facts
	Decisions Decisions
	Digests   Digests
	Health    Health

	Version string
	Log     *slog.Logger
	Now     func() time.Time
}

// server answers requests.
type server struct {
	Config
}

// New returns the handler of everything under "/api/". The error says which token is
// too weak, by its place and never by its text, or what the configuration lacks.
func New(c Config) (http.Handler, error) {
	if c.Pulls == nil || c.Facts == nil || c.Decisions == nil || c.Digests == nil || c.Health == nil || c.Log == nil || c.Now == nil {
		return nil, errors.New("the API lacks a source, the log or the clock")
	}
	auth, err := newTokens(c.Tokens)
	if err != nil {
		return nil, err
	}
	s := &server{Config: c}
	mux := http.NewServeMux()
	spec := s.register(mux)
	public := http.NewServeMux()
	if err := serveSpec(public, spec); err != nil {
		return nil, err
	}
	return &front{
		public: public, routes: mux, tokens: auth, log: c.Log, now: c.Now,
		slots: make(chan struct{}, maxInFlight),
	}, nil
}

// register makes every resource known to a mux, and returns their description.
func (s *server) register(mux *http.ServeMux) *huma.OpenAPI {
	config := huma.Config{
		OpenAPI:       description(s.URL),
		Formats:       huma.DefaultFormats,
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{explain},
	}
	// A client of today must bear a field of tomorrow.
	config.AllowAdditionalPropertiesByDefault = true
	api := humago.New(mux, config)
	api.UseMiddleware(strict(api))
	s.registerPulls(api)
	s.registerClusters(api)
	s.registerDigests(api)
	s.registerAudit(api)
	s.registerHealth(api)
	spec := api.OpenAPI()
	tidy(spec)
	return spec
}

// serveSpec serves the description, for which nobody needs a token.
func serveSpec(mux *http.ServeMux, spec *huma.OpenAPI) error {
	asJSON, err := spec.MarshalJSON()
	if err != nil {
		return fmt.Errorf("describe the API as JSON: %w", err)
	}
	asYAML, err := spec.YAML()
	if err != nil {
		return fmt.Errorf("describe the API as YAML: %w", err)
	}
	for name, body := range map[string][]byte{"json": asJSON, "yaml": asYAML} {
		mux.HandleFunc("GET "+Prefix+"/openapi."+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/openapi+"+name)
			// The other side may be gone; there is nobody to tell.
			_, _ = w.Write(body)
		})
	}
	return nil
}

// publicURL is the address of the API without its path, for the description.
func publicURL(u *url.URL) string {
	if u == nil {
		return "/"
	}
	return strings.TrimRight(u.String(), "/")
}
