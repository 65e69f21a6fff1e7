#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compilers.sh folder clang : everything must build without a warning with gcc, with clang and with sanitizers. What CC stands for builds in the
# folder itself, the others in folders below.
set -u

folder=$1 clang=$2
passed=0 failed=0

case $($CC --version 2>/dev/null) in
*clang*) own=clang ;;
*) own=gcc ;;
esac

# builds how argument ... : make does.
builds() {
	how=$1
	shift
	# shellcheck disable=SC2086 # both carry options
	if $MAKE $JOBS "$@" 2>&1; then
		passed=$((passed + 1))
	else
		printf 'it does not build with %s\n' "$how"
		failed=$((failed + 1))
	fi
}

builds sanitizers build-sanitized
for kind in gcc clang; do
	case $kind in
	"$own") o=$folder cc=$CC ;;
	clang) o=$folder/clang cc=$clang ;;
	*) o=$folder/gcc cc=gcc ;;
	esac
	builds "$kind" O="$o" CC="$cc" all "$o/unit" "$o/libredlock.a"
done
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
