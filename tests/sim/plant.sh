#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# plant.sh mutant folder script ... : copies the scripts to the folder, with what the mistake changes in them. One whose place is not found any more
# would be no mistake at all: that is an error.
set -eu

change=tests/sim/mutant/$1.sed folder=$2
shift 2
mkdir -p "$folder"
cp "$@" "$folder"
[ -e "$change" ] || exit 0
sed -i -f "$change" "$folder"/*.lua
for script; do
	cmp -s "$script" "$folder/${script##*/}" || exit 0
done
echo "$change changes nothing" >&2
exit 1
