#!/usr/bin/env bash
# Walks the newest hops of the memcached operator on each Kubernetes minor of embedded clusters under each OLM, and prints a table of
# what came of it. A pair that fails makes the exit code 1; the others are still walked. matrix.sh MINORS OLMS FLAG…
set -uo pipefail
olmkit=bin/olmkit minors=$1 olms=$2
shift 2
if [ "$minors" = all ]; then minors=$("$olmkit" version -o json | sed -n 's/^ *"v\([0-9]*\.[0-9]*\)\.[0-9]*",\{0,1\}$/\1/p'); fi
mkdir -p bin/matrix
failed=0
printf '| Kubernetes | OLM | result | walk |\n|---|---|---|---|\n'
for minor in $minors; do
	for olm in $olms; do
		log=bin/matrix/$minor-$olm.log
		if "$olmkit" cluster build --kubernetes "$minor" --olm "$olm" >"$log" 2>&1; then
			began=$SECONDS
			"$olmkit" upgrade test catalog --kubernetes "$minor" --olm "$olm" "$@" \
				--report json="bin/matrix/$minor-$olm.json" >>"$log" 2>&1
			code=$?
		else
			began=$SECONDS code=1
		fi
		if [ "$code" -eq 0 ]; then result=passed; else result="failed ($log)" failed=1; fi
		ran=$(sed -n 's/^ran on a cluster of kind embedded, Kubernetes v\(.*\), OLM \(.*\)$/\1 | \2/p' "$log")
		printf '| %s | %s | %s s |\n' "${ran:-$minor | $olm}" "$result" "$((SECONDS - began))"
	done
done
exit $failed
