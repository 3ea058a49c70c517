package conformance_test

import (
	"testing"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/gitea/giteatest/conformance"
)

func TestStandIn(t *testing.T) {
	server, err := giteatest.New(giteatest.Options{SubPath: "/git"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conformance.Run(t, server)
}
