package config

import (
	"regexp"
	"strings"

	"signalbox/internal/yamlfile"
)

// What the messages about a file that does not fit can repeat of it: a URL with
// a user, and a text where something else belongs.
var (
	userInfo = regexp.MustCompile(`://\S*@`)
	found    = regexp.MustCompile(`(?s), found ".*"$`)
)

// forPeople takes out of the problems what nobody must see, and puts them in the
// order of the file, those of the environment last.
func forPeople(ps yamlfile.Problems) yamlfile.Problems {
	var inFile, inEnv yamlfile.Problems
	for _, p := range ps {
		if p.File == environment {
			inEnv = append(inEnv, p)
			continue
		}
		p = misplacedSecret(p)
		p.Message = found.ReplaceAllString(p.Message, ", found text")
		p.Message = userInfo.ReplaceAllString(p.Message, "://[redacted]@")
		inFile = append(inFile, p)
	}
	inFile.Sort()
	return append(inFile, inEnv...)
}

// misplacedSecret says of a field that looks like a secret where the secret
// belongs. No field of [File] has such a name, so what is wrong with one is
// that it is there; what it holds must not be shown.
func misplacedSecret(p yamlfile.Problem) yamlfile.Problem {
	field := strings.ToLower(p.Path[strings.LastIndex(p.Path, ".")+1:])
	path := strings.ToLower(p.Path)
	isSecret := false
	for _, word := range []string{"token", "secret", "passw", "apikey", "api_key"} {
		isSecret = isSecret || strings.Contains(field, word)
	}
	switch {
	case !isSecret || strings.HasPrefix(path, "policy."):
		return p
	case strings.HasPrefix(path, "bus."):
		p.Hint = "write it into a file and give the path as bus.nats.credentials or bus.nats.nkey"
	case strings.Contains(path, "previous") || strings.Contains(path, "old"):
		p.Hint = inEnvironment(EnvWebhookSecretPrevious)
	case strings.Contains(path, "webhook") || strings.Contains(field, "secret"):
		p.Hint = inEnvironment(EnvWebhookSecret)
	default:
		p.Hint = inEnvironment(EnvGiteaToken)
	}
	p.Message = "a secret does not belong into this file"
	return p
}

func inEnvironment(name string) string {
	return "give it in the environment as " + name + ", or the path of a file that holds it as " + name + fileSuffix
}
