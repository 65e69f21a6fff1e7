#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# coverage.sh folder clang seeds from : runs that many worlds in the instrumented simulator, and prints the lines of daemon/core, proto and the scripts
# that none of them ran, and the conditions that were never true, or never false, except those that tests/sim/unreached lists with a reason (cover/judge.py).
# Without seeds it judges the worlds of the previous run again, by the list as it is now. The last line is "N passed, M failed".
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
		echo "(violations do not matter here: make sim reports them)"
	llvm profdata merge -o "$run/counts" "$run"/*.profraw
	llvm cov export "$folder/sim-covered" -instr-profile="$run/counts" >"$run/json"
elif [ ! -s "$run/json" ]; then
	echo "there is no run to judge: make sim-coverage" >&2
	exit 1
elif newer=$(find daemon/core proto daemon/redis/lua -name '*.*' -newer "$run/json") && [ -n "$newer" ]; then
	echo "these files are newer than the run: $newer" >&2
	exit 1
fi
exec "${PYTHON:-/usr/bin/python3}" -B tests/sim/cover/judge.py "$folder"
