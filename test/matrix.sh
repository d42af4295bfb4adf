#!/usr/bin/env bash
# Walks the newest hops of the memcached operator on Kubernetes minors of embedded clusters under releases of OLM, and prints a table of
# what came of it: each of MINORS under each of OLMS (v0, v1), and the oldest and the newest of MINORS under each of RELEASES, the other
# releases of OLM v0. A pair that fails makes the exit code 1; the others are still walked. matrix.sh MINORS OLMS RELEASES FLAG…
set -uo pipefail
olmkit=bin/olmkit minors=$1 olms=$2 releases=$3
shift 3

# minors_of prints the minors in a list of the version report, from the oldest on.
minors_of() {
	"$olmkit" version -o json | sed -n '/"'"$1"'": \[/,/\]/s/^ *"v\([0-9]*\.[0-9]*\)\.[0-9]*",\{0,1\}$/\1/p'
}
if [ "$minors" = all ]; then minors=$(minors_of kubernetesReleases); fi
if [ "$releases" = all ]; then releases=$(minors_of olmReleases | sed '$d'); fi
mkdir -p bin/matrix
failed=0
printf '| Kubernetes | OLM | result | walk |\n|---|---|---|---|\n'

# pair walks on a minor under an OLM, which the flags after its name choose.
pair() {
	local minor=$1 olm=$2 log=bin/matrix/$1-$2.log began code result ran
	local chosen=(--kubernetes "$minor" "${@:3:2}")
	if "$olmkit" cluster build "${chosen[@]}" >"$log" 2>&1; then
		began=$SECONDS
		"$olmkit" upgrade test catalog "${chosen[@]}" "${@:5}" --report json="bin/matrix/$minor-$olm.json" >>"$log" 2>&1
		code=$?
	else
		began=$SECONDS code=1
	fi
	if [ "$code" -eq 0 ]; then result=passed; else result="failed ($log)" failed=1; fi
	ran=$(sed -n 's/^ran on a cluster of kind embedded, Kubernetes v\(.*\), OLM \(.*\)$/\1 | \2/p' "$log")
	printf '| %s | %s | %s s |\n' "${ran:-$minor | $olm}" "$result" "$((SECONDS - began))"
}

for minor in $minors; do
	for olm in $olms; do pair "$minor" "$olm" --olm "$olm" "$@"; done
done
read -ra all <<<"${minors//$'\n'/ }"
ends=("${all[0]}")
if ((${#all[@]} > 1)); then ends+=("${all[-1]}"); fi
for minor in "${ends[@]}"; do
	for release in $releases; do
		until=()
		case $release in
		0.28) until=(--to 0.4.0) ;; # it installs no NetworkPolicies, which the bundle of 0.5.0 has
		esac
		pair "$minor" "$release" --olm-version "$release" "$@" "${until[@]}"
	done
done
exit $failed
