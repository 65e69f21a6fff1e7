#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compile.sh folder compiler flag ... : plants each mistake of tests/sim/mutant (or PATCHES) below the folder, and complains, with its name, of each that has
# no place in the sources any more, that does not compile, or that leaves a script which Lua cannot load. It runs none of them: mutants.sh does.
# LUA: what loads.c is compiled and linked with. MISTAKES_SHARE=N: of those that have a place one of N is compiled, another with each commit.
set -u

if [ "$1" != --one ]; then
	patches=${PATCHES:-tests/sim/mutant}
	awk -f tests/sim/plant.awk "$patches"/*.patch 2>&1
	# shellcheck disable=SC2046 # a word for each mistake
	python3 -B tests/lib/share.py "${MISTAKES_SHARE:-1}" $(find "$patches" -name '*.patch' | sort | sed 's|.*/\(.*\)\.patch|\1|') |
		xargs -I '{}' -P "$(nproc)" sh "$0" --one '{}' "$@"
	exit
fi

# compiles source compiler flag ... : a call of a function that is gone would only be a warning before the linker.
compiles() {
	source=$1
	shift
	set -- "$@" "-I$folder" -I. -Werror=implicit-function-declaration
	if [ "${source##*/}" != scripts.c ]; then
		"$@" -fsyntax-only "$source"
		return
	fi
	# shellcheck disable=SC2086 # LUA: several words
	"$@" -o "$folder/loads" tests/sim/loads.c "$source" $LUA && "$folder/loads"
}

id=$2 folder=$3/$2
shift 3
sources=$(sh tests/sim/plant.sh "$id" "$folder" 2>/dev/null) || exit 0 # one that has no place was told above
for source in $sources; do
	said=$(compiles "$source" "$@" 2>&1) || printf '%s: what it leaves does not compile:\n%s\n' "$id" "$said"
done
