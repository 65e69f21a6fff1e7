#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compilers.sh folder clang : everything must build without a warning with gcc, with clang and with sanitizers. The compiler of CC builds in the folder
# itself, the others build in folders below.
set -u
. tests/verdict.sh

folder=$1 clang=$2

case $($CC --version 2>/dev/null) in
*clang*) own=clang ;;
*) own=gcc ;;
esac

# builds how argument ... : make with these arguments must succeed.
builds() {
	how=$1
	shift
	# shellcheck disable=SC2086 # both carry options
	$MAKE $JOBS "$@" 2>&1
	verdict $? "the build with $how"
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
verdict_sum
