package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"signalbox/internal/pull"
)

// RepositoryReader finds repositories.
type RepositoryReader interface {
	Repo(ctx context.Context, owner, name string) (repo pull.Repo, defaultBranch string, err error)
	RepoByID(ctx context.Context, id int64) (repo pull.Repo, defaultBranch string, err error)
}

// RepositorySetting is what the configuration says of one repository.
type RepositorySetting struct {
	Owner, Name string
	// Observe keeps signalbox from posting anything.
	Observe bool
}

// Repositories are the repositories that signalbox works on. A repository is
// configured by name and known by id from then on, so that a renamed one stays
// itself and another that takes its name is not confused with it.
type Repositories struct {
	reader   RepositoryReader
	settings []RepositorySetting

	mu    sync.RWMutex
	known map[int64]knownRepo
}

type knownRepo struct {
	repo    pull.Repo
	main    string
	setting int
}

// NewRepositories makes the set; no repository is resolved yet.
func NewRepositories(reader RepositoryReader, settings []RepositorySetting) *Repositories {
	return &Repositories{reader: reader, settings: settings, known: map[int64]knownRepo{}}
}

// Refresh reads the names and ids of all repositories. It returns those that
// are known now, and an error for those that are not.
func (r *Repositories) Refresh(ctx context.Context) ([]pull.Repo, error) {
	var repos []pull.Repo
	var errs []error
	for i := range r.settings {
		repo, err := r.refresh(ctx, i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		repos = append(repos, repo)
	}
	return repos, errors.Join(errs...)
}

func (r *Repositories) refresh(ctx context.Context, i int) (pull.Repo, error) {
	s := r.settings[i]
	var repo pull.Repo
	var branch string
	var err error
	known, wasKnown := r.bySetting(i)
	if wasKnown {
		repo, branch, err = r.reader.RepoByID(ctx, known.ID)
	}
	if !wasKnown || errors.Is(err, pull.ErrNotFound) {
		// Not seen yet, or deleted: another may have the name now.
		repo, branch, err = r.reader.Repo(ctx, s.Owner, s.Name)
	}
	if err != nil {
		return pull.Repo{}, fmt.Errorf("repository %s/%s of the configuration: %w", s.Owner, s.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if wasKnown && known.ID != repo.ID {
		delete(r.known, known.ID)
	}
	r.known[repo.ID] = knownRepo{repo, branch, i}
	return repo, nil
}

func (r *Repositories) bySetting(i int) (pull.Repo, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, k := range r.known {
		if k.setting == i {
			return k.repo, true
		}
	}
	return pull.Repo{}, false
}

// Setting is a repository as it is configured.
type Setting struct {
	// Repo is as it is called now; its ID is zero until it was read.
	pull.Repo
	// Main is its default branch, and Name what it is called in the configuration.
	Main, Name string
	Observe    bool
}

// Settings returns the repositories of the configuration, in its order.
func (r *Repositories) Settings() []Setting {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]Setting, len(r.settings))
	for i, s := range r.settings {
		out[i] = Setting{Repo: pull.Repo{Owner: s.Owner, Name: s.Name}, Name: s.Owner + "/" + s.Name, Observe: s.Observe}
	}
	for _, k := range r.known {
		out[k.setting].Repo, out[k.setting].Main = k.repo, k.main
	}
	return out
}

// Complete reads the repositories that are not known yet.
func (r *Repositories) Complete(ctx context.Context) error {
	if r.complete() {
		return nil
	}
	_, err := r.Refresh(ctx)
	return err
}

// Observed reports whether a repository that is known is only observed.
func (r *Repositories) Observed(id int64) bool {
	_, setting, ok := r.lookup(id)
	return ok && setting.Observe
}

// Main returns the default branch of a repository that is known, or "".
func (r *Repositories) Main(id int64) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.known[id].main
}

// Find returns a repository by id, resolving the configured names first if it
// is not known. ok is false for a repository that is not configured.
func (r *Repositories) Find(ctx context.Context, id int64) (repo pull.Repo, setting RepositorySetting, ok bool, err error) {
	if repo, setting, ok = r.lookup(id); ok {
		return repo, setting, true, nil
	}
	if r.complete() {
		return pull.Repo{}, RepositorySetting{}, false, nil
	}
	_, err = r.Refresh(ctx)
	if repo, setting, ok = r.lookup(id); ok {
		return repo, setting, true, nil
	}
	return pull.Repo{}, RepositorySetting{}, false, err
}

func (r *Repositories) lookup(id int64) (pull.Repo, RepositorySetting, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k, ok := r.known[id]
	if !ok {
		return pull.Repo{}, RepositorySetting{}, false
	}
	return k.repo, r.settings[k.setting], true
}

func (r *Repositories) complete() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.known) == len(r.settings)
}

// Known returns the repositories that are known now, sorted by name.
func (r *Repositories) Known() []pull.Repo {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var repos []pull.Repo
	for _, k := range r.known {
		repos = append(repos, k.repo)
	}
	slices.SortFunc(repos, func(a, b pull.Repo) int { return strings.Compare(a.String(), b.String()) })
	return repos
}

// all returns the repositories that are known now, and without an id those that
// are configured and could not be read yet.
func (r *Repositories) all() []pull.Repo {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var repos []pull.Repo
	read := map[int]bool{}
	for _, k := range r.known {
		repos = append(repos, k.repo)
		read[k.setting] = true
	}
	for i, s := range r.settings {
		unread := pull.Repo{Owner: s.Owner, Name: s.Name}
		same := func(o pull.Repo) bool { return strings.EqualFold(o.String(), unread.String()) }
		if !read[i] && !slices.ContainsFunc(repos, same) {
			repos = append(repos, unread)
		}
	}
	return repos
}

// Named reports whether signalbox looks after a repository of a name, as it is
// configured or called now.
func (r *Repositories) Named(owner, name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	same := func(o, n string) bool { return strings.EqualFold(o, owner) && strings.EqualFold(n, name) }
	for _, k := range r.known {
		if same(k.repo.Owner, k.repo.Name) {
			return true
		}
	}
	return slices.ContainsFunc(r.settings, func(s RepositorySetting) bool { return same(s.Owner, s.Name) })
}

// Configured reports whether an event of a repository is wanted: by id if it is
// known, else by its name.
func (r *Repositories) Configured(id int64, fullName string) bool {
	if _, _, ok := r.lookup(id); ok {
		return true
	}
	return slices.ContainsFunc(r.settings, func(s RepositorySetting) bool {
		return strings.EqualFold(s.Owner+"/"+s.Name, fullName)
	})
}
