#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# cppcheck.sh kinds flag ... -- file.c ... : looks for these kinds of findings in the files, which are compiled with the flags. The last line is "N passed,
# N failed", where each file counts once. A wrong finding is suppressed at its line, with the reason: // cppcheck-suppress id
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

# cppcheck must know the macros of <sys/queue.h>. It does not look into other headers of the system. Two findings of "style" are left out: that a variable may
# move to an inner block, and that a parameter may be const, although a table of functions needs it as it is.
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
