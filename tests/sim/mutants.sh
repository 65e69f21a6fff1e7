#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mutants.sh folder [mutant ...] : builds each mistake of daemon/core/mutant.def (or those named) into a simulator of its own and hunts it, until a seed
# shows it. One that survives SEEDS seeds (300) fails. The last line is "N passed, M failed".
set -u

folder=$1
shift
seeds=${SEEDS:-300}
log=$folder/mutant.log
# shellcheck disable=SC2046 # one word for each mutant
[ $# -gt 0 ] || set -- $("$folder/sim" --mutant-list | sed 's/ .*//')
killed=0 alive=0

for id; do
	if ! ${MAKE:-make} --no-print-directory -s "$folder/mutant/$id" >"$log" 2>&1; then
		printf '%-22s does not build\n' "$id"
		cat "$log"
		alive=$((alive + 1))
		continue
	fi
	"$folder/mutant/$id" --seeds "$seeds" --jobs 2 >"$log" 2>&1
	what=$(sed -n 's/^VIOLATION of \([A-Z0-9]*\) .*/\1/p' "$log" | head -n 1)
	seed=$(sed -n 's/^  seed \([0-9]*\),.*/\1/p' "$log" | head -n 1)
	if [ -n "$what" ]; then
		printf '%-22s killed by %-4s after %s seeds\n' "$id" "$what" "$seed"
		killed=$((killed + 1))
	else
		printf '%-22s SURVIVED %s seeds\n' "$id" "$seeds"
		alive=$((alive + 1))
	fi
done
printf '%s passed, %s failed\n' "$killed" "$alive"
[ "$alive" -eq 0 ]
