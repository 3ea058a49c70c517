package seed

import (
	"context"
	"encoding/base64"
	"fmt"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
)

// Outdated is a private repository of a person in which one dependency is outdated, for Renovate to find.
type Outdated struct {
	// Name is written owner/name.
	Name string
	// Owner owns the repository; Bot is the account that Renovate works as, with the right to write.
	Owner, Bot realserver.User
	// Token is one of the bot with the scopes that Renovate needs and no more.
	Token string
}

// Packages returns the versions of the dependency, for [realserver.StartRegistry]. The first is in use.
func Packages() map[string][]string { return map[string][]string{"left-pad": {"1.1.0", "1.3.0"}} }

// UpdateBranch is the branch that Renovate makes for the update.
const UpdateBranch = "renovate/left-pad-1.x"

// PlantOutdated creates such a repository. The name is without its owner.
func PlantOutdated(ctx context.Context, g *realserver.Gitea, owner, bot realserver.User, name string) (Outdated, error) {
	o := Outdated{Name: owner.Name + "/" + name, Owner: owner, Bot: bot}
	fail := func(err error) (Outdated, error) { return Outdated{}, fmt.Errorf("plant %s: %w", o.Name, err) }
	api, err := g.API(ctx, owner.Token)
	if err != nil {
		return fail(err)
	}
	if _, _, err := api.CreateRepo(sdk.CreateRepoOption{Name: name, Private: true, AutoInit: true, DefaultBranch: "main"}); err != nil {
		return fail(err)
	}
	write := sdk.AccessModeWrite
	if _, err := api.AddCollaborator(owner.Name, name, bot.Name, sdk.AddCollaboratorOption{Permission: &write}); err != nil {
		return fail(err)
	}
	for path, content := range map[string]string{
		"package.json":  "{\n  \"dependencies\": { \"left-pad\": \"1.1.0\" }\n}\n",
		"renovate.json": "{\n  \"extends\": [\"config:recommended\"]\n}\n",
	} {
		if _, _, err := api.CreateFile(owner.Name, name, path, sdk.CreateFileOptions{
			FileOptions: sdk.FileOptions{Message: "Add " + path, BranchName: "main"},
			Content:     base64.StdEncoding.EncodeToString([]byte(content)),
		}); err != nil {
			return fail(err)
		}
	}
	o.Token, err = g.CreateToken(ctx, bot, owner.Name+"-"+name, "write:repository", "write:issue", "read:user", "read:organization")
	if err != nil {
		return fail(err)
	}
	return o, nil
}
