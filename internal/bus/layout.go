package bus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// ownStreams returns the streams that signalbox made, by name.
func ownStreams(ctx context.Context, js jetstream.JetStream) ([]*jetstream.StreamInfo, error) {
	var own []*jetstream.StreamInfo
	list := js.ListStreams(ctx)
	for s := range list.Info() {
		if _, ok := s.Config.Metadata[metaLayout]; ok {
			own = append(own, s)
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	slices.SortFunc(own, func(a, b *jetstream.StreamInfo) int { return strings.Compare(a.Config.Name, b.Config.Name) })
	return own, nil
}

// checkStore refuses a store of which any stream, also one that this signalbox
// does not know, is of a newer layout, or is being restored. It comes before
// anything is made or changed, so that a store is refused as it is.
func (b *Bus) checkStore(ctx context.Context) error {
	_, err := b.storeLayout(ctx)
	return err
}

// storeLayout returns the layout of the store: the newest of its streams, or 0
// where there are none. The error is that of a store that is not to be used.
func (b *Bus) storeLayout(ctx context.Context) (int, error) {
	own, err := ownStreams(ctx, b.js)
	if err != nil {
		return 0, err
	}
	layout := 0
	for _, s := range own {
		if err := newerLayout(s.Config); err != nil {
			if b.cfg.Version != "" {
				err = fmt.Errorf("this is signalbox %s: %w", b.cfg.Version, err)
			}
			return 0, err
		}
		if since, restoring := s.Config.Metadata[metaRestoring]; restoring {
			return 0, fmt.Errorf("a restore into this NATS account was begun at %s and has not ended (stream %s); wait for it, or if it broke off run bot restore again, which begins anew",
				since, s.Config.Name)
		}
		have, _ := strconv.Atoi(s.Config.Metadata[metaLayout]) // as newerLayout has checked
		layout = max(layout, have)
	}
	return layout, nil
}

// newerLayout refuses a stream whose layout only a newer signalbox knows.
func newerLayout(have jetstream.StreamConfig) error {
	layout := have.Metadata[metaLayout]
	if v, err := strconv.Atoi(layout); err == nil && v <= LayoutVersion {
		return nil
	}
	by := cmp.Or(have.Metadata[metaVersion], "a newer version")
	return fmt.Errorf("the store was used by signalbox %s and has layout %q (stream %s), and this one knows layouts up to %d; "+
		"nothing was changed: run %s or newer, or restore a backup that was made before the upgrade into an empty store",
		by, layout, have.Name, LayoutVersion, by)
}
