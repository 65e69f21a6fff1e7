#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mutants.sh folder [mutant ...] : builds each mistake of tests/sim/mutant (or those named) into a simulator of its own, and runs worlds until one violates an
# invariant; two mutants at a time. A mistake that no simulated world can show is built into the unit tests instead: the suite that its patch names must fail.
# A mutant that survives SEEDS worlds (3,000) from the seed FROM (1) on fails, and so does one that could not be built. Where its patch names a kind of world,
# only those are run, of five times as many seeds. The last line is "N passed, M failed".
set -u

folder=$1
shift
seeds=${SEEDS:-3000} from=${FROM:-1} patches=tests/sim/mutant

# built program : builds it. Without a program nothing was hunted, so no mistake has survived.
built() {
	mkdir -p "$folder/mutant"
	${MAKE:-make} --no-print-directory -s "$1" >"$log" 2>&1 && [ -x "$1" ] && return
	printf '%-28s could not be built\n' "$id"
	cat "$log"
	return 1
}

# A world that fails without the mistake as well proves nothing: the hunt goes on with the next world.
hunt() {
	built "$folder/mutant/$id" || return
	at=$from only=$(sed -n 's/^only: //p' "$patches/$id.patch")
	end=$((from + seeds * (${only:+4} + 1)))
	while [ "$at" -lt "$end" ]; do
		"$folder/mutant/$id" --seeds $((end - at)) --from "$at" ${only:+--only "$only"} --jobs 1 >"$log" 2>&1
		status=$?
		what=$(sed -n 's/^VIOLATION of \([A-Z0-9]*\) .*/\1/p' "$log" | head -n 1)
		seed=$(sed -n 's/^  seed \([0-9]*\),.*/\1/p' "$log" | head -n 1)
		if [ ! "$seed" ] && [ "$status" -ne 0 ]; then
			printf '%-28s does not run: status %s\n' "$id" "$status"
			cat "$log"
			return
		fi
		[ "$seed" ] || break
		if "$folder/sim" --seed "$seed" >/dev/null 2>&1; then
			printf '%-28s killed by %-4s with seed %s\n' "$id" "$what" "$seed"
			return
		fi
		at=$((seed + 1))
	done
	printf '%-28s SURVIVED the seeds %s to %s\n' "$id" "$from" $((end - 1))
}

# suite : it passes without the mistake, as `make unit` shows. One test that fails is enough.
hunt_by_unit() {
	built "$folder/mutant/$id.unit" || return
	if "$folder/mutant/$id.unit" "$1" >"$log" 2>&1; then
		printf '%-28s SURVIVED the unit tests of %s\n' "$id" "$1"
	elif test=$(sed -n 's/^[^ ]*:[FE]:[^:]*:\([A-Za-z0-9_]*\):.*/\1/p' "$log" | head -n 1) && [ "$test" ]; then
		printf '%-28s killed by unit %s: %s\n' "$id" "$1" "$test"
	else
		printf '%-28s the unit tests of %s do not run\n' "$id" "$1"
	fi
}

if [ "${1:-}" = --one ]; then
	id=$2 log=$folder/mutant/$2.log
	suite=$(sed -n 's/^unit: //p' "$patches/$id.patch")
	if [ "$suite" ]; then
		hunt_by_unit "$suite"
	else
		hunt
	fi
	exit 0
fi
if [ ! -x "$folder/sim" ]; then
	echo "$folder/sim could not be built" >&2
	exit 1
fi
if [ $# -eq 0 ]; then
	for patch in "$patches"/*.patch; do
		id=${patch##*/}
		set -- "$@" "${id%.patch}"
	done
fi
printf '%s\n' "$@" | xargs -n 1 -P 2 sh "$0" "$folder" --one | tee "$folder/mutants.log"
killed=$(grep -c ' killed by ' "$folder/mutants.log")
printf '%s passed, %s failed\n' "$killed" $(($# - killed))
[ "$killed" -eq $# ]
