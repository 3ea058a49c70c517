package config

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"signalbox/internal/yamlfile"
)

// Purpose is what a configuration is for: a check in a pipeline needs no bus.
type Purpose int

// What a configuration can be for.
const (
	// Run needs everything.
	Run Purpose = iota
	// Check evaluates pull requests once: it needs no repositories, no webhook
	// and no bus, and no secret but the token.
	Check
	// Validate looks at the text alone: it needs no secrets and opens no file
	// that the configuration names.
	Validate
	// Agent watches one cluster for signalbox elsewhere: it needs the cluster and an
	// external bus, and looks at nothing else.
	Agent
	// ValidateAgent looks at the text alone, as Validate does, of a configuration for an
	// agent.
	ValidateAgent
)

// agent reports whether the configuration is for an agent.
func (p Purpose) agent() bool { return p == Agent || p == ValidateAgent }

// Lookup finds a variable of the environment, as [os.LookupEnv] does.
type Lookup func(name string) (value string, ok bool)

// Source says where a configuration comes from.
type Source struct {
	// Path is the path of the file; "" uses the environment alone.
	Path string
	// Env is the environment; nil is an empty one.
	Env Lookup
	// Purpose decides what must be given.
	Purpose Purpose
}

// maxFile bounds what is read of a configuration file, in bytes: one more than
// package yamlfile takes, so that it can say what the limit is.
const maxFile = 1<<20 + 1

// Load reads and validates a configuration. The configuration is nil if there
// is any problem, and then problems holds all of them.
func Load(src Source) (c *Config, warnings, problems yamlfile.Problems) {
	l := loader{
		env: src.Env, purpose: src.Purpose,
		dir: filepath.Dir(src.Path), hasFile: src.Path != "",
		overridden: map[string]string{},
	}
	if l.env == nil {
		l.env = func(string) (string, bool) { return "", false }
	}
	var f File
	if l.read(src.Path, &f) {
		l.override(&f)
		c = l.config(&f)
	} else {
		// What stands in the file is not known, so only the secrets can be
		// judged beside it.
		if !l.purpose.agent() {
			l.secrets(&Gitea{})
		}
	}
	if len(l.problems) > 0 {
		c = nil
	}
	return c, forPeople(l.warnings), forPeople(l.problems)
}

// read decodes the file, if there is one, and reports whether it fits.
func (l *loader) read(path string, f *File) bool {
	if !l.hasFile {
		l.doc, _ = yamlfile.Decode(environment, nil, f)
		return true
	}
	data, err := readLimited(path, maxFile)
	if err != nil {
		l.problems = yamlfile.Problems{{File: path, Message: cannotRead(err)}}
		return false
	}
	l.doc, l.problems = yamlfile.Decode(path, data, f)
	return len(l.problems) == 0
}

// environment stands for the file in problems of the environment.
const environment = "environment"

// loader collects what is wrong on the way from a file to a configuration.
type loader struct {
	env     Lookup
	purpose Purpose
	// dir is the folder of the file; relative paths in it start there.
	dir string
	// hasFile tells a file from the environment alone.
	hasFile bool
	doc     *yamlfile.Document
	// overridden maps the path of a field to the variable that it came from.
	overridden map[string]string

	problems, warnings yamlfile.Problems
}

func (l *loader) problem(at yamlfile.Path, message, hint string) {
	l.problems = append(l.problems, l.at(at, message, hint))
}

func (l *loader) warn(at yamlfile.Path, message, hint string) {
	l.warnings = append(l.warnings, l.at(at, message, hint))
}

// missing reports a required field, which a variable can give too.
func (l *loader) missing(at yamlfile.Path, hint, variable string) {
	if !l.hasFile {
		l.envProblem(variable, "is not set", hint)
		return
	}
	l.problem(at, "is missing", hint+"; or set "+variable)
}

// at places a problem where the value came from: the file or the environment.
func (l *loader) at(at yamlfile.Path, message, hint string) yamlfile.Problem {
	if name := l.variable(at); name != "" {
		return yamlfile.Problem{File: environment, Path: name, Message: message, Hint: hint}
	}
	return l.doc.Problem(at, message, hint)
}

// variable returns the variable that a field, or one above it, came from.
func (l *loader) variable(at yamlfile.Path) string {
	for i := len(at); i > 0; i-- {
		if name, ok := l.overridden[at[:i].String()]; ok {
			return name
		}
	}
	return ""
}

// path returns a path as it is used, or "" if it is not given or not usable.
func (l *loader) path(at yamlfile.Path, path string) string {
	switch {
	case path == "":
		return ""
	case strings.HasPrefix(path, "~"):
		l.problem(at, "starts with ~, which only a shell knows", "write the whole path")
		return ""
	case filepath.IsAbs(path) || l.variable(at) != "":
		return path
	default:
		return filepath.Join(l.dir, path)
	}
}

// file returns the path of a file. Where the purpose needs the file, it must be
// readable. The path is not shown: somebody may have put a key there instead.
func (l *loader) file(at yamlfile.Path, path string) string {
	path = l.path(at, path)
	needed := l.purpose == Run || l.purpose == Agent || l.purpose == Check && at[0] == "clusters"
	if path == "" || !needed {
		return path
	}
	if err := readable(path); err != nil {
		hint := ""
		if l.variable(at) == "" {
			hint = "a relative path starts at the folder of this file"
		}
		l.problem(at, "the file it names "+cannotRead(err), hint)
	}
	return path
}

// readable opens and closes a regular file. Anything else, such as a pipe, could
// be opened only once.
func readable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// readLimited reads the beginning of a file.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(f, limit)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// cannotRead says why a file cannot be read, without its path.
func cannotRead(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return "cannot be read: " + err.Error()
}
