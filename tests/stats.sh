#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Prints how long the C functions and files are, of the product and of the tests. The aim: a median of 15 lines at most, a 95th percentile of 45, no function
# over 80; no file over 700.
set -eu

files() {
	git ls-files -co --exclude-standard -- "$@" | grep '\.[ch]$'
}

report() {
	title=$1
	shift
	list=$(files "$@")
	[ "$list" ] || return 0
	# shellcheck disable=SC2086 # a list of plain names
	ctags -f - -D 'TEST(name)=void name(void)' -D 'LOOP_TEST(name,n)=void name(void)' -D 'RANGE_TEST(name,first,end)=void name(void)' \
		-D 'SIGNAL_TEST(name,n)=void name(void)' -D 'FIXTURE(...)=' -D 'TEST_AGAIN(name,n)=' \
		--languages=C --langmap=C:.c.h --kinds-C=f --fields=+ne --excmd=number $list 2>/dev/null |
		awk -F'\t' '{
			for (i = 4; i <= NF; i++) {
				if ($i ~ /^line:/) first = substr($i, 6)
				if ($i ~ /^end:/) last = substr($i, 5)
			}
			print last - first + 1, $1, $2
		}' | sort -n |
		awk -v title="$title" '{ n[NR] = $1; what[NR] = $2 " (" $3 ")" }
		function at(part) { i = int(part * NR + 0.9999); return n[i < 1 ? 1 : i] }
		END {
			if (!NR) exit
			printf "%s: %d functions, median %d lines, 95th percentile %d, longest %d\n", title, NR, at(0.5), at(0.95), n[NR]
			for (i = NR; i > 0 && (i > NR - 3 || n[i] > 80); i--)
				printf("  %4d  %s%s\n", n[i], what[i], (n[i] > 80 ? "  <- over 80" : ""))
		}'
	# shellcheck disable=SC2086
	wc -l $list | awk -v title="$title" '$2 != "total" { total += $1; files++; if ($1 > 700) long = long sprintf("  %4d  %s  <- over 700\n", $1, $2) }
		END { printf "%s: %d files, %d lines\n%s", title, files, total, long }'
}

report product proto tls conf daemon client
report tests tests
