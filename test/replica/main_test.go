//go:build e2e

package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"signalbox/test/realserver"
	"signalbox/test/realserver/bot"
)

var (
	// program is the built signalbox. It is built as for people, without the race detector, because these tests
	// measure how long things take.
	program string
	cluster *realserver.Kube
	// member is how signalbox reaches the cluster.
	member realserver.Access
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "signalbox-replica-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	stop, err := prepare(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	stop()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "data and logs of the cluster are in %s\n", dir)
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// prepare builds signalbox and starts a cluster that has the kinds of Flux, and no Flux: the tests say how
// its objects are.
func prepare(ctx context.Context, dir string) (stop func(), err error) {
	if program, err = bot.Build(ctx, dir, "-tags=goolm"); err != nil {
		return nil, err
	}
	if cluster, err = realserver.StartKube(ctx, realserver.Options{Dir: filepath.Join(dir, "kube")}); err != nil {
		return nil, err
	}
	err = errors.Join(realserver.InstallFluxCRDs(ctx, cluster, realserver.Builder{}), cluster.CreateNamespace(ctx, realserver.FluxNamespace))
	if err == nil {
		member, err = bot.Account(ctx, cluster, realserver.FluxNamespace)
	}
	if err != nil {
		cluster.Stop()
		return nil, err
	}
	return cluster.Stop, nil
}
