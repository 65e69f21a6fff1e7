#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# cppcheck.sh kinds flag ... -- file.c ... : cppcheck over these files, compiled with those flags, for these kinds of findings. Ends with "N passed, N failed", a file each.
# A finding that is none is suppressed at its line, with the reason: // cppcheck-suppress id
set -u

kinds=$1 flags=
while [ "$1" != -- ]; do
	case $1 in
	-I* | -D*) flags="$flags $1" ;;
	esac
	shift
done
shift

if ! command -v cppcheck >/dev/null; then
	echo "cppcheck: please install the package cppcheck"
	exit 1
fi

# The lists of <sys/queue.h> are macros that must be known. Of "style", what only says how one might write is left out: that a variable may move
# inwards, or that a parameter may be const although a table of functions wants it as it is. The system's own headers are not looked into.
queue=$(echo '#include <sys/queue.h>' | gcc -E -M -x c - | tr ' ' '\n' | grep 'sys/queue\.h$')
# shellcheck disable=SC2086 # a list
findings=$(cppcheck -q -j "$(nproc)" --std=c11 $flags --include="$queue" --enable="$kinds" --inline-suppr \
	--suppress=missingIncludeSystem --suppress=variableScope --suppress=constParameter \
	--template='{file}:{line}: {severity}: {message} [{id}]' "$@" 2>&1)
[ -z "$findings" ] || printf '%s\n' "$findings"
failed=$(printf '%s' "$findings" | sed -n 's/^\([^: ]*\):[0-9].*/\1/p' | sort -u | wc -l)
[ -z "$findings" ] || [ "$failed" -gt 0 ] || failed=1
echo "$(($# - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
