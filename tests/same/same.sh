#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# same.sh build commit from count [sed] : builds the commit in a folder of its own, and compares what it does with what this build does; see run.py. MAKE is
# the command that builds.
set -eu

build=$1 base=$(git rev-parse --verify --quiet "$2^{commit}") || {
	echo "same: $2 is no commit of this repository" >&2
	exit 2
}
tree=$build/same/$base
if [ ! -d "$tree" ]; then
	mkdir -p "$build/same/new"
	git archive "$base" | tar -x -C "$build/same/new"
	mv "$build/same/new" "$tree"
fi
(cd "$tree" && unset MAKEFLAGS MAKELEVEL && $MAKE O=build build/same-worlds build/same-fuzz_service build/same-fuzz_session)
exec /usr/bin/python3 -B tests/same/run.py "$build" "$tree/build" "$tree" "$3" "$4" "${5:-}"
