#!/bin/sh
# Writes what is generated from the operator's Go code: deep copies, and each release's CRDs, roles and webhook
# manifests. controller-gen is pinned in tools/codegen. The result depends on the code alone.
set -eu
cd "$(dirname "$0")/.."
gen=$(go -C tools/codegen tool -n controller-gen)

"$gen" object paths=./operator/api/...

# release DIR CONFIG VERSIONS [PACKAGES-WITH-WEBHOOKS-OR-RIGHTS]
release() {
	paths="paths=$1"
	for version in $3; do
		paths="$paths paths=./operator/api/$version"
	done
	for package in ${4-}; do
		paths="$paths paths=./operator/internal/$package"
	done
	# shellcheck disable=SC2086 # paths is a list
	"$gen" crd rbac:roleName=manager-role webhook $paths \
		output:crd:dir="$2/crd/bases" output:rbac:dir="$2/rbac" output:webhook:dir="$2/webhook"
}

old=./operator/releases
release $old/v0.1.0      $old/v0.1.0/config      "v1alpha1"
release $old/v0.2.0      $old/v0.2.0/config      "v1alpha1 v1beta1"    "crdconversion"
release $old/v0.3.0      $old/v0.3.0/config      "v1alpha1 v1beta1 v1" "admission crdconversion"
release $old/v0.3.1      $old/v0.3.1/config      "v1alpha1 v1beta1 v1" "admission crdconversion"
release $old/v0.4.0      $old/v0.4.0/config      "v1alpha1 v1beta1 v1" "admission crdconversion"
release ./operator       ./operator/config       "v1alpha1 v1beta1 v1" "admission crdconversion monitoring"
release $old/v0.6.0-rc.1 $old/v0.6.0-rc.1/config "v1beta1 v1"          "admission crdconversion monitoring"
