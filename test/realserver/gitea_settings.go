package realserver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// settings returns the lines of app.ini for a Gitea that works in a folder under an account of the system.
func (g *Gitea) settings(work, static, account string) map[string]string {
	return map[string]string{
		".APP_NAME":                              "Gitea for signalbox",
		".RUN_MODE":                              "prod",
		".RUN_USER":                              account,
		"server.HTTP_ADDR":                       "127.0.0.1",
		"server.HTTP_PORT":                       strconv.Itoa(g.ports[0].number),
		"server.ROOT_URL":                        g.url,
		"server.LOCAL_ROOT_URL":                  "http://" + g.ports[0].addr() + "/",
		"server.STATIC_ROOT_PATH":                static,
		"server.DISABLE_SSH":                     "true",
		"server.OFFLINE_MODE":                    "true",
		"server.GRACEFUL_HAMMER_TIME":            "3s",
		"database.DB_TYPE":                       "sqlite3",
		"database.PATH":                          filepath.Join(work, "gitea.db"),
		"repository.ROOT":                        filepath.Join(work, "repositories"),
		"security.INSTALL_LOCK":                  "true",
		"security.SECRET_KEY":                    randomSecret(),
		"service.DISABLE_REGISTRATION":           "true",
		"session.PROVIDER":                       "memory",
		"indexer.ISSUE_INDEXER_TYPE":             "db",
		"log.MODE":                               "console",
		"log.LEVEL":                              "Info",
		"webhook.ALLOWED_HOST_LIST":              "loopback",
		"actions.ENABLED":                        "true",
		"cron.update_checker.ENABLED":            "false",
		"repository.DEFAULT_BRANCH":              "main",
		"repository.signing.DEFAULT_TRUST_MODEL": "collaborator",
	}
}

// tokenIn finds the token in what "gitea admin user create" prints.
func tokenIn(out string) (string, error) {
	for line := range strings.Lines(out) {
		if _, token, ok := strings.Cut(line, "Access token was successfully created... "); ok {
			return strings.TrimSpace(token), nil
		}
	}
	return "", fmt.Errorf("gitea did not print a token, but:\n%s", lastLines(out, 10))
}

// renderINI writes settings whose keys are "section.NAME". Later settings overwrite earlier ones.
func renderINI(layers ...map[string]string) ([]byte, error) {
	settings := map[string]string{}
	for _, layer := range layers {
		maps.Copy(settings, layer)
	}
	sections := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		dot := strings.LastIndex(key, ".")
		if dot < 0 {
			return nil, fmt.Errorf("setting %q has no section: write section.NAME", key)
		}
		if strings.ContainsAny(key+settings[key], "\r\n") {
			return nil, fmt.Errorf("setting %q contains a line break", key)
		}
		sections[key[:dot]] = append(sections[key[:dot]], key[dot+1:]+" = "+settings[key])
	}
	var ini strings.Builder
	for _, section := range slices.Sorted(maps.Keys(sections)) { // The lines before any section come first.
		if section != "" {
			fmt.Fprintf(&ini, "\n[%s]\n", section)
		}
		ini.WriteString(strings.Join(sections[section], "\n") + "\n")
	}
	return []byte(ini.String()), nil
}
