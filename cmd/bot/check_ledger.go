package main

import (
	"context"
	"fmt"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

// ledgerTime bounds the reading of the ledger for a check.
const ledgerTime = 10 * time.Second

// decisions returns the ledger, if it can be read without disturbing anybody, and
// what is to be said of that: the folder of an embedded bus is left alone where no
// signalbox runs that could be asked.
func (k checker) decisions(ctx context.Context, ref pull.Ref) (decision.Ledger, string) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTime)
	defer cancel()
	var all decision.Ledger
	var err error
	switch dir := k.bus.Embedded.Dir; {
	case dir != "":
		if all, err = newAdminClient(dir).decisions(ctx); err != nil && noSocket(err) {
			return nil, unread("no signalbox answers on " + adminPath(dir) + ", which only the user that it runs as may use")
		}
	case len(k.bus.External.URLs) > 0:
		all, err = readLedger(ctx, k.bus)
	default:
		return nil, unread("the configuration names no bus")
	}
	if err != nil {
		return nil, unread(err.Error())
	}
	return all, fmt.Sprintf("The ledger was read: it holds %s of this pull request, and %s in force in its repository.",
		counted(len(all.Of(ref)), "entry", "entries"), counted(len(all.OfRepo(ref.RepoID).Freezes(time.Now())), "freeze", "freezes"))
}

func unread(why string) string {
	return "The ledger was not read, so approvals by command, overrides, holds and freezes do not count here: " + why + "."
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
