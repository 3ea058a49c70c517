package renovate

import (
	"regexp"
	"strings"
)

// Messages of Renovate that tell something. A message is compared as a whole
// wherever its wording is fixed, so that what it quotes cannot be taken for it.
const (
	wouldPrefix        = "DRY-RUN: Would "
	repositoryStarted  = "Repository started"
	repositoryFinished = "Repository finished"
	extractionComplete = "Dependency extraction complete"
	// extracted is written by a run with dryRun=extract, and by no other.
	extracted       = "Extracted dependencies"
	parsingConfigs  = "Parsing configs"
	combinedConfig  = "Combined config"
	cliConfig       = "CLI config"
	envConfig       = "Env config"
	branchesInfo    = "branches info extended"
	branchAutomerge = "Branch automerged"
	wouldAutomerge  = wouldPrefix + "automerge branch "
	ranAtLevel      = "Renovate was run at log level "
	exitingNonZero  = "Renovate is exiting with a non-zero code"
)

// repositoryResult is a line at the level debug, with the outcome.
var repositoryResult = regexp.MustCompile(`^Repository result: ([\w-]+), status: `)

// anyKind are lines that every kind of dry run may write: onboarding comes before
// the point where the kinds differ, and errors are handled alike.
var anyKind = []string{
	"commit files to onboarding branch",
	"rebase files in onboarding branch",
	"ensure configuration error issue",
	"update PR",
	"autoclose PR",
	"delete orphan branch ",
}

// wouldMode says what a line of a dry run proves, and ModeUnknown for another
// message. It is written at the level info; what is below may begin with the
// name of a file.
func wouldMode(r *record) Mode {
	rest, ok := strings.CutPrefix(r.message, wouldPrefix)
	switch {
	case r.message == extracted && r.level == levelInfo:
		return ModeExtract
	case !ok || r.level != levelInfo:
		return ModeUnknown
	}
	for _, prefix := range anyKind {
		if strings.HasPrefix(rest, prefix) {
			return ModeDryRun
		}
	}
	return ModeFull
}

// writes are messages that only a live run logs: it wrote, or went to write. A
// few are of the level debug.
var writes = map[string]bool{
	"Branch created":                            true,
	"Branch updated":                            true,
	branchAutomerge:                             true,
	"PR created":                                true,
	"PR updated":                                true,
	"PR automerged":                             true,
	"Autoclosing PR":                            true,
	"Deleting orphan branch":                    true,
	"Successfully reopened autoclosed PR":       true,
	"Deleting branch due to server error":       true,
	"Comment added":                             true,
	"Comment updated":                           true,
	"Issue created":                             true,
	"Issue updated":                             true,
	"Onboarding PR created":                     true,
	"Onboarding PR updated":                     true,
	"Migration PR created":                      true,
	"Migration PR updated":                      true,
	"Closing Dependency Dashboard":              true,
	"Merge onboarding branch in default branch": true,
	"Gitea-native automerge: success":           true,
	"Forgejo-native automerge: success":         true,
}

// writePrefixes are the same, with a name or number after them.
var writePrefixes = []string{
	"Created new Issue #",
	"Updating Issue #",
	"Deleted remote branch: ",
	"Automerging #",
	"PR updated...prNo: ",
}

// isWrite says whether only a live run logs the message. before is the message
// of the same repository before it: Renovate says "Branch automerged" in a dry
// run too, right after saying that it would.
func isWrite(message, branch, before string) bool {
	if message == branchAutomerge {
		return branch == "" || before != wouldAutomerge+branch
	}
	if writes[message] {
		return true
	}
	for _, prefix := range writePrefixes {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return false
}

// beginsRun says whether a message comes before all others of a run.
func beginsRun(message string) bool {
	return message == parsingConfigs || strings.HasPrefix(message, "RE2 not usable") ||
		message == "Using RE2 regex engine" || strings.HasPrefix(message, "RE2 regex engine is ignored")
}

// wantsDetails says whether the indented lines below a message are of use.
func wantsDetails(r *record) bool {
	if r.level >= levelWarn {
		return true
	}
	switch r.message {
	case repositoryStarted, extractionComplete, combinedConfig, cliConfig, envConfig, branchesInfo:
		return true
	}
	return strings.HasPrefix(r.message, wouldPrefix) || writes[r.message]
}
