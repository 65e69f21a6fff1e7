#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compilers.sh folder clang [short] : everything must build without a warning with the compiler of CC, in the folder itself, and with clang's sanitizers, in one below. The
# other one of gcc and clang reads all sources and must have nothing to say of them.
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
# `check` does without: there clang compiles the build with sanitizers.
case ${3-$own} in
gcc) builds clang O="$folder/clang" CC="$clang -fsyntax-only" build-objects ;;
clang) builds gcc O="$folder/gcc" CC="gcc -fsyntax-only" build-objects ;;
esac

# A distribution has flags of its own, and processors that lack what this one has: a compiler for them refuses the option.
printf '#!/bin/sh\ncase " $* " in *" -fcf-protection "*) exit 1 ;; esac\nexec %s "$@"\n' "$CC" >"$folder/other-cc"
chmod 755 "$folder/other-cc"
rm -rf "$folder/flags" "$folder/other"
builds "another level of _FORTIFY_SOURCE" O="$folder/flags" CPPFLAGS=-D_FORTIFY_SOURCE=3 "$folder/flags/proto/quote.o"
builds "a compiler for another processor" O="$folder/other" CC="$folder/other-cc" "$folder/other/proto/quote.o"
verdict_sum
