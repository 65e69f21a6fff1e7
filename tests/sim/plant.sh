#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# plant.sh mutant folder : prints the sources that a program with this mistake is linked from, in front of all others. These are the files of daemon/core
# with MUTATED(mutant), and a changed copy, in the folder, of the file that tests/sim/mutant/<mutant>.sed changes: a .c, or the scripts. The first line of
# the sed script names that file (a script without its path).
# plant.sh --all folder : only checks that each sed script still changes something.
set -eu

lua=daemon/redis/lua

# change folder : applies the sed script. A sed script that changes nothing would plant no mistake: that is an error.
planted() {
	file=$(sed -n '1s/^# //p' "$1")
	case $file in
	*/*.c) ;;
	*/* | '') file='' ;;
	*.lua) file=$lua/$file ;;
	esac
	[ -f "$file" ] || { echo "$1: its first line is to name a .c or .lua file" >&2 && exit 1; }
	mkdir -p "$2/${file%/*}"
	sed -f "$1" "$file" >"$2/$file"
	if cmp -s "$file" "$2/$file"; then
		echo "$1 changes nothing" >&2
		exit 1
	fi
	echo "$file"
}

# folder script : embeds the scripts, with the changed one.
embedded() {
	for script in "$lua"/*.lua; do
		[ "$script" = "$2" ] || cp "$script" "$1/$lua"
	done
	sh daemon/redis/embed.sh "$1" "$1/$lua"/*.lua
	echo "$1/scripts.c"
}

id=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
if [ "$id" = --all ]; then
	for change in tests/sim/mutant/*.sed; do
		(planted "$change" "$folder" >"$folder/changed") || failed=1
	done
	exit "${failed:-0}"
fi

changed=
if [ -e "tests/sim/mutant/$id.sed" ]; then
	planted "tests/sim/mutant/$id.sed" "$folder" >"$folder/changed"
	changed=$(cat "$folder/changed")
fi
case $changed in
*.lua) embedded "$folder" "$changed" ;;
?*) echo "$folder/$changed" ;;
esac
if grep -q "MUTATED($id)" daemon/core/*.h; then
	ls daemon/core/*.c
else
	grep -l "MUTATED($id)" daemon/core/*.c || [ "$changed" ] || { echo "$id is not planted anywhere" >&2 && exit 1; }
fi
