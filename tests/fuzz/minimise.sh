#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# minimise.sh folder source.c ... : leaves in tests/fuzz/corpus the fewest inputs that reach all that they and those in folder/found reach. A file
# that has a name instead of a hash is an example or once broke something: it stays.
set -eu

folder=$1
shift
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

for source; do
	target=$(basename "$source" .c)
	corpus=tests/fuzz/corpus/$target
	mkdir -p "$new/$target" "$folder/found/$target"
	before=$(find "$corpus" -type f | wc -l)
	"$folder/$target" -set_cover_merge=1 -timeout=60 -rss_limit_mb=1024 "$new/$target" "$corpus" "$folder/found/$target" >"$folder/$target.merge" 2>&1 ||
		{ tail -n 20 "$folder/$target.merge" && exit 1; }
	find "$corpus" -type f | grep -E '/[0-9a-f]{16}$' | xargs -r rm -f
	for input in "$new/$target"/*; do
		hash=$(sha1sum "$input" | cut -c 1-16)
		cp "$input" "$corpus/$hash"
	done
	# An input that stays under a name need not stay under its hash.
	find "$corpus" -type f | grep -vE '/[0-9a-f]{16}$' | while read -r named; do
		rm -f "$corpus/$(sha1sum "$named" | cut -c 1-16)"
	done
	printf '%s: %s inputs, %s before\n' "$target" "$(find "$corpus" -type f | wc -l)" "$before"
done
