#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mutants.sh folder [mutant ...] : builds each mistake of daemon/core/mutant.def (or those named) into a simulator of its own and hunts it, until a seed
# shows it; two at a time. One that survives SEEDS seeds (300) fails. The last line is "N passed, M failed".
set -u

folder=$1
shift
seeds=${SEEDS:-300}

hunt() {
	id=$1 log=$folder/mutant/$1.log
	mkdir -p "$folder/mutant"
	if ! ${MAKE:-make} --no-print-directory -s "$folder/mutant/$id" >"$log" 2>&1; then
		printf '%-22s does not build\n' "$id"
		cat "$log"
		return
	fi
	"$folder/mutant/$id" --seeds "$seeds" --jobs 1 >"$log" 2>&1
	what=$(sed -n 's/^VIOLATION of \([A-Z0-9]*\) .*/\1/p' "$log" | head -n 1)
	seed=$(sed -n 's/^  seed \([0-9]*\),.*/\1/p' "$log" | head -n 1)
	if [ -n "$what" ]; then
		printf '%-22s killed by %-4s after %s seeds\n' "$id" "$what" "$seed"
	else
		printf '%-22s SURVIVED %s seeds\n' "$id" "$seeds"
	fi
}

if [ "${1:-}" = --one ]; then
	hunt "$2"
	exit 0
fi
# shellcheck disable=SC2046 # one word for each mutant
[ $# -gt 0 ] || set -- $("$folder/sim" --mutant-list | sed 's/ .*//')
printf '%s\n' "$@" | xargs -n 1 -P 2 sh "$0" "$folder" --one | tee "$folder/mutants.log"
killed=$(grep -c ' killed by ' "$folder/mutants.log")
printf '%s passed, %s failed\n' "$killed" $(($# - killed))
[ "$killed" -eq $# ]
