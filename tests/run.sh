#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh folder suite ... : makes each suite in turn, shows what it says and keeps it in folder/suite.log. A suite ends with the line
# "N passed, N failed"; one that ends without it, or with a bad status and nothing failed, counts as one failure. The last line here
# is the plain sum of them.
set -u

folder=$1
shift
mkdir -p "$folder" || exit 2
passed=0 failed=0 bad=

for suite; do
	log=$folder/$suite.log
	begin=$(date +%s)
	printf '== %s\n' "$suite"
	{
		# shellcheck disable=SC2086 # MAKE carries variables for the suite
		${MAKE:-make} --no-print-directory -s "$suite" 2>&1
		echo $? >"$folder/status"
	} | tee "$log"
	status=$(cat "$folder/status")
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
	ok=${line%% *} ko=${line#*, } ko=${ko%% *}
	if [ -z "$line" ] || { [ "$status" -ne 0 ] && [ "$ko" -eq 0 ]; }; then
		printf '%s ended with status %s and told no failure: counted as one\n' "$suite" "$status"
		ok=${ok:-0} ko=$((${ko:-0} + 1))
	fi
	passed=$((passed + ok)) failed=$((failed + ko))
	[ "$ko" -eq 0 ] || bad="$bad $suite"
	printf '== %s took %s s\n' "$suite" $(($(date +%s) - begin))
done

[ -z "$bad" ] || printf 'failed:%s\n' "$bad"
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
