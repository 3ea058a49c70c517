//go:build e2e

package actions_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"signalbox/test/realserver"
)

// gitea is the server of all tests here.
var gitea *realserver.Gitea

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "signalbox-actions-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	gitea, err = realserver.StartGitea(ctx, options(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer gitea.Stop()
	code := m.Run()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "data and logs of Gitea are in %s\n", dir)
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// options are those of a Gitea that starts what is scheduled only when a test asks for it.
func options(dir string) realserver.GiteaOptions {
	return realserver.GiteaOptions{
		Options:  realserver.Options{Dir: dir},
		Settings: map[string]string{"cron.start_schedule_tasks.SCHEDULE": "@every 24h"},
	}
}
