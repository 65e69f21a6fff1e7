#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh folder seconds seed source.c ... : runs each fuzzer in folder for that many seconds, with this seed of chance (0: another each
# time), from the inputs in tests/fuzz/corpus, as many at a time as there are processors. What it finds is kept in folder/found, an input
# that breaks something in folder/broken: it belongs into the corpus once it is mended.
set -u

folder=$1 seconds=$2 seed=$3
shift 3
passed=0 failed=0 started=0

fuzz() {
	mkdir -p "$folder/found/$1" "$folder/broken"
	# What else there is of this kind.
	case $1 in
	fuzz_conf) more=tests/conf ;;
	*) more= ;;
	esac
	# An input that takes a minute hangs. libFuzzer measures by the wall clock: the longest here take 0.6 s, and seconds where the machine is busy.
	"$folder/$1" -max_total_time="$seconds" -seed="$seed" -rss_limit_mb=1024 -timeout=60 -artifact_prefix="$folder/broken/$1-" \
		"$folder/found/$1" "tests/fuzz/corpus/$1" $more >"$folder/$1.log" 2>&1
	echo $? >"$folder/$1.status"
}

for source; do
	target=$(basename "$source" .c)
	rm -f "$folder/$target.status"
	fuzz "$target" &
	started=$((started + 1))
	[ $((started % $(nproc))) -ne 0 ] || wait
done
wait

for source; do
	target=$(basename "$source" .c)
	if [ "$(cat "$folder/$target.status")" -eq 0 ]; then
		passed=$((passed + 1))
		printf '%s: %s\n' "$target" "$(grep -E '^Done ' "$folder/$target.log")"
	else
		failed=$((failed + 1))
		tail -n 60 "$folder/$target.log"
		printf 'FAILED: %s\n' "$target"
	fi
done
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
