#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh folder seeds : the simulator's own tests, every plan of the corpus, and a short sweep. Its first seed comes from the commit, or from the clock
# where there is no repository, so that each change is tested in new worlds. The last line is "N passed, M failed".
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
commit=$(git rev-parse --verify --quiet HEAD 2>/dev/null | cut -c 1-10)
if [ -n "$commit" ]; then
	from=$((0x$commit))
	printf 'worlds from seed %s on, which is commit %s\n' "$from" "$commit"
else
	from=$(($(date +%s) * 1000))
	printf 'worlds from seed %s on, which is the clock\n' "$from"
fi
if "$folder/sim" --seeds "$seeds" --from "$from" --jobs 2 --keep-going; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
fi
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
