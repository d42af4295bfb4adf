# The bundles of the memcached operator's releases, and the catalog that holds them: where each stands in the upgrade
# graph is said here and in catalog/template.yaml, everything else is in the releases' manifests. Included by the Makefile.

BUNDLES := bundle/$(PACKAGE)
BUNDLE_IMAGE ?= ghcr.io/olmkit/$(PACKAGE)-bundle
CATALOG_IMAGE ?= ghcr.io/olmkit/memcached-catalog:latest

# 0.3.1 takes the place of 0.3.0, which was withdrawn; whoever has either may go to 0.4.0 at once.
bundle-v0.1.0      := --channels stable,candidate
bundle-v0.2.0      := --channels stable,candidate --replaces $(PACKAGE).v0.1.0
bundle-v0.3.0      := --channels stable,candidate --replaces $(PACKAGE).v0.2.0
bundle-v0.3.1      := --channels stable,candidate --replaces $(PACKAGE).v0.2.0 --skips $(PACKAGE).v0.3.0
bundle-v0.4.0      := --channels stable,candidate --replaces $(PACKAGE).v0.3.1 --skip-range '>=0.3.0 <0.4.0'
bundle-v0.5.0      := --channels stable,candidate --replaces $(PACKAGE).v0.4.0
bundle-v0.6.0-rc.1 := --channels candidate --default-channel stable --replaces $(PACKAGE).v0.5.0

# The manifests of a release; those of the newest one are the operator's own.
manifests-of = $(if $(filter $(RELEASE),$(1)),operator/config/manifests,operator/releases/$(1)/config/manifests)

# What consoles show of the API is said beside it, in markers, since 0.5.0.
api-of = $(if $(filter $(RELEASE) v0.6.0-rc.1,$(1)),--api operator/api)

.PHONY: bundle
bundle: build ## Make the bundle of every release, in bundle/
	@$(foreach r,$(RELEASES),$(OLMKIT) --quiet bundle generate --manifests $(call manifests-of,$(r)) --version $(r:v%=%) $(bundle-$(r)) $(call api-of,$(r)) --output-dir $(BUNDLES)/$(r:v%=%) &&) \
		$(OLMKIT) --quiet bundle validate $(RELEASES:v%=$(BUNDLES)/%) --fail-on warning --suppress operator/releases/suppressed/bundles.yaml >$(BIN)/bundle.txt || { cat $(BIN)/bundle.txt; exit 3; }

.PHONY: catalog
catalog: bundle ## Make the catalog of all bundles, in catalog/, what a user applies to install from it, and docs/support.md
	$(OLMKIT) --quiet catalog build catalog/template.yaml --output-file catalog/$(PACKAGE)/catalog.yaml
	@$(foreach c,stable candidate,$(OLMKIT) --quiet subscription generate --package $(PACKAGE) --catalog catalog --channel $(c) \
		--namespace $(PACKAGE)-system --image $(CATALOG_IMAGE) --output-file catalog/install/$(c).yaml &&) \
		$(OLMKIT) --quiet catalog validate catalog --all --fail-on warning --suppress operator/releases/suppressed/catalog.yaml >$(BIN)/catalog.txt || { cat $(BIN)/catalog.txt; exit 3; }
	@$(REDIS) --no-print-directory catalog >$(BIN)/redis.txt || { cat $(BIN)/redis.txt; exit 3; }
	$(GO) test ./test/support -run Docs -count=1 -update

.PHONY: bundle-build
bundle-build: build ## Make the image of every release's bundle, as OCI archives in bin/bundle/
	@$(foreach r,$(RELEASES),$(OLMKIT) bundle push $(BUNDLES)/$(r:v%=%) $(BUNDLE_IMAGE):$(r) --output $(BIN)/bundle/$(PACKAGE)-$(r).tar &&) true

.PHONY: bundle-push
bundle-push: build ## Push the bundle of every release (BUNDLE_IMAGE, PUSH_FLAGS)
	@$(foreach r,$(RELEASES),$(OLMKIT) bundle push $(BUNDLES)/$(r:v%=%) $(BUNDLE_IMAGE):$(r) $(PUSH_FLAGS) &&) true

.PHONY: catalog-push
catalog-push: build ## Push the catalog (CATALOG_IMAGE, PUSH_FLAGS)
	@$(OLMKIT) catalog push catalog $(CATALOG_IMAGE) $(PUSH_FLAGS)
# For example --plain-http, or --ca-file FILE.
PUSH_FLAGS ?=
