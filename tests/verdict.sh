# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the suites that are scripts: it counts their checks and prints their last line.
# shellcheck shell=sh
passed=0 failed=0

# verdict status text : counts a check. With a status other than 0 it has failed, and the text says what is wrong.
verdict() {
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n' "$2"
	fi
}

# verdict_sum : prints the last line of a suite. Its status is that of the suite.
verdict_sum() {
	printf '%s passed, %s failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ]
}
