#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# coverage.sh folder clang seeds from [--write] : runs that many worlds in the instrumented simulator, and judges how much of daemon/core, proto and the
# scripts they ran (cover/judge.py). The last line is "N passed, M failed".
set -eu

folder=$1 clang=$2 seeds=$3 from=$4
shift 4
run=$folder/run
llvm() {
	program=$("$clang" -print-prog-name="llvm-$1")
	shift
	"$program" "$@"
}

rm -rf "$run"
mkdir -p "$run"
SIM_SCRIPT_COVER=$PWD/$run/script LLVM_PROFILE_FILE=$PWD/$run/%2m.profraw \
	"$folder/sim-covered" --seeds "$seeds" --from "$from" --jobs "$(nproc)" --keep-going ||
	echo "(violations do not matter here: make sim reports them)"
llvm profdata merge -o "$run/counts" "$run"/*.profraw
llvm cov export "$folder/sim-covered" -instr-profile="$run/counts" >"$run/json"
exec "${PYTHON:-/usr/bin/python3}" -B tests/sim/cover/judge.py "$folder" "$@"
