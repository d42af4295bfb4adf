#!/bin/sh
# Makes everything that is generated anew in a copy of the tree, and fails if it differs from what is committed.
set -eu
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT INT TERM
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
make -C "$copy" --no-print-directory generate bundle catalog >"$copy.log" 2>&1 || {
	cat "$copy.log"
	rm -f "$copy.log"
	echo "generating failed; see above" >&2
	exit 1
}
rm -f "$copy.log"
rm -rf "$copy/bin"
stale=$(git ls-files --cached --others --exclude-standard | while read -r file; do
	cmp -s "$file" "$copy/$file" || echo "  $file"
done)
new=$(cd "$copy" && find . -type f | sed 's|^\./||' | while read -r file; do
	[ -e "$OLDPWD/$file" ] || echo "  $file"
done)
if [ -n "$stale$new" ]; then
	printf 'generated files are not up to date; run "make generate bundle catalog" and commit:\n%s\n' "$stale$new" >&2
	exit 1
fi
echo "generated files are up to date"
