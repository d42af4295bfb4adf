#!/usr/bin/env bash
# What the action does, by the variables that action.yml sets from its inputs: builds olmkit, judges the catalog, walks the
# upgrades and writes the job's summary. The exit code is the worse one of judging and walking.
set -euo pipefail

olmkit=${RUNNER_TEMP:?}/olmkit
make -s -C "$ACTION" build OLMKIT="$olmkit"
mkdir -p "$REPORT"
read -ra catalog <<<"$CATALOG"

judged=0
"$olmkit" catalog validate "${catalog[@]}" --fail-on "$FAIL_ON" \
	--report sarif="$REPORT/report.sarif" --report markdown="$REPORT/judged.md" || judged=$?

walk=("${catalog[@]}" --edges "$EDGES" --olm "$OLM" --fail-on "$FAIL_ON"
	--report json="$REPORT/report.json" --report junit="$REPORT/report.xml" --report markdown="$REPORT/walked.md")
[ -z "$PACKAGE" ] || walk+=(--package "$PACKAGE")
[ -z "$CHANNEL" ] || walk+=(--channel "$CHANNEL")
[ -z "$KUBERNETES" ] || walk+=(--kubernetes "$KUBERNETES")
[ -z "$OLM_VERSION" ] || walk+=(--olm-version "$OLM_VERSION")
[ -z "$SHARD" ] || walk+=(--shard "$SHARD")
since=${CHANGED_SINCE:-${BASE:-none}}
[ "$since" = none ] || walk+=(--changed-since "$since")
while IFS= read -r image; do
	[ -z "$image" ] || walk+=(--image "$image")
done <<<"$IMAGES"

walked=0
"$olmkit" upgrade test "${walk[@]}" || walked=$?

for part in judged walked; do
	[ ! -s "$REPORT/$part.md" ] || cat "$REPORT/$part.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
done
exit $((judged > walked ? judged : walked))
