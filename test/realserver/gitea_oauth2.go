package realserver

import (
	"context"
	"fmt"

	sdk "code.gitea.io/sdk/gitea"
)

// OAuth2Application is what lets people sign in to a program with their account of a Gitea.
type OAuth2Application struct {
	ClientID     string
	ClientSecret string
}

// CreateOAuth2Application registers a confidential client that belongs to an account, with the addresses
// that people may be sent back to, such as "http://127.0.0.1:8080/signin/callback".
func (g *Gitea) CreateOAuth2Application(ctx context.Context, owner User, name string, redirects ...string) (OAuth2Application, error) {
	c, err := g.API(ctx, owner.Token)
	if err != nil {
		return OAuth2Application{}, err
	}
	made, _, err := c.CreateOauth2(sdk.CreateOauth2Option{Name: name, ConfidentialClient: true, RedirectURIs: redirects})
	if err != nil {
		return OAuth2Application{}, fmt.Errorf("create the OAuth2 application %s of %s: %w", name, owner.Name, err)
	}
	return OAuth2Application{ClientID: made.ClientID, ClientSecret: made.ClientSecret}, nil
}
