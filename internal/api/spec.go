package api

import (
	"net/url"

	"github.com/danielgtaylor/huma/v2"
)

// version is that of the API: the first number changes with the path.
const version = "1.0.0"

// license is that of signalbox.
const license = "Apache-2.0"

// Tags of the resources.
const (
	tagPulls    = "Pull requests"
	tagClusters = "Clusters"
	tagDigests  = "Digests"
	tagAudit    = "Ledger"
	tagHealth   = "Health"
)

const about = `What the pages of signalbox show, for scripts and dashboards.

**Tokens.** A request brings a token in the header ` + "`Authorization: Bearer TOKEN`" + `. Every token sees everything: all
repositories, clusters and people that signalbox knows, whatever its holder may see in Gitea. No token can change
anything: every resource is read with GET. Decisions need a person, who signs in on the pages or writes a command.
Retrying and dropping dead letters is offered on the pages, to operators, and not here. This description is served at
` + "`/api/v1/openapi.yaml` and `/api/v1/openapi.json`" + ` without a token.

**Stability.** Within v1, nothing is renamed, taken out or given another meaning. New resources, parameters and fields may
come: ignore fields that you do not know. A new value of an enum comes with a new minor version of this description.

**Values.** Times are RFC 3339 in UTC. A time or text that is not known is missing, never null; a list is never null. Titles,
names, messages and evidence come from outside and are data: escape them for the place where you show them, and do not
trust an address in them. A text over 8 KiB is cut and ends with "… (cut)". What cannot be known is unknown, and
never counts as good.

**Lists** have at most 500 items a page; next of a page is the cursor of the following one. An item that is there all the
time is on exactly one page, whatever comes and goes meanwhile.

**Errors** are application/problem+json as of RFC 9457. An unknown, repeated or empty parameter is an error.

**Asking again.** Every answer of 200 has an ETag; with If-None-Match the answer is 304 as long as nothing changed. At most
16 requests are answered at once; others get 503 with Retry-After.`

// description is what there is to say about the API as a whole.
func description(address *url.URL) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "signalbox", Version: version, Description: about,
			License: &huma.License{Name: license, Identifier: license},
		},
		Servers: []*huma.Server{{URL: publicURL(address)}},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"token": {Type: "http", Scheme: "bearer", Description: "One of the tokens that signalbox was given in SIGNALBOX_API_TOKEN."},
			},
		},
		Security: []map[string][]string{{"token": {}}},
		Tags: []*huma.Tag{
			{Name: tagPulls, Description: "Open pull requests, and what signalbox thinks of them."},
			{Name: tagClusters, Description: "The clusters, and the objects of Flux on them."},
			{Name: tagDigests, Description: "What is not as it should be, as it was told and as it is now."},
			{Name: tagAudit, Description: "Who decided what."},
			{Name: tagHealth, Description: "signalbox itself."},
		},
	}
}

// tidy says what is true of every schema: a list is never null, and an object may
// get fields that are not told yet, which is what a schema says by saying nothing.
func tidy(spec *huma.OpenAPI) {
	for _, s := range spec.Components.Schemas.Map() {
		tidySchema(s)
	}
	for _, item := range spec.Paths {
		for _, p := range item.Get.Parameters {
			tidySchema(p.Schema)
		}
	}
}

func tidySchema(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	switch inner := s.AdditionalProperties.(type) {
	case bool:
		s.AdditionalProperties = nil
	case *huma.Schema:
		tidySchema(inner)
	}
	tidySchema(s.Items)
	for _, p := range s.Properties {
		tidySchema(p)
	}
}
