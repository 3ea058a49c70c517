# Everything works on a machine with Go, and with Node for Renovate and the pages
# of Gitea; what else is needed is found out, and installed where it can be, by
# tools/setup.
.POSIX:

VERSION = $$(git describe --tags --always --dirty 2>/dev/null || echo unknown)
BOT = bin/bot
FUZZTIME = 10s
CHAOSTIME = 10m
BENCH = .
E2E = ./test/... ./internal/gitea/... ./internal/kube/... ./internal/matrix/...
# What only computes, on one goroutine, is tested without the race detector.
PURE = internal/chart internal/digest internal/expression internal/render internal/renovate internal/web/fluxgraph internal/window
# Encryption in Matrix needs its library; a plain "go build" leaves it out.
TAGS = goolm

# The same source gives the same program, wherever it is built: no paths, no state of the
# repository but the version, no build id.
FLAGS = -tags $(TAGS) -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$(VERSION)"
PLATFORMS = linux/amd64 linux/arm64

.PHONY: help build dist reproduce demo sandbox test e2e lint fmt bench bench-servers chaos fuzz vuln generate servers setup clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

build: ## Build bin/bot, one static program
	CGO_ENABLED=0 go build $(FLAGS) -o $(BOT) ./cmd/bot

dist: ## Build what is released into dist: a program for each platform, what is in it (CycloneDX), and checksums
	@rm -rf dist && mkdir dist
	@for platform in $(PLATFORMS); do \
		out=dist/signalbox-$$(echo $$platform | tr / -) && echo "building $$out" && \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build $(FLAGS) -o $$out ./cmd/bot && \
		tools/tool cyclonedx-gomod bin -json -std -noserial -notimestamp -version "$(VERSION)" -output $$out.cdx.json $$out || exit 1; \
	done
	@cd dist && sha256sum signalbox-* >SHA256SUMS && cat SHA256SUMS

reproduce: ## Build twice in different folders, without any cache, and compare
	tools/reproduce

demo: build ## Play the story in this terminal; needs no account and no network
	bin/bot demo

sandbox: setup ## Start Gitea, a cluster, Flux and signalbox, with a repository to try it on
	go run ./test/sandbox

# Vetting as a part of the tests compiles everything once instead of twice.
test: setup ## Vet and test everything but the end-to-end tests, with the race detector
	go run ./tools/gotest -alone "$(PURE)" -tags $(TAGS) -race -vet=all ./...

# One package at a time: the servers of one are enough for two processors.
e2e: servers ## Run the end-to-end tests on the real servers
	go run ./tools/gotest -tags "e2e $(TAGS)" -vet=all -p 1 -count=1 -timeout 50m $(E2E)

lint: setup ## Check what golangci-lint can check
	tools/golangci-lint/run run

fmt: setup ## Format the code
	tools/golangci-lint/run fmt

bench: setup ## Measure, and write docs/performance.md; BENCH=Evaluate selects, and writes nothing
	go run ./tools/bench $$(test '$(BENCH)' != . || echo -write docs/performance.md) -tags $(TAGS) -bench '$(BENCH)' -benchmem -p 1 -timeout 60m ./...

bench-servers: servers ## Measure between the real servers
	go test -tags "e2e $(TAGS)" -run '^$$' -bench '$(BENCH)' -benchtime 50x ./test/bench

chaos: servers ## Run storms over the real servers for CHAOSTIME=10m; CHAOS_SEED repeats one
	CHAOS_SEED=$${CHAOS_SEED:-random} CHAOS_TIME=$(CHAOSTIME) go test -tags "e2e $(TAGS)" -vet=off -count=1 -v -timeout 0 -run TestChaos ./test/chaos

fuzz: ## Run every fuzz target for FUZZTIME=10s
	tools/fuzz $(FUZZTIME)

vuln: setup ## Look for known vulnerabilities; needs the internet, or a copy in SIGNALBOX_VULNDB
	tools/govulncheck/run

generate: ## Write the JSON schemas and the roles of deploy from the Go code
	go test ./internal/config -run TestSchemas -update
	go test ./deploy -run TestRoles -update

servers: setup ## Build the servers and tools of the end-to-end tests into the user's cache, and install Chromium
	@tools/setup browser
	go run ./test/realserver/cmd/build
	@tools/tool promtool --version >/dev/null

setup: ## Install a C compiler, git and the like where they are missing
	@tools/setup

clean: ## Remove what was built here; the caches stay
	rm -rf bin dist
