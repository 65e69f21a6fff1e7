#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compile.sh folder compiler flag ... : plants each mistake of tests/sim/mutant (or PATCHES) below the folder, and complains, with its name, of each that has
# no place in the sources any more, that does not compile, or that leaves a script which Lua cannot load. Mistakes in the same files are compiled together,
# and alone if they do not compile so, or if one takes the place of another. It runs none of them: mutants.sh does.
# LUA: what loads.c is compiled and linked with.
set -u

if [ "$1" != --together ]; then
	patches=${PATCHES:-tests/sim/mutant}
	awk -f tests/sim/plant.awk "$patches"/*.patch 2>&1
	awk '
		FNR == 1 && FILENAME != last { note(); last = FILENAME; files = ""; id = FILENAME; sub(/.*\//, "", id); sub(/\.patch$/, "", id) }
		/^--- a\// { files = files $2 }
		function note() { if (last) ids[files] = ids[files] " " id }
		END { note(); for (files in ids) print substr(ids[files], 2) }' "$patches"/*.patch |
		xargs -d '\n' -I '{}' -P "$(nproc)" sh "$0" --together '{}' "$@"
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

# complaints compiler flag ... : what the compiler has to say of all that is planted in the folder. Of a header those have to say something that include it.
complaints() {
	for source in $sources; do
		case $source in
		"$folder"/*) ;;
		*) grep -qFf "$folder/changed" "$source" || continue ;;
		esac
		said=$(compiles "$source" "$@" 2>&1) || printf '%s\n' "$said"
	done
}

ids=$2 below=$3
shift 3
folder=$below/${ids%% *}
mkdir -p "$below"
case $ids in
*" "*) ;;
*) # one that has no place was told above
	sources=$(sh tests/sim/plant.sh "$ids" "$folder" 2>/dev/null) || exit 0
	said=$(complaints "$@")
	[ -z "$said" ] || printf '%s: what it leaves does not compile:\n%s\n' "$ids" "$said"
	exit
	;;
esac

# Those that find no place beside the others are left for later.
later=$(sh tests/sim/plant.sh "$ids" "$folder" 2>&1 >/dev/null | sed -n 's|^[^ ]*/\([^/ ]*\)\.patch: .*|\1|p' | sort -u | tr '\n' ' ')
together=
for id in $ids; do
	case " $later" in
	*" $id "*) ;;
	*) together="$together $id" ;;
	esac
done
sources=$(sh tests/sim/plant.sh "${together# }" "$folder") && [ -z "$(complaints "$@")" ] || later=$ids
for id in $later; do
	sh "$0" --together "$id" "$below" "$@"
done
