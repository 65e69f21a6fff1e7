#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# coverage.sh folder seeds from : runs that many worlds in the instrumented simulator, and prints the lines of daemon/core, proto and the scripts that
# none of them ran, except those that tests/sim/unreached lists with a reason. It counts the branches that were never taken, and lists them in
# folder/branches. The last line is "N passed, M failed": lines that were run or are listed, and the others.
set -eu

folder=$1 seeds=$2 from=$3
lines=$folder/script.lines
find "$folder" -name '*.gcda' -delete
rm -f "$lines" "$folder/unreached" "$folder/branches"
SIM_SCRIPT_LINES=$PWD/$lines "$folder/sim-covered" --seeds "$seeds" --from "$from" --jobs "$(nproc)" --keep-going || echo "(violations do not matter here: make sim reports them)"

# gcov's text of every object: "count: line: source", a branch behind its line.
for data in "$folder"/daemon/core/*.gcda "$folder"/proto/*.gcda; do
	gcov -b -t -o "${data%/*}" "$data" 2>/dev/null
done >"$folder/gcov.txt"

# Each object has a copy of an inline function: one that ran is enough.
awk -v branches="$folder/branches" '
	/:    0:Source:/ { file = $0; sub(/.*:Source:/, "", file); next }
	file !~ /^(daemon\/core|proto)\// { next }
	/^branch / { if ($0 ~ /taken 0%/) print file ":" number ": " text >branches; if ($0 !~ /never executed/) taken += $0 !~ /taken 0%/; if ($0 !~ /never executed/) all++; next }
	/^(call|function|unconditional)/ { next }
	{
		count = $0; sub(/:.*/, "", count); gsub(/ /, "", count)
		number = $0; sub(/^[^:]*:/, "", number); sub(/:.*/, "", number); gsub(/ /, "", number)
		text = $0; sub(/^[^:]*:[^:]*:/, "", text); gsub(/^[ \t]+|[ \t]+$/, "", text)
		if (count == "-" || count == "") next
		key = file ":" number
		if (!(key in known)) { known[key] = 1; of[key] = text; order[++n] = key }
		if (count !~ /^[#=]+$/) ran[key] = 1
	}
	END {
		for (i = 1; i <= n; i++)
			print (order[i] in ran) ? "ran" : "not", order[i] ": " of[order[i]]
		printf "branches %d of %d\n", taken, all
	}' "$folder/gcov.txt" >"$folder/lines"

# A script is identified by its length. embed.sh says which files it consists of, in which order.
script() {
	cat "$@" >"$folder/script.lua"
	length=$(wc -c <"$folder/script.lua")
	sort -u "$lines" | awk -v bytes="$length" '$1 == bytes { print $2 }' >"$folder/script.ran"
	for file; do
		awk -v file="$file" '{ print file ":" FNR ":" $0 }' "$file"
	done | awk -v ran="$folder/script.ran" '
		BEGIN { while ((getline number <ran) > 0) did[number] = 1 }
		{
			text = $0; sub(/^[^:]*:[^:]*:/, "", text); gsub(/^[ \t]+|[ \t]+$/, "", text)
			where = $0; sub(/^[^:]*:/, "", where); sub(/:.*/, "", where)
			name = $0; sub(/:.*/, "", name)
			if (text != "" && text !~ /^(--|end|else$|\}|local function)/)
				print (NR in did) ? "ran" : "not", name ":" where ": " text
		}' >>"$folder/lines"
}
lua=daemon/redis/lua
# shellcheck disable=SC2046 # the names have no blanks
script $(sed -e ':joined' -e '/\\$/{N;s/\\\n//;b joined' -e '}' daemon/redis/embed.sh | sed -n 's/^\tliteral batch //p' | sed -e 's/"//g' -e "s|\$lua|$lua|g")
script $lua/join.lua
script $lua/probe.lua

# "file: text of the line | reason", or "file: * | reason" for all of it.
awk -F' \\| ' '
	FNR == NR { if ($0 !~ /^#/ && NF == 2) listed[$1] = 1; next }
	/^branches/ { branches = substr($0, 10); next }
	{
		state = $0; sub(/ .*/, "", state)
		where = $0; sub(/^[a-z]* /, "", where)
		file = where; sub(/:.*/, "", file)
		text = where; sub(/^[^:]*:[^:]*: /, "", text)
		if (state == "ran") { reached++; next }
		if ((file ": *" in listed) || (file ": " text in listed)) { reasons++; next }
		print where; missing++
	}
	END {
		printf "%d lines reached, %d have a reason why not, %d have none; branches taken: %s\n", reached, reasons, missing, branches
		printf "%d passed, %d failed\n", reached + reasons, missing
		exit missing > 0
	}' tests/sim/unreached "$folder/lines"
