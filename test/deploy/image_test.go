//go:build e2e

package deploy

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// image is what the last stage of the Containerfile makes.
type image struct {
	// copies are the files by where they are, and what they are a copy of in the stage before.
	copies     map[string]string
	env        []string
	user       int
	entrypoint []string
	command    []string
}

// readImage reads the Containerfile, of which it knows what is used there.
func readImage(t *testing.T) image {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	out := image{copies: map[string]string{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		word, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if err := out.take(word, rest); err != nil {
			t.Fatalf("Containerfile: %s: %v", lines.Text(), err)
		}
	}
	return out
}

// take takes over one instruction; FROM begins anew.
func (i *image) take(word, rest string) (err error) {
	switch word {
	case "", "#", "ARG", "WORKDIR", "RUN", "EXPOSE":
	case "FROM":
		*i = image{copies: map[string]string{}}
	case "COPY":
		parts := strings.Fields(rest)
		if rest == ". ." {
			return nil
		}
		if len(parts) != 3 || parts[0] != "--from=build" {
			return errors.New("is not a copy of one file of the build")
		}
		i.copies[parts[2]] = parts[1]
	case "ENV":
		i.env = append(i.env, rest)
	case "USER":
		user, group, _ := strings.Cut(rest, ":")
		if user != group {
			return errors.New("user and group differ")
		}
		i.user, err = strconv.Atoi(user)
	case "ENTRYPOINT":
		err = json.Unmarshal([]byte(rest), &i.entrypoint)
	case "CMD":
		err = json.Unmarshal([]byte(rest), &i.command)
	default:
		if !strings.HasPrefix(word, "#") {
			return errors.New("is not known here")
		}
	}
	return err
}

// unpack writes the files of the image into a folder.
func (i image) unpack(t *testing.T, into string) {
	t.Helper()
	for to, from := range i.copies {
		source := from
		if from == "/src/bin/bot" {
			source = program
		}
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(into, to)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if path.Base(to) == "bot" {
			mode = 0o755
		}
		if err := os.WriteFile(target, content, mode); err != nil {
			t.Fatal(err)
		}
	}
}
