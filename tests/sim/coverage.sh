#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# coverage.sh folder clang seeds from : runs that many worlds on the instrumented simulator, and tells which lines of daemon/core, proto and the scripts
# none of them ran, and which conditions never came out one way. What stands in tests/sim/unreached, with its reason, is left out (cover/judge.py). Without
# seeds the worlds of the run before are judged once more, against the list as it is now. The last line is "N passed, M failed".
set -eu

folder=$1 clang=$2 seeds=${3:-} from=${4:-}
run=$folder/run
llvm() {
	program=$("$clang" -print-prog-name="llvm-$1")
	shift
	"$program" "$@"
}

if [ -n "$seeds" ]; then
	rm -rf "$run"
	mkdir -p "$run"
	SIM_SCRIPT_COVER=$PWD/$run/script LLVM_PROFILE_FILE=$PWD/$run/%2m.profraw \
		"$folder/sim-covered" --seeds "$seeds" --from "$from" --jobs "$(nproc)" --keep-going ||
		echo "(violations are the business of make sim; what ran is told all the same)"
	llvm profdata merge -o "$run/counts" "$run"/*.profraw
	llvm cov export "$folder/sim-covered" -instr-profile="$run/counts" >"$run/json"
elif [ ! -s "$run/json" ]; then
	echo "there is no run to judge: make sim-coverage" >&2
	exit 1
elif newer=$(find daemon/core proto daemon/redis/lua -name '*.*' -newer "$run/json") && [ -n "$newer" ]; then
	echo "newer than the run: $newer" >&2
	exit 1
fi
exec "${PYTHON:-/usr/bin/python3}" -B tests/sim/cover/judge.py "$folder"
