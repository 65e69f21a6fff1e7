#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# plant.sh mutant folder : applies tests/sim/mutant/<mutant>.patch (or that in PATCHES) to copies, in the folder, of the files that it changes. Prints the
# sources that a program with this mistake is linked from, in front of all others: the changed .c; for a changed script, scripts.c; for a changed header, all
# of daemon/core. Several mutants in one word are planted together.
set -eu

patches=${PATCHES:-tests/sim/mutant} lua=daemon/redis/lua

# embedded folder : the scripts, with those that are changed, as a source.
embedded() {
	for script in "$lua"/*.lua; do
		[ -e "$1/$script" ] || cp "$script" "$1/$lua"
	done
	sh daemon/redis/embed.sh "$1" "$1/$lua"/*.lua
	echo "$1/scripts.c"
}

folder=$2
rm -rf "$folder"
mkdir -p "$folder"
# shellcheck disable=SC2046,SC2086 # a word for each mutant
awk -v folder="$folder" -f tests/sim/plant.awk $(printf "$patches/%s.patch " $1) >"$folder/changed"
while read -r file; do
	case $file in
	*.c) echo "$folder/$file" ;;
	*.h) ls daemon/core/*/*.c ;;
	*.lua) embedded "$folder" ;;
	esac
done <"$folder/changed" | sort -u
