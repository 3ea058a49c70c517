// Command build puts the servers that the end-to-end tests run into the cache.
//
// Usage: go run ./test/realserver/cmd/build [NAME...]
//
// Without names it builds all of them. It prints the folder of each. The name gitea-pages, which is never
// meant without being named, stands for the scripts and styles of Gitea's pages.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"signalbox/test/realserver"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	built, err := realserver.Build(ctx, os.Args[1:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, b := range built {
		fmt.Println(b.Dir)
	}
	return 0
}
