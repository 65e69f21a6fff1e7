#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh folder seconds seed part source.c ... : runs each fuzzer of the folder for so many seconds with this seed (0: another one each time), as many at a time
# as there are processors. The fuzzers begin with the inputs of tests/fuzz/corpus: those with a name, and each part-th of the others (1: all). New inputs are
# kept in folder/found, and an input that breaks something in folder/broken: that one goes into the corpus once the bug is fixed.
set -u
. tests/verdict.sh

folder=$1 seconds=$2 seed=$3 part=$4
shift 4
started=0

fuzz() {
	rm -rf "$folder/corpus/$1"
	mkdir -p "$folder/corpus/$1" "$folder/found/$1" "$folder/broken"
	find "tests/fuzz/corpus/$1" -type f | sort | awk -v part="$part" '!/\/[0-9a-f]+$/ || ++n % part == 0' | xargs -r cp -t "$folder/corpus/$1"
	# Further inputs of the same kind.
	case $1 in
	fuzz_conf) more=tests/conf ;;
	*) more= ;;
	esac
	# An input that takes a minute has hung. libFuzzer measures by the wall clock: the slowest inputs take 0.6 s, and some seconds on a busy machine.
	"$folder/$1" -max_total_time="$seconds" -seed="$seed" -rss_limit_mb=1024 -timeout=60 -artifact_prefix="$folder/broken/$1-" \
		"$folder/found/$1" "$folder/corpus/$1" $more >"$folder/$1.log" 2>&1
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
	status=$(cat "$folder/$target.status")
	if [ "$status" -eq 0 ]; then
		printf '%s: %s\n' "$target" "$(grep -E '^Done ' "$folder/$target.log")"
	else
		tail -n 60 "$folder/$target.log"
	fi
	verdict "$status" "$target"
done
verdict_sum
