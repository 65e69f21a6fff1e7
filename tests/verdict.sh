# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the suites that are scripts: counts what holds and what does not, and ends as a suite must.
# shellcheck shell=sh
passed=0 failed=0

# verdict status text : counts it, and says what was wrong.
verdict() {
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n' "$2"
	fi
}

# The last line of a suite, and its status.
verdict_sum() {
	printf '%s passed, %s failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ]
}
