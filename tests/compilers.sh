#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compilers.sh folder clang : everything must build without a warning with the compiler of CC, in the folder itself, and with sanitizers, in one below. The other
# one of gcc and clang reads all sources and must have nothing to say of them.
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
builds "$own" O="$folder" CC="$CC" all "$folder/unit" "$folder/libredlock.a"
case $own in
gcc) builds clang O="$folder/clang" CC="$clang -fsyntax-only" build-objects ;;
clang) builds gcc O="$folder/gcc" CC="gcc -fsyntax-only" build-objects ;;
esac
verdict_sum
