# culm: what can be done here. `make` alone lists it.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

GO ?= go
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# How long each fuzz target runs, how often the crash test kills, how often
# the benchmark measures, how many histories the simulation plays.
FUZZTIME ?= 30s
CRASHES ?= 200
BENCHROUNDS ?= 3
HISTORIES ?= 100000
# The browser that tests the page, and where its driver is kept.
CHROMIUM ?= /usr/bin/chromium
PLAYWRIGHT := 1.65.1
BROWSER_DIR ?= $(or $(TMPDIR),/tmp)/culm-browser-$(PLAYWRIGHT)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## start an engine with its own NATS server, data in ./data
	$(GO) run ./cmd/engine

.PHONY: demo
demo: ## run a loop on a temporary engine, approve a call of it, and audit it
	@$(GO) run ./cmd/culm demo

.PHONY: build
build: ## build the binaries into bin/
	$(GO) build -ldflags '-X culm/internal/version.release=$(VERSION)' -o bin/ ./cmd/...

.PHONY: test
test: ## run all tests
	$(GO) test ./...

.PHONY: race
race: ## run all tests under the race detector
	$(GO) test -race ./...

.PHONY: check
check: fmt tidy vet lint-if-there race ## what must hold before a change is sent

.PHONY: fmt
fmt: ## fail if a file is not formatted
	@files=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi

.PHONY: tidy
tidy: ## fail if go.mod or go.sum is not tidy
	$(GO) mod tidy -diff

.PHONY: vet
vet: ## go vet
	$(GO) vet ./...

.PHONY: lint
lint: ## run golangci-lint, fetched as a Go module
	$(GO) run $(GOLANGCI) run ./...

.PHONY: lint-if-there
lint-if-there:
	@if command -v golangci-lint >/dev/null; then golangci-lint run ./...; \
	else echo "golangci-lint is not installed: left out (make lint fetches it)"; fi

.PHONY: bench
bench: ## measure an engine against raw publishes; the figures go to docs/bench/
	@mkdir -p docs/bench
	$(GO) build -o bin/bench ./internal/bench
	out=docs/bench/$$(date +%Y-%m-%d)-$$(git rev-parse --short HEAD).txt; \
	{ $(GO) version; grep -m1 'model name' /proc/cpuinfo 2>/dev/null || uname -m; bin/bench -rounds $(BENCHROUNDS); } | tee $$out

.PHONY: crash
crash: ## kill an engine CRASHES times under load and check what is left
	CULM_CRASH_ROUNDS=$(CRASHES) $(GO) test -count=1 -timeout 120m -run Crash -v ./internal/blackbox

.PHONY: explore
explore: ## go through every interleaving of a small world, to larger bounds
	CULM_EXPLORE=1 $(GO) test -count=1 -timeout 120m -v ./internal/explore

.PHONY: browser
browser: ## test the page in Chromium (CHROMIUM, /usr/bin/chromium); needs node and npm
	@mkdir -p bin $(BROWSER_DIR)
	[ -d $(BROWSER_DIR)/node_modules/playwright-core ] || npm install --prefix $(BROWSER_DIR) --no-audit --no-fund --silent playwright-core@$(PLAYWRIGHT)
	$(GO) build -o bin/ ./cmd/engine ./cmd/projector
	CULM_ENGINE=$(CURDIR)/bin/engine CULM_PROJECTOR=$(CURDIR)/bin/projector CULM_PLAYWRIGHT=$(BROWSER_DIR) CULM_CHROMIUM=$(CHROMIUM) \
	  node --test --test-concurrency=1 --test-reporter=spec projection/web/browser/*.test.mjs

.PHONY: sim
sim: ## play HISTORIES random histories of runners, people and faults
	CULM_SIM=$(HISTORIES) $(GO) test -count=1 -timeout 240m -v ./internal/sim

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

.PHONY: golden
golden: ## write golden files and generated pages anew; read the diff before committing it
	$(GO) test ./events -update
	$(GO) test ./internal/show ./provider/transcript -rewrite

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
