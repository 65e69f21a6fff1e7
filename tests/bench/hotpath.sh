#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# hotpath.sh folder : callgrind's instructions for one LOCK and one UNLOCK on the memory store, from the line to its answer, and what they
# allocate. The ceilings are for the build as it comes (-O2); raise one only with a reason.
set -u

build=$1
lock_ceiling=6916
unlock_ceiling=4662
passed=0 failed=0

# held figure ceiling what
held() {
	printf '%s: %s (at most %s)\n' "$3" "$1" "$2"
	if [ "$1" -le "$2" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# instructions function : of one request.
instructions() {
	valgrind --tool=callgrind --callgrind-out-file="$build/hotpath.$1" --toggle-collect="hotpath_$1" "$build/hotpath" 2>&1 |
		awk -v requests="$requests" '/Collected :/ { print int($4 / requests) }'
}

if said=$("$build/hotpath"); then
	requests=${said% *} allocations=${said#* }
	lock=$(instructions lock) unlock=$(instructions unlock)
	held "${lock:-999999}" $lock_ceiling "instructions per LOCK"
	held "${unlock:-999999}" $unlock_ceiling "instructions per UNLOCK"
	held "$allocations" 0 "allocations in $requests requests"
else
	failed=1
	echo "the hot path does not run"
fi
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
