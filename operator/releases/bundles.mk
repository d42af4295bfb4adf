# The bundles of the memcached operator's releases, and the catalog that holds them: where each stands in the upgrade
# graph is said here and in catalog/template.yaml, everything else is in the releases' manifests. Included by the Makefile.

BUNDLES := bundle/$(PACKAGE)
# BUNDLE_IMG is the image of RELEASE's bundle; those of the others have BUNDLE_IMAGE with their own tags.
BUNDLE_IMAGE ?= $(IMAGE_TAG_BASE)-bundle
BUNDLE_IMG ?= $(BUNDLE_IMAGE):$(RELEASE)
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:latest
bundle-image-of = $(if $(filter $(RELEASE),$(1)),$(BUNDLE_IMG),$(BUNDLE_IMAGE):$(1))
# For example --by-reference '$(BUNDLE_IMAGE):v{version}', after 'make bundle-push'.
CATALOG_FLAGS ?=

# 0.3.1 takes the place of 0.3.0, which was withdrawn; whoever has either may go to 0.4.0 at once.
bundle-v0.1.0      := --channels stable,candidate
bundle-v0.2.0      := --channels stable,candidate --replaces $(PACKAGE).v0.1.0
bundle-v0.3.0      := --channels stable,candidate --replaces $(PACKAGE).v0.2.0
bundle-v0.3.1      := --channels stable,candidate --replaces $(PACKAGE).v0.2.0 --skips $(PACKAGE).v0.3.0
bundle-v0.4.0      := --channels stable,candidate --replaces $(PACKAGE).v0.3.1 --skip-range '>=0.3.0 <0.4.0'
bundle-$(RELEASE)      := --channels stable,candidate --replaces $(PACKAGE).v0.4.0
bundle-v0.6.0-rc.1 := --channels candidate --default-channel stable --replaces $(PACKAGE).v0.5.0

# The manifests of a release; those of the newest one are the operator's own.
manifests-of = $(if $(filter $(RELEASE),$(1)),operator/config/manifests,operator/releases/$(1)/config/manifests)

# What consoles show of the API is said beside it, in markers, since 0.5.0.
api-of = $(if $(filter $(RELEASE) v0.6.0-rc.1,$(1)),--api operator/api)

.PHONY: bundle
bundle: build ## Make the bundle of every release, in bundle/
	@$(foreach r,$(RELEASES),$(OLMKIT) --quiet bundle generate --manifests $(call manifests-of,$(r)) --version $(r:v%=%) $(bundle-$(r)) $(call api-of,$(r)) \
		--image $(PUBLISHED_IMAGE)=$(call image-of,$(r)) --output-dir $(BUNDLES)/$(r:v%=%) &&) \
		$(OLMKIT) --quiet bundle validate $(RELEASES:v%=$(BUNDLES)/%) --fail-on warning --suppress operator/releases/suppressed/bundles.yaml >$(BIN)/bundle.txt || { cat $(BIN)/bundle.txt; exit 3; }

.PHONY: catalog-built
catalog-built: bundle
	$(OLMKIT) --quiet catalog build catalog/template.yaml $(CATALOG_FLAGS) --output-file catalog/$(PACKAGE)/catalog.yaml
	@$(OLMKIT) --quiet catalog validate catalog --all --fail-on warning --suppress operator/releases/suppressed/catalog.yaml >$(BIN)/catalog.txt || { cat $(BIN)/catalog.txt; exit 3; }

.PHONY: catalog
catalog: catalog-built ## Make the catalog of all bundles, in catalog/, what a user applies to install from it, and docs/support.md
	@$(foreach c,stable candidate,$(OLMKIT) --quiet subscription generate --package $(PACKAGE) --catalog catalog --channel $(c) \
		--namespace $(PACKAGE)-system --image $(CATALOG_IMG) --output-file catalog/install/$(c).yaml &&) true
	@$(REDIS) --no-print-directory catalog >$(BIN)/redis.txt || { cat $(BIN)/redis.txt; exit 3; }
	$(GO) test ./test/support -run Docs -count=1 -update

.PHONY: bundle-build
bundle-build: bundle ## Make the image of every release's bundle, as OCI archives in bin/bundle/
	@$(foreach r,$(RELEASES),$(OLMKIT) bundle push $(BUNDLES)/$(r:v%=%) $(call bundle-image-of,$(r)) --output $(BIN)/bundle/$(PACKAGE)-$(r).tar &&) true

.PHONY: bundle-push
bundle-push: bundle ## Push the bundle of every release (BUNDLE_IMAGE, BUNDLE_IMG, PUSH_FLAGS)
	@$(foreach r,$(RELEASES),$(OLMKIT) bundle push $(BUNDLES)/$(r:v%=%) $(call bundle-image-of,$(r)) $(PUSH_FLAGS) &&) true

.PHONY: catalog-push
catalog-push: catalog-built ## Make the catalog and push it (CATALOG_IMG, CATALOG_FLAGS, PUSH_FLAGS)
	@$(OLMKIT) catalog push catalog $(CATALOG_IMG) $(PUSH_FLAGS)
# For example --plain-http, or --ca-file FILE.
PUSH_FLAGS ?=
