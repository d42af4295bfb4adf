# Build, test and package olmkit and its memcached operator. 'make help' lists the targets.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

GO ?= go
BIN := bin
OLMKIT := $(BIN)/olmkit
LINT := $(BIN)/golangci-lint
REGISTRY := $(BIN)/registry
KUBEBUILDER := $(BIN)/kubebuilder
OPM := $(BIN)/opm
DELVE := $(BIN)/dlv
KUBECTL_BUILT := $(BIN)/kubectl
ACTIONLINT := $(BIN)/actionlint

PACKAGE := memcached-operator
# As operator-sdk's Makefiles have them: the release that operator/main.go is, and its image. Other releases have IMAGE_TAG_BASE
# with their own tags.
VERSION ?= 0.5.0
IMAGE_TAG_BASE ?= $(PUBLISHED_IMAGE)
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
# The image that the manifests name.
PUBLISHED_IMAGE := ghcr.io/olmkit/$(PACKAGE)
# Releases from the oldest to the newest.
RELEASE := v$(VERSION)
RELEASES := v0.1.0 v0.2.0 v0.3.0 v0.3.1 v0.4.0 $(RELEASE) v0.6.0-rc.1
image-of = $(if $(filter $(RELEASE),$(1)),$(IMG),$(IMAGE_TAG_BASE):$(1))
MANAGERS := $(foreach r,$(RELEASES),$(BIN)/$(PACKAGE)/$(r)/manager)

# Programs of the product never need cgo, and are the same wherever they are built. gRPC's page of traces, which nobody serves,
# has a template, and templates keep the linker from leaving out what is not used: a third of olmkit. What only debuggers read takes a sixth of
# the time to compile, and inlining a fifth: only what reads and computes much has it. Tests and the components of clusters are built with the
# same flags (CompilerFlags in internal/cluster/embedded), so that no package is compiled twice.
export CGO_ENABLED ?= 0
INLINED := std github.com/olmkit/... github.com/klauspost/... go.yaml.in/... sigs.k8s.io/yaml/...
BUILD_FLAGS := -trimpath -tags=grpcnotrace '-gcflags=all=-dwarf=false -l' $(INLINED:%=-gcflags=%=-dwarf=false)
export GOFLAGS := $(strip $(filter-out $(BUILD_FLAGS),$(GOFLAGS)) $(BUILD_FLAGS))

# The compiler collects its garbage when there is five times as much as is used, not twice, or 2 GiB: a fifth less time.
COMPILE := GOGC=400 GOMEMLIMIT=2GiB $(GO)

# Without symbols, which take half of the time to link: 'make debug' builds its own.
STRIPPED := -ldflags '-s -w'

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*?##/ {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ The two that matter

CLUSTER ?= embedded
KIND := $(filter kind,$(CLUSTER))

.PHONY: demo
demo: $(if $(wildcard $(OLMKIT)),,fetch) build $(if $(KIND),managers kind-node,managers-beside-components) ## Walk every upgrade of the memcached operator under the real OLM (EDGES=all|next|chain, CLUSTER=embedded|kind)
	@mkdir -p $(BIN)/demo
	@echo "olmkit upgrade test catalog --package $(PACKAGE) --channel $(CHANNEL) --edges $(EDGES)"
	@$(if $(KIND),$(WITH_DOCKER)) $(OLMKIT) upgrade test catalog --package $(PACKAGE) --channel $(CHANNEL) --edges $(EDGES) \
		--cluster $(CLUSTER) $(if $(KIND),--node-image $(NODE_IMAGE),$(SIDE_BY_SIDE)) $(DEMO_FLAGS) \
		$(foreach r,$(RELEASES),--image $(call image-of,$(r))=$(BIN)/$(PACKAGE)/$(r)/manager) --suppress $(KNOWN) \
		--report json=$(BIN)/demo/report.json --report junit=$(BIN)/demo/report.xml --report html=$(BIN)/demo/report.html

.PHONY: demo-v1
demo-v1: build managers ## Walk every upgrade of the memcached operator under the real OLM v1, on the embedded cluster (EDGES=all|next|chain)
	@mkdir -p $(BIN)/demo
	@echo "olmkit upgrade test catalog --package $(PACKAGE) --channel $(CHANNEL) --edges $(EDGES) --olm v1"
	@$(OLMKIT) upgrade test catalog --package $(PACKAGE) --channel $(CHANNEL) --edges $(EDGES) --olm v1 $(DEMO_FLAGS) \
		$(foreach r,$(RELEASES),--image $(call image-of,$(r))=$(BIN)/$(PACKAGE)/$(r)/manager) --suppress $(KNOWN) \
		--report json=$(BIN)/demo/v1.json --report junit=$(BIN)/demo/v1.xml --report html=$(BIN)/demo/v1.html
EDGES ?= all
# A walk waits more than it computes, so two of them end earlier than one after the other, on two cores as well.
SIDE_BY_SIDE = $(if $(filter all,$(EDGES)),--parallel 2)
# The channel that has every release, also the one that is only a candidate.
CHANNEL ?= candidate
DEMO_FLAGS ?=
# What the demo finds in releases that are out.
KNOWN := operator/releases/suppressed/upgrades.yaml

# The race detector needs a C compiler with its C library, which a machine may not have.
.PHONY: test
test: ## Run the unit tests and the command line's scripts, with the race detector where there is a C compiler
	@race=-race; cgo=1; \
	if ! why=$$(CGO_ENABLED=1 $(COMPILE) build -race runtime/cgo 2>&1); then \
		race=; cgo=0; \
		printf '%s\nThe tests run without the race detector: it needs a C compiler. Install one (on Debian: apt-get install gcc libc6-dev) to have races found.\n' "$$why" >&2; \
	fi; \
	GORACE=atexit_sleep_ms=100 CGO_ENABLED=$$cgo $(GO) test $$race $(TEST_FLAGS) $(FIRST) $$($(GO) list ./... | grep -v -e /tools/ $(WITHOUT_RACE:.%=-e %$$) -e /test/e2e -e /test/hostile -e /test/olmv1 -e /test/operator -e /test/scenario -e /test/started -e /test/api -e /test/arrows -e /test/style -e /test/bench -e /test/browser -e /test/systems -e /test/upgrades)
	$(GO) test $(TEST_FLAGS) $(WITHOUT_RACE) ./tools/...
	$(GO) test $(TEST_FLAGS) -short -run 'Growth|ByParts|OpmRefuses|RoundTrips' ./internal/check ./operator/internal/conversion
	$(GO) test $(TEST_FLAGS) ./test/scenario -run 'Static|Commands|Docs'
# What does nothing at the same time: the race detector would find nothing, and make it take up to ten times as long. The scripts start olmkit for
# each command, which takes three times as long with it: internal/cli's tests have it every time, the scripts at night.
WITHOUT_RACE := ./internal/graph ./internal/report ./test/coverage ./test/faults ./test/makefile ./test/script
TEST_FLAGS ?= -timeout 30m
# What takes longest begins first, so that it does not run alone at the end.
FIRST := ./internal/walk ./internal/cli

.PHONY: resolver
resolver: ## Hold the upgrade graphs against the resolvers of OLM and OLM v1 over generated channels (CASES)
	OLMKIT_RESOLVER_CASES=$(CASES) $(GO) test -count=1 -timeout 2h -v -run '^Test(V1)?Resolver$$' ./internal/graph
CASES ?= 100000

.PHONY: growth
growth: ## Measure how what it takes to validate a catalog grows, up to 100,000 releases
	$(GO) test -count=1 -timeout 1h -v -run '^TestGrowth$$' ./internal/check

.PHONY: conversion-rounds
conversion-rounds: ## Convert a million fuzzed Memcacheds there and back (ROUNDS)
	$(GO) test -count=1 -timeout 2h -v -run '^TestRoundTrips$$' ./operator/internal/conversion -rounds $(ROUNDS)
# Of objects, each with every field set and with half of them, that take eight round trips.
ROUNDS ?= 62500

# Each fuzzer in the tree, as FOLDER:NAME.
FUZZERS = $(shell grep -rhoE --include='*_test.go' -H '^func Fuzz[A-Za-z]+' cmd internal operator | sed -E 's|/[^/]+:func |:|' | sort)
FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## Run every fuzzer in turn (FUZZTIME=30s for each)
	@set -e; for fuzzer in $(FUZZERS); do \
		echo "$${fuzzer%:*} $${fuzzer#*:}"; \
		$(GO) test ./$${fuzzer%:*} -run '^$$' -fuzz "^$${fuzzer#*:}$$" -fuzztime $(FUZZTIME); \
	done

##@ Build

.PHONY: build
build: ## Build olmkit into bin/
	$(COMPILE) build -o $(OLMKIT) ./cmd/olmkit

.PHONY: build-flags
build-flags: ## Print the flags that all is built with, as GOFLAGS has them
	@echo "$(BUILD_FLAGS)"

# With empty caches half a minute less: modules come from the network while the standard library is compiled.
FETCHED := fetched-library fetched-modules $(if $(KIND),,fetched-components)
.PHONY: fetch fetched-library fetched-modules fetched-components
fetch: ## Download the modules of olmkit, the managers and the components of embedded clusters
	@$(MAKE) --no-print-directory -j $(words $(FETCHED)) $(FETCHED)
fetched-library:
	@$(COMPILE) build std
fetched-modules:
	@$(GO) list -deps ./cmd/olmkit ./operator/... >/dev/null
fetched-components:
	@$(GO) -C tools/cluster list -deps . $(OLM)/cmd/olm $(OLM)/cmd/catalog >/dev/null
OLM := github.com/operator-framework/operator-lifecycle-manager

# Linked statically: below the root of a container, where olmkit starts itself, there are no libraries.
.PHONY: build-race
build-race: ## Build olmkit with the race detector into bin/olmkit-race; needs a C compiler
	@CGO_ENABLED=1 $(COMPILE) build -race -ldflags '-linkmode external -extldflags "-static -Wl,--no-warnings"' -o $(OLMKIT)-race ./cmd/olmkit || { \
		printf 'The race detector needs a C compiler and a static C library. Install them: on Debian apt-get install gcc libc6-dev, on Fedora dnf install gcc glibc-static.\n' >&2; \
		exit 1; \
	}

# GOOS-GOARCH of each.
CROSS ?= linux-arm64 darwin-arm64
.PHONY: cross
cross: $(CROSS:%=$(BIN)/cross/%/olmkit) ## Build olmkit for the other systems that it runs on (CROSS)
$(BIN)/cross/%/olmkit: FORCE
	GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) $(COMPILE) build -o $@ ./cmd/olmkit

# The Go command links for seconds on one processor; the other compiles what embedded clusters are made of meanwhile.
.PHONY: managers-beside-components
managers-beside-components: build
	@$(MAKE) --no-print-directory -j 2 -o build components managers

.PHONY: components
components: build ## Build the components of embedded clusters
	$(OLMKIT) cluster build

.PHONY: managers
managers: $(MANAGERS) ## Build the manager of every release of the memcached operator

# The second example operator, a module of its own, with images of its own.
REDIS = env $(foreach v,VERSION IMAGE_TAG_BASE IMG BUNDLE_IMG CATALOG_IMG CATALOG_FLAGS,-u $(v)) MAKEFLAGS= $(MAKE) -C examples/redis-operator BIN=$(abspath $(BIN)/redis-operator) OLMKIT=$(abspath $(OLMKIT))

.PHONY: redis-managers
redis-managers: ## Build the manager of every release of the Redis operator
	$(REDIS) build

.PHONY: FORCE
$(BIN)/$(PACKAGE)/$(RELEASE)/manager: FORCE
	$(COMPILE) build $(STRIPPED) -o $@ ./operator
$(BIN)/$(PACKAGE)/%/manager: FORCE
	$(COMPILE) build $(STRIPPED) -o $@ ./operator/releases/$*

##@ Develop

.PHONY: generate
generate: ## Write what is generated from code: deep copies, CRDs, roles, webhooks, the components' module, reference docs
	./operator/generate.sh
	$(REDIS) generate CONTROLLER_GEN="$$($(GO) -C tools/codegen tool -n controller-gen)"
	$(GO) generate ./internal/cluster/embedded
	$(GO) test ./internal/cli ./internal/check ./internal/judge ./operator/internal/monitoring ./test/scenario -run 'Docs' -count=1 -update
	made=$$($(GO) run ./tools/upgrading <CHANGELOG.md) && printf '%s\n' "$$made" >UPGRADING.md

# One of each minor. Their modules are a part of olmkit, as tools/cluster is.
.PHONY: kubernetes-modules
kubernetes-modules: ## Write the modules that build embedded clusters of other Kubernetes minors (needs the network); see versions.go
	$(GO) run ./internal/cluster/embedded/internal/pins kubernetes internal/cluster/embedded/kubernetes.txtar tools/cluster \
		$$(sed -n 's/^var otherReleases = \[\]string{\(.*\)}/\1/p' internal/cluster/embedded/versions.go | tr -d '",')

.PHONY: olm-modules
olm-modules: ## Write the modules that build other releases of OLM v0 (needs the network); see versions.go
	$(GO) run ./internal/cluster/embedded/internal/pins olm internal/cluster/embedded/olm.txtar \
		$$(sed -n 's/^var otherOLMReleases = \[\]string{\(.*\)}/\1/p' internal/cluster/embedded/versions.go | tr -d '",')

.PHONY: manifests
manifests: generate

.PHONY: fmt
fmt: $(LINT) ## Format the code
	$(LINT) fmt ./...

.PHONY: vet
vet: ## Run go vet
	$(GO) vet ./...

.PHONY: lint
lint: $(LINT) ## Run the linters
	$(LINT) run ./...

$(LINT): tools/lint/go.sum
	$(COMPILE) -C tools/lint build -o $(abspath $@) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# The linter's cache speaks of files by where they were; one for each clone, so that it never speaks of another.
export GOLANGCI_LINT_CACHE := $(abspath $(BIN))/lint-cache

$(ACTIONLINT): tools/actionlint/go.sum
	$(COMPILE) -C tools/actionlint build -o $(abspath $@) github.com/rhysd/actionlint/cmd/actionlint

.PHONY: lint-release
lint-release: $(ACTIONLINT) ## Check the workflows and the release's configuration
	$(ACTIONLINT) .github/workflows/*.yml examples/github-workflow.yml
	$(GO) -C tools/goreleaser run . $(abspath .goreleaser.yaml)

.PHONY: verify
verify: lint lint-release ## Check that generated files are up to date, the code is clean and dependencies point the right way
	./test/verify.sh
	$(GO) test -count=1 ./test/arrows ./test/api ./test/style ./test/systems

##@ Test for real

$(REGISTRY): tools/registry/main.go tools/registry/go.sum
	$(COMPILE) -C tools/registry build -o $(abspath $@) .

# opm's own tags, by which it needs no C libraries; what it then can't do is read SQLite.
$(OPM): tools/opm/go.sum
	CGO_ENABLED=0 $(COMPILE) -C tools/opm build -tags json1,containers_image_openpgp -o $(abspath $@) github.com/operator-framework/operator-registry/cmd/opm

.PHONY: promtool
promtool: ## Take promtool, which tests the alerts, out of Debian's package prometheus into bin/
	d=$$(mktemp -d) && trap "rm -rf $$d" EXIT && cd $$d && apt-get download -qq prometheus && dpkg -x prometheus_*.deb . && \
		install -D usr/bin/promtool $(abspath $(BIN))/promtool

$(KUBECTL_BUILT): tools/kubectl/go.sum
	CGO_ENABLED=0 $(COMPILE) -C tools/kubectl build -o $(abspath $@) .

.PHONY: tools
tools: $(LINT) $(REGISTRY) $(OPM) $(KUBECTL_BUILT) ## Build what the linters and the end-to-end tests need, from modules

# What takes minutes and repeats what a shorter test shows is left to test-nightly: -short shortens tests, and these are left out.
SHORT ?= -short
LONG_WALKS = $(if $(SHORT),|^TestRaces$$|^TestEachFault$$|^TestDeadlock$$|^TestWalkWithRealOperands$$|^TestIndexedJob$$|^TestPartsMakeTheWhole$$|^TestWalkWithConversion$$|^TestUninstallThatDoesNotEnd$$)

.PHONY: test-e2e
test-e2e: test-walks test-operator test-scenarios test-hostile ## Run the end-to-end tests on embedded clusters

# How many clusters a suite of walks has at the same time. On two cores two walks take 1.3 times as long as one, three 1.7 times, and by then
# both cores are busy: more than three at a time, of all suites that run, only make each late. So test-redis, which runs beside another, has one.
AT_ONCE ?= 2

.PHONY: test-walks
test-walks: build $(if $(SHORT),,build-race) managers $(REGISTRY) $(OPM) $(KUBECTL_BUILT) ## Test olmkit on embedded clusters: walks, published operators, registries, bad input
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -v $(SHORT) -p 1 -parallel $(AT_ONCE) -skip '^TestKind$(LONG_WALKS)' ./test/e2e ./test/upgrades

.PHONY: test-hostile
test-hostile: build ## Test that programs and images which try to leave their containers stay inside, as root and as an ordinary user
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 10m -v ./test/hostile

.PHONY: test-operator
test-operator: build managers $(KUBECTL_BUILT) ## Test the memcached operator on embedded clusters
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -v $(SHORT) $(if $(SHORT),-skip '^TestChaos$$|^TestLeaderElection$$/^life_on_lost_nodes$$') ./test/operator/...

# What begins with a slash stands last in -skip: go test looks no further than at it, and skips nothing that follows.
.PHONY: test-scenarios
test-scenarios: build managers ## Test that the walk finds what broke public upgrades
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -v $(SHORT) -parallel $(AT_ONCE) -skip '^TestKind|^TestWalkedDifferences$$$(if $(SHORT),|^TestExistingScenarios$$)|/^redis-' ./test/scenario/...

.PHONY: test-redis
test-redis: build redis-managers ## Test the Redis operator, walk its upgrades, and test that the walk finds what is broken in broken releases of it
	$(REDIS) test
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -v $(SHORT) -parallel 1 -run '^(TestScenarios|TestTogether|TestCounterparts)$$/^redis-' $(if $(SHORT),-skip '/$(REDIS_MORE)') ./test/scenario

.PHONY: test-redis-more
test-redis-more: build redis-managers ## Test that the walk finds what broken releases of the Redis operator do at an object's end, and with its size
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -v -short -parallel $(AT_ONCE) -run '^TestTogether$$/$(REDIS_MORE)' ./test/scenario
REDIS_MORE := ^(redis-parting|redis-sizing)$$

# The components of each minor, and of each release of OLM, take minutes to build, once.
.PHONY: matrix
matrix: build managers ## Walk two hops of the memcached operator on every Kubernetes minor under every OLM, and print a table (MINORS, OLMS, OLM_VERSIONS)
	@test/matrix.sh "$(MINORS)" "$(OLMS)" "$(OLM_VERSIONS)" --package $(PACKAGE) --edges chain --max-hops 2 \
		$(foreach r,$(RELEASES),--image $(call image-of,$(r))=$(BIN)/$(PACKAGE)/$(r)/manager)
MINORS ?= all
OLMS ?= v0 v1
# Other releases of OLM v0 are walked under on the oldest and the newest of MINORS.
OLM_VERSIONS ?= all

.PHONY: ends
ends: build managers ## End walks at random moments (ENDS of each kind): kill -9, Ctrl-C, SIGTERM, closed output, full disk
	OLMKIT_ENDS=$(ENDS) CGO_ENABLED=0 $(GO) test -count=1 -timeout 3h -v -run '^TestEnds$$' ./test/e2e
ENDS ?= 20

.PHONY: kills
kills: ## Kill pushes at random moments (KILLS), and look for what they leave
	OLMKIT_KILLS=$(KILLS) $(GO) test -count=1 -timeout 1h -v -run '^TestKilledPushes$$' ./internal/cli
KILLS ?= 100

.PHONY: leader-kills
leader-kills: build managers $(KUBECTL_BUILT) ## Kill leaders at random moments (LEADER_KILLS) with both kinds of leader election, in virtual time and on a cluster
	OLMKIT_LEADER_KILLS=$(LEADER_KILLS) $(GO) test -count=1 -timeout 12h -v -run '^TestKills$$' ./pkg/leader
	OLMKIT_LEADER_KILLS=$(LEADER_KILLS) CGO_ENABLED=0 $(GO) test -count=1 -timeout 12h -v -run '^TestLeaderKills$$' ./test/operator
LEADER_KILLS ?= 1000

# Made from Debian's packages and Go modules, so that no registry is needed.
NODE_IMAGE ?= olmkit/node:v1.36.3
# Starts Docker where it does not run, and ends it again.
WITH_DOCKER := tools/kind/with-docker

KIND_NODE = $(GO) run ./internal/cluster/kind/internal/node

# Without a network, as in a test apart, it can be neither pulled nor built.
.PHONY: kind
kind: build
	$(OLMKIT) cluster build --kind kind

.PHONY: kind-node
kind-node: kind kind-node-archive ## Build a node image for kind without any registry, and load it into Docker (needs mmdebstrap)
	$(WITH_DOCKER) --apart $(KIND_NODE) --load $(NODE_IMAGE)

# Takes minutes and no Docker.
.PHONY: kind-node-archive
kind-node-archive:
	$(KIND_NODE) $(NODE_IMAGE)

.PHONY: test-kind
test-kind: build managers kind-node $(KUBECTL_BUILT) ## Test on kind clusters what differs there: the loop of every day, Ctrl-C, what is missing
	$(KIND_TEST) -short -skip '^(TestKindKept|TestKindScenarios|TestKindWalk|TestKindWalkOLMv1)$$'

.PHONY: test-kind-walk
test-kind-walk: build managers kind-node ## Walk a hop on an embedded and on a kind cluster, and compare
	$(KIND_TEST) -short -run '^TestKindWalk$$'

.PHONY: test-kind-all
test-kind-all: build managers kind-node $(OPM) $(REGISTRY) $(KUBECTL_BUILT) ## Run all tests on kind clusters, the longest chain and a kept cluster among them
	$(KIND_TEST)
KIND_TEST = OLMKIT_NODE_IMAGE=$(NODE_IMAGE) $(WITH_DOCKER) --apart $(GO) test -count=1 -timeout 60m -p 1 -v -run '^TestKind' ./test/e2e ./test/scenario

.PHONY: test-olmv1
test-olmv1: build managers ## Test OLM v1 on embedded clusters: every upgrade and every refused one, what 'subscription generate --olm v1' writes, 'upgrade diagnose', a kept cluster, and how it differs from OLM v0
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m -v ./test/olmv1
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 30m -v -run '^TestWalkedDifferences$$' ./test/scenario

.PHONY: test-nightly
test-nightly: test-kind-all test-started test-olmv1 ## Run every end-to-end test at full length
	$(MAKE) SHORT= test-e2e test-redis test-browser
	CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 30m ./test/script
	$(MAKE) ends kills resolver conversion-rounds growth
	$(MAKE) faults FAIL_ON=error

.PHONY: test-browser
test-browser: ## Use the pages of reports in a headless Chromium; needs chromium and npm (BROWSER_FLAGS)
	$(GO) test -count=1 -timeout 20m -v ./test/browser $(BROWSER_FLAGS)

.PHONY: faults
faults: build managers ## Walk the memcached operator's chain under every fault, and write docs/faults.md (FAULTS, FAULTS_FLAGS)
	@mkdir -p $(BIN)/faults
	$(OLMKIT) upgrade test catalog --package $(PACKAGE) --edges chain --fault-matrix $(FAULTS) $(FAULTS_FLAGS) \
		$(foreach r,$(RELEASES),--image $(call image-of,$(r))=$(BIN)/$(PACKAGE)/$(r)/manager) \
		--fail-on $(FAIL_ON) --report json=$(BIN)/faults/report.json
	$(GO) run ./test/faults $(BIN)/faults/report.json > $(BIN)/faults/faults.md
	mv $(BIN)/faults/faults.md docs/faults.md
FAULTS ?= all
FAULTS_FLAGS ?=
FAIL_ON ?= never

.PHONY: bench
bench: build ## Measure what users wait for without a cluster, keep the results in BENCH_HISTORY, and compare them with the last release's
	@mkdir -p $(BENCH_HISTORY)
	$(GO) test ./test/bench/speed -run '^$$' -bench . -benchtime 3x -count $(BENCH_COUNT) -timeout 60m >$(BIN)/bench.txt || { cat $(BIN)/bench.txt; exit 1; }
	$(GO) run ./tools/history -dir $(BENCH_HISTORY) -commit "$$(git describe --always --dirty --exclude '*')" \
		-release "$$(git describe --exact-match --tags 2>/dev/null)" <$(BIN)/bench.txt
BENCH_HISTORY ?= $(BIN)/benchmarks
BENCH_COUNT ?= 6

.PHONY: bench-operator
bench-operator: build managers ## Measure the memcached operator with many objects, side by side with a plain one
	$(COMPILE) build -o $(BIN)/bench/plain ./test/bench/operator/plain
	$(GO) test ./test/bench/operator/... -run '^$$' -bench Objects -benchtime 1x -timeout 60m

.PHONY: bench-operator-growth
bench-operator-growth: build managers ## Measure how the memcached operator's costs grow, from 100 to 10,000 objects
	$(GO) test ./test/bench/operator/... -run '^$$' -bench Growth -benchtime 1x -timeout 6h

.PHONY: bench-walk
bench-walk: build ## Measure how a walk's costs grow with the samples that it watches, from 10 to 10,000
	$(GO) test ./test/bench/walk -run '^$$' -bench Samples -benchtime 1x -timeout 6h

.PHONY: bench-opm
bench-opm: build $(OPM) ## Measure rendering and judging side by side with opm, on the published bundles in OLMKIT_DATA
	$(GO) test ./test/bench/opm -run '^$$' -bench . -benchtime 1x -timeout 120m

$(KUBEBUILDER): tools/kubebuilder/go.sum
	$(COMPILE) -C tools/kubebuilder build -o $(abspath $@) sigs.k8s.io/kubebuilder/v4

.PHONY: test-started
test-started: build kind-node $(REGISTRY) $(KUBEBUILDER) $(KUBECTL_BUILT) ## Follow docs/getting-started.md by the letter, on a project that kubebuilder makes, with an embedded cluster and with kind
	OLMKIT_NODE_IMAGE=$(NODE_IMAGE) $(WITH_DOCKER) $(GO) test -count=1 -timeout 60m -v ./test/started

##@ Package the memcached operator

include operator/releases/bundles.mk

##@ Image of the memcached operator

# For the same code the same bytes, wherever it is built: no paths, no state of the clone.
IMAGE_ARCHS ?= amd64 arm64
IMAGE_PROGRAMS = $(foreach a,$(IMAGE_ARCHS),$(BIN)/image/$(a)/manager)
IMAGE_LABELS = --label org.opencontainers.image.title=$(PACKAGE) \
	--label 'org.opencontainers.image.description=Runs memcached servers behind a headless Service' \
	--label org.opencontainers.image.version=$(RELEASE) \
	--label org.opencontainers.image.source=https://github.com/olmkit/olmkit \
	--label org.opencontainers.image.licenses=Apache-2.0
IMAGE_PUSH = $(OLMKIT) image push $(IMAGE_PROGRAMS:%=--program %) $(IMAGE_LABELS) $(IMG)

$(BIN)/image/%/manager: FORCE
	CGO_ENABLED=0 GOOS=linux GOARCH=$* $(COMPILE) build -buildvcs=false $(STRIPPED) -o $@ ./operator

.PHONY: image
image: build $(IMAGE_PROGRAMS) ## Make the memcached operator's image, for all platforms, as an OCI archive in bin/image/, without Docker
	@$(IMAGE_PUSH) --output $(BIN)/image/$(PACKAGE)-$(RELEASE).tar

.PHONY: image-push
image-push: build $(IMAGE_PROGRAMS) ## Push the memcached operator's image, without Docker (IMG, PUSH_FLAGS)
	@$(IMAGE_PUSH) $(PUSH_FLAGS)

.PHONY: docker-build
docker-build: ## Build the memcached operator's image with Docker (IMG)
	docker build -f operator/Dockerfile -t $(IMG) .

.PHONY: docker-push
docker-push: ## Push the memcached operator's image with Docker (IMG)
	docker push $(IMG)

.PHONY: docker-buildx
docker-buildx: ## Build and push the memcached operator's image for all platforms with Docker
	docker buildx build -f operator/Dockerfile --platform linux/amd64,linux/arm64 --push -t $(IMG) .

##@ Image of olmkit

OLMKIT_IMAGE ?= ghcr.io/olmkit/olmkit
OLMKIT_VERSION ?= latest
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt

OLMKIT_PUSH_FLAGS ?=

.PHONY: olmkit-image
olmkit-image: ## Make olmkit's own image, with what embedded clusters are made of, as an OCI archive in bin/image/
	@mkdir -p $(BIN)/image
	@$(MAKE) --no-print-directory olmkit-image-push OLMKIT_PUSH_FLAGS='--output $(BIN)/image/olmkit.tar'

.PHONY: olmkit-image-push
olmkit-image-push: build ## Push olmkit's own image, without Docker (OLMKIT_IMAGE, OLMKIT_VERSION, OLMKIT_PUSH_FLAGS)
	@components=$$($(OLMKIT) cluster build) && \
	$(OLMKIT) image push --program $(OLMKIT) --entrypoint /olmkit --user 0:0 \
		--env OLMKIT_CACHE=/var/cache/olmkit --env PATH=/ \
		$$(for c in $$components; do echo --add $$c=/var/cache/olmkit/components/$${c##*/}; done) \
		--add $(CERTIFICATES)=/etc/ssl/certs/ca-certificates.crt \
		--label org.opencontainers.image.title=olmkit \
		--label org.opencontainers.image.source=https://github.com/olmkit/olmkit \
		--label org.opencontainers.image.licenses=Apache-2.0 \
		$(OLMKIT_PUSH_FLAGS) $(OLMKIT_IMAGE):$(OLMKIT_VERSION)

##@ Release

COMPONENTS_IMAGE ?= ghcr.io/olmkit/components
COMPONENTS_FLAGS ?=
COMPONENTS = $(GO) run ./internal/cluster/embedded/internal/artifact $(COMPONENTS_FLAGS)

# For the same version of Go the same bytes, on every machine: what it prints is the digest, which another machine must print, too.
# GOTOOLCHAIN=go1.26.3 chooses the version, which the index says of each image (io.olmkit.go).
.PHONY: components-artifact
components-artifact: ## Make what releases pull the components of embedded clusters, and kind, from, for all platforms, as an OCI archive in bin/image/
	@mkdir -p $(BIN)/image
	@$(COMPONENTS) -output $(BIN)/image/components.tar

.PHONY: components-artifact-push
components-artifact-push: ## Push it, and print its reference by digest (COMPONENTS_IMAGE, OLMKIT_VERSION)
	@$(COMPONENTS) -push $(COMPONENTS_IMAGE):$(OLMKIT_VERSION)

# What .goreleaser.yaml puts into the archives.
.PHONY: completions
completions: build ## Write the shells' completions into bin/completions/
	@mkdir -p $(BIN)/completions
	$(OLMKIT) completion bash >$(BIN)/completions/olmkit.bash
	$(OLMKIT) completion zsh >$(BIN)/completions/_olmkit
	$(OLMKIT) completion fish >$(BIN)/completions/olmkit.fish

##@ Run the memcached operator

# The machine's kubectl, or else the one of the embedded cluster's Kubernetes, which is built once.
KUBECTL ?= $(or $(shell command -v kubectl),$(KUBECTL_BUILT))

# Memcacheds wait for the operator to say goodbye to them: without it they would never go.
define DELETE_MEMCACHEDS
@if $(KUBECTL) get customresourcedefinition memcacheds.cache.example.com >/dev/null 2>&1; then \
	$(KUBECTL) delete memcacheds.cache.example.com --all --all-namespaces --timeout=$(DELETE_TIMEOUT) || \
		{ echo "Memcacheds go only while the operator runs: start it ('make run' or 'make deploy') and try again" >&2; exit 1; }; \
fi
endef
DELETE_TIMEOUT ?= 3m

.PHONY: install
install: $(KUBECTL) ## Install the memcached operator's CRDs into the cluster of your kubeconfig
	$(KUBECTL) apply --server-side -k operator/config/crd

.PHONY: uninstall
uninstall: $(KUBECTL) ## Remove all Memcached objects, while the operator runs, and then the CRDs
	$(DELETE_MEMCACHEDS)
	$(KUBECTL) delete --ignore-not-found -k operator/config/crd

.PHONY: run
run: ## Run the memcached operator on this machine, without webhooks, against the cluster of your kubeconfig (RUN_FLAGS)
	$(GO) run ./operator --webhooks=false $(RUN_FLAGS)

$(DELVE): tools/delve/go.sum
	CGO_ENABLED=0 $(COMPILE) -C tools/delve build -o $(abspath $@) github.com/go-delve/delve/cmd/dlv

# Delve builds without optimizations; it finds the sources by paths that -trimpath would take away.
.PHONY: debug
debug: $(DELVE) ## Run the memcached operator as 'make run' does, in the debugger delve (RUN_FLAGS, DEBUG_FLAGS)
	GOFLAGS= $(DELVE) debug ./operator --output $(BIN)/manager-debug $(DEBUG_FLAGS) -- --webhooks=false $(RUN_FLAGS)

# The operator's manifests, without OLM, with IMG.
INSTALLER = $(KUBECTL) kustomize operator/config/default | sed -E 's|image: $(PUBLISHED_IMAGE)[:@].*|image: $(IMG)|'

.PHONY: build-installer
build-installer: $(KUBECTL) ## Write all that 'make deploy' applies to one file, dist/install.yaml (IMG, DIST)
	@mkdir -p $(DIST)
	$(INSTALLER) >$(DIST)/install.yaml
DIST ?= dist

.PHONY: deploy
deploy: $(KUBECTL) ## Deploy the memcached operator into the cluster of your kubeconfig, and wait until it is ready (IMG)
	$(INSTALLER) | $(KUBECTL) apply --server-side -f -
	$(KUBECTL) rollout status --namespace $(PACKAGE)-system deployment/$(PACKAGE)-controller-manager --timeout=3m

.PHONY: undeploy
undeploy: $(KUBECTL) ## Remove all Memcached objects, and then the deployed memcached operator
	$(DELETE_MEMCACHEDS)
	$(KUBECTL) delete --ignore-not-found -k operator/config/default
