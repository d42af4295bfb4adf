# Build, test and package olmkit and its memcached operator. 'make help' lists the targets.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

GO ?= go
BIN := bin
OLMKIT := $(BIN)/olmkit
LINT := $(BIN)/golangci-lint
REGISTRY := $(BIN)/registry

PACKAGE := memcached-operator
IMAGE ?= ghcr.io/olmkit/$(PACKAGE)
# Releases from the oldest to the newest; RELEASE is the one that operator/main.go is.
RELEASES := v0.1.0 v0.2.0 v0.3.0 v0.3.1 v0.4.0 v0.5.0 v0.6.0-rc.1
RELEASE := v0.5.0
MANAGERS := $(foreach r,$(RELEASES),$(BIN)/$(PACKAGE)/$(r)/manager)

# Programs of the product never need cgo, and are the same wherever they are built.
export CGO_ENABLED ?= 0
GOFLAGS_BUILD := -trimpath

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z0-9_-]+:.*?##/ {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ The two that matter

.PHONY: demo
demo: build managers ## Walk every upgrade of the memcached operator under the real OLM (EDGES=all|next|chain)
	@mkdir -p $(BIN)/demo
	@echo "olmkit upgrade test catalog --package $(PACKAGE) --channel $(CHANNEL) --edges $(EDGES)"
	@$(OLMKIT) upgrade test catalog --package $(PACKAGE) --channel $(CHANNEL) --edges $(EDGES) $(DEMO_FLAGS) \
		$(foreach r,$(RELEASES),--image $(IMAGE):$(r)=$(BIN)/$(PACKAGE)/$(r)/manager) \
		--report json=$(BIN)/demo/report.json --report junit=$(BIN)/demo/report.xml
EDGES ?= all
# The channel that has every release, also the one that is only a candidate.
CHANNEL ?= candidate
DEMO_FLAGS ?=

.PHONY: test
test: ## Run the unit tests and the command line's scripts, with the race detector
	CGO_ENABLED=1 $(GO) test -race $(TEST_FLAGS) $$($(GO) list ./... | grep -v -e /test/e2e -e /test/scenario -e /test/bench)
TEST_FLAGS ?=

##@ Build

.PHONY: build
build: ## Build olmkit into bin/
	$(GO) build $(GOFLAGS_BUILD) -o $(OLMKIT) ./cmd/olmkit

.PHONY: cross
cross: ## Build olmkit for the other systems that it runs on
	GOOS=linux GOARCH=arm64 $(GO) build -o $(BIN)/cross/linux-arm64/olmkit ./cmd/olmkit
	GOOS=darwin GOARCH=arm64 $(GO) build -o $(BIN)/cross/darwin-arm64/olmkit ./cmd/olmkit

.PHONY: managers
managers: $(MANAGERS) ## Build the manager of every release of the memcached operator

.PHONY: FORCE
$(BIN)/$(PACKAGE)/$(RELEASE)/manager: FORCE
	$(GO) build $(GOFLAGS_BUILD) -o $@ ./operator
$(BIN)/$(PACKAGE)/%/manager: FORCE
	$(GO) build $(GOFLAGS_BUILD) -o $@ ./operator/releases/$*

##@ Develop

.PHONY: generate
generate: ## Write what is generated from code: deep copies, CRDs, roles, webhooks, the components' module, reference docs
	./operator/generate.sh
	$(GO) generate ./internal/cluster/embedded
	$(GO) test ./internal/cli ./internal/check ./internal/upgrade -run 'Docs' -count=1 -update

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
	$(GO) -C tools/lint build -o $(abspath $@) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# The linter's cache speaks of files by where they were; one for each clone, so that it never speaks of another.
export GOLANGCI_LINT_CACHE := $(abspath $(BIN))/lint-cache

.PHONY: verify
verify: lint ## Check that generated files are up to date, the code is clean and dependencies point the right way
	./test/verify.sh
	$(GO) test -count=1 ./test/arrows

##@ Test for real

$(REGISTRY): tools/registry/go.sum
	$(GO) -C tools/registry build $(GOFLAGS_BUILD) -o $(abspath $@) github.com/distribution/distribution/v3/cmd/registry

.PHONY: test-e2e
test-e2e: build managers $(REGISTRY) ## Run the end-to-end tests: embedded clusters, broken upgrades, published operators, bad input
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 60m -p 1 -v ./test/e2e/... ./test/scenario/...

##@ Package the memcached operator

include operator/releases/bundles.mk

##@ Run the memcached operator

.PHONY: install
install: ## Install the memcached operator's CRDs into the cluster of your kubeconfig
	kubectl apply --server-side -k operator/config/crd

.PHONY: uninstall
uninstall: ## Remove the CRDs, and all Memcached objects with them
	kubectl delete --ignore-not-found -k operator/config/crd

.PHONY: run
run: ## Run the memcached operator on this machine, without webhooks, against the cluster of your kubeconfig
	$(GO) run ./operator --webhooks=false

.PHONY: deploy
deploy: ## Deploy the memcached operator into the cluster of your kubeconfig
	kubectl apply --server-side -k operator/config/default

.PHONY: undeploy
undeploy: ## Remove the deployed memcached operator
	kubectl delete --ignore-not-found -k operator/config/default

.PHONY: docker-build
docker-build: ## Build the memcached operator's image
	docker build -f operator/Dockerfile -t $(IMAGE):$(RELEASE) .

.PHONY: docker-push
docker-push: ## Push the memcached operator's image
	docker push $(IMAGE):$(RELEASE)
