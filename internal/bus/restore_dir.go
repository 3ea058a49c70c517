package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// storeFolder is where the embedded server keeps streams, in the directory of the bus.
const storeFolder = "jetstream"

// unfinishedFolder begins the names of the folders in which a store is restored.
const unfinishedFolder = "restore-"

// intoDir restores into a directory. The store is made in a folder of it, and takes
// its place in one step when it is whole and on the disk.
func (r *restore) intoDir(ctx context.Context, cfg Config, log *slog.Logger) (err error) {
	dir := cfg.Embedded.Dir
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	there, err := hasStore(dir)
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("%w: in %s; move that folder away, or give another one", ErrNotEmpty, filepath.Join(dir, storeFolder))
	}
	// Nobody else has the lock, so what is there is left over.
	if err := removeUnfinished(dir); err != nil {
		return err
	}
	// A folder beside it may be of another file system.
	made, err := os.MkdirTemp(dir, unfinishedFolder)
	if err != nil {
		return fmt.Errorf("make a folder to restore in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	if err := r.fillDir(ctx, cfg, made, log); err != nil {
		return err
	}
	store := filepath.Join(dir, storeFolder)
	// There may be folders without a file, and nothing can be renamed over them.
	if err := os.RemoveAll(store); err != nil {
		return fmt.Errorf("remove an empty store: %w", err)
	}
	if err := os.Rename(filepath.Join(made, storeFolder), store); err != nil {
		return fmt.Errorf("put the restored store in its place: %w", err)
	}
	return syncPath(dir)
}

// fillDir makes a store in a folder, and forces it to the disk.
func (r *restore) fillDir(ctx context.Context, cfg Config, dir string, log *slog.Logger) (err error) {
	// Nothing of it counts before all of it does.
	cfg.Embedded = Embedded{Dir: dir, SyncInterval: time.Hour}
	err = r.open(ctx, cfg, log)
	if err == nil {
		err = r.fill(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := errors.Join(err, r.close(end)); err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(dir, storeFolder), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}

// hasStore reports whether a directory has the file of any stream.
func hasStore(dir string) (bool, error) {
	found := false
	err := filepath.WalkDir(filepath.Join(dir, storeFolder), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return nil
		}
		found = true
		return fs.SkipAll
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for a store in %s: %w", dir, err)
	}
	return found, nil
}

// removeUnfinished removes what restores left that broke off.
func removeUnfinished(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for what a restore left: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unfinishedFolder) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove what a restore left: %w", err)
		}
	}
	return nil
}

// syncPath forces a file or a folder to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("force the restored store to the disk: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("force the restored store to the disk: %w", err)
	}
	return nil
}
