#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh folder seeds : the simulator's own tests, every plan of the corpus, and the worlds of so many seeds from 1 on. They are the same for each commit:
# `make sweep` goes through new ones. The last line is "N passed, M failed".
set -u

folder=$1 seeds=$2
"$folder/sim" --self-test >"$folder/sim.log" 2>&1
cat "$folder/sim.log"
line=$(tail -n 1 "$folder/sim.log")
passed=${line%% *} failed=${line#*, } failed=${failed%% *}

for plan in tests/sim/corpus/*.plan; do
	if "$folder/sim" --replay "$plan"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
if "$folder/sim" --seeds "$seeds" --from 1 --jobs 2 --keep-going; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
fi
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
