#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs.sh folder page ... : the manual pages are clean, they mention everything that the tables and programs know, and the README and the pages beside it name only
# make goals and files that exist. Some checks must also refuse a planted mistake.
# shellcheck disable=SC2013 # the loops are over words: goals and paths have no blanks
set -u

build=$1
shift
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
. tests/verdict.sh

# plain page : the page as one line of plain text, without repeated blanks.
plain() {
	mandoc -T ascii -O width=200 "$1" | sed 's/.\x08//g' | tr -s ' \n' ' '
}

# missing words : the lines of words whose text stands on none of their pages.
missing() {
	awk -F'\t' -v folder="$scratch" '
		function squeeze(s) { gsub(/[ \t\n]+/, " ", s); return s }
		function page(name) {
			if (!(name in text)) { text[name] = ""; getline text[name] <(folder "/" name ".txt") }
			return text[name]
		}
		{
			found = 0
			n = split($1, names, "|")
			for (i = 1; i <= n; i++) if (index(page(names[i]), squeeze($2))) found = 1
			if (!found) print $1 " lacks: " $2
		}' "$1"
}

ours=$(for page; do basename "$page" | sed 's/\(.*\)\.\(.\)$/\1 \2/'; done)

for page; do
	# These pages refer to each other although they are not installed.
	said=$(mandoc -T lint "$page" 2>&1 | awk -v ours="$ours" '
		BEGIN { n = split(ours, a, "\n"); for (i = 1; i <= n; i++) mine[a[i]] }
		/referenced manual not found: Xr/ { split($0, w, "Xr "); split(w[2], x, " "); if ((x[1] " " x[2]) in mine) next }
		{ print }')
	[ -s "$page" ] && [ -z "$said" ]
	verdict $? "$page is not clean: $said"
	plain "$page" >"$scratch/$(basename "$page").txt"
done

# The rendered parts of the pages agree with the tables.
"$build/docgen" <proto/redlock-protocol.7 | diff -u proto/redlock-protocol.7 -
verdict $? "proto/redlock-protocol.7 differs from the tables (make rendered)"
sed '/BEGIN of LOCK$/,/END of LOCK$/d' proto/redlock-protocol.7 >"$scratch/planted.7"
sed 's/\(BEGIN\|END\) of UNLOCK$/\1 of LOCK/' proto/redlock-protocol.7 >"$scratch/twice.7"
! "$build/docgen" <"$scratch/planted.7" >/dev/null 2>&1 && ! "$build/docgen" <"$scratch/twice.7" >/dev/null 2>&1
verdict $? "a request that the page lacks, or has twice, is not found"
"$build/figures" <daemon/redlockd.8 >"$scratch/rendered"
diff -u daemon/redlockd.8 "$scratch/rendered"
verdict $? "daemon/redlockd.8 differs from the table (make rendered)"
"$build/states" | diff -u daemon/core/STATES.md -
verdict $? "daemon/core/STATES.md differs from move.def (make rendered)"

# unnumbered file : the fields that the file writes as numbers and that field.def does not have as such: JSON would have them as texts.
unnumbered() {
	sed -nE 's/^(FIELD\([A-Z]+, ("[a-z_]+"), (COUNT|PRIORITY),|ANSWER_NUMBER\(("[a-z_]+")).*/\2\4/p' proto/field.def | sort >"$scratch/numbers"
	grep -oE 'reply_(put_)?int\([^,]+, (SPAN\()?"[a-z_]+"' "$1" | sed 's/.*, [^"]*//' | grep -v '_ms"' | sort -u | comm -23 - "$scratch/numbers" | tr '\n' ' '
}
find daemon -name '*.c' -exec cat {} + >"$scratch/daemon"
[ -z "$(unnumbered "$scratch/daemon")" ]
verdict $? "proto/field.def lacks fields of answers that are numbers: $(unnumbered "$scratch/daemon")"
printf '\treply_int(&r, "fence", fence);\n\treply_int(&r, "name", 1);\n' >"$scratch/planted"
[ "$(unnumbered "$scratch/planted")" = '"name" ' ]
verdict $? "a field that JSON would have as a text is not found"

# unlisted : the files of the core that its README lacks in the section of their folder, and those that it has and that are not there, or twice.
unlisted() {
	awk '/^## / { room = $2 } /^\| [a-z_]+ \|/ && $2 != "file" { print room "/" $2 }' daemon/core/README.md | sort >"$scratch/listed"
	find daemon/core -name '*.[ch]' | sed 's|^daemon/core/||; s|\.[ch]$||' | sort -u | comm -3 - "$scratch/listed" | tr -d '\t' | tr '\n' ' '
}
[ -z "$(unlisted)" ]
verdict $? "daemon/core/README.md does not list each file once: $(unlisted)"

# helpless : the targets that `make help` does not list, but for parts of others.
helpless() {
	$MAKE help | awk '{ print $1 }' | sort >"$scratch/helped"
	sed -n 's/^\.PHONY: //p' Makefile tests/tests.mk | tr ' ' '\n' | grep -vE '^(build-|lint-files|sanitize-func|\$)' | sort | comm -23 - "$scratch/helped" | tr '\n' ' '
}
[ -z "$(helpless)" ]
verdict $? "make help lacks: $(helpless)"

"$build/words" >"$scratch/words"
[ -s "$scratch/words" ]
verdict $? "the tables are empty"
missing "$scratch/words" >"$scratch/missing"
while IFS= read -r line; do verdict 1 "$line"; done <"$scratch/missing"
passed=$((passed + $(wc -l <"$scratch/words") - $(wc -l <"$scratch/missing")))

printf 'redlock-protocol.7\tno page says this\n' >"$scratch/planted"
[ "$(missing "$scratch/planted")" ]
verdict $? "a text that stands on no page is not found missing"

# undocumented header page : the functions of the header that the synopsis or the description of the page lacks, and those of the synopsis that the header
# lacks.
undocumented() {
	grep -oE '\bredlock_[a-z_]+\(' "$1" | tr -d '(' | sort -u >"$scratch/functions"
	sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/s/^\.Fn \(redlock_[a-z_]*\).*/\1/p' "$2" | sort -u >"$scratch/synopsis"
	sed '1,/^\.Sh DESCRIPTION/d' "$2" | sed -n 's/^\.Fn \(redlock_[a-z_]*\).*/\1/p' | sort -u >"$scratch/described"
	comm -3 "$scratch/functions" "$scratch/synopsis"
	comm -23 "$scratch/functions" "$scratch/described"
}
[ -z "$(undocumented client/lib/redlock.h client/lib/libredlock.3)" ]
verdict $? "libredlock.3 and redlock.h differ: $(undocumented client/lib/redlock.h client/lib/libredlock.3 | tr -s '\n\t' ' ')"
echo 'int redlock_planted(void);' | cat client/lib/redlock.h - >"$scratch/planted.h"
[ "$(undocumented "$scratch/planted.h" client/lib/libredlock.3)" ]
verdict $? "a function that libredlock.3 does not describe is not found missing"

# What ALGORITHMS.md cites of the tree is there, and what the tree cites of it.
cited() {
	find daemon proto client '(' -name '*.[ch]' -o -name '*.lua' ')' -exec \
		awk -f tests/cited.awk "$1" tests/sim/check/invariant.def "$scratch/cites.h" {} + 2>&1
}
: >"$scratch/cites.h"
cited daemon/core/ALGORITHMS.md >"$scratch/cited"
[ ! -s "$scratch/cited" ]
verdict $? "daemon/core/ALGORITHMS.md and the tree differ: $(tr '\n' ';' <"$scratch/cited")"
# shellcheck disable=SC2016 # the backquotes are the page's
printf '%s\n' '`daemon/core/round/round.c: round_outcome(), planted()` `daemon/core/planted.c` S99 L1. Planted: PLANTED, GUARD_OFF.' |
	cat daemon/core/ALGORITHMS.md - >"$scratch/planted.md"
printf '/* See ALGORITHMS.md, Votes; Planted. */\n/* Source: ALGORITHMS.md 11. */\n' >"$scratch/cites.h"
cited "$scratch/planted.md" >"$scratch/cited"
[ "$(wc -l <"$scratch/cited")" -eq 6 ] && [ "$(grep -ciE 'planted|S99|no section' "$scratch/cited")" -eq 6 ]
verdict $? "a citation of what is not there is not found missing: $(tr '\n' ';' <"$scratch/cited")"

# The page of a program describes all options that --help lists.
for program in redlockd.8 redlock.1; do
	for option in $("$build/${program%.*}" --help 2>&1 | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
		grep -qF -- "$option" "$scratch/$program.txt"
		verdict $? "$program lacks $option"
	done
done

# events page : where LOG of the page and the events that the daemon logs above debug differ: "<" is one that the page lacks, ">" one that only it has.
events() {
	find daemon -name '*.c' -exec grep -hoE '(log_event|core_log|admin_log|line_begin)\([^"]*"[a-z-]+"' {} + |
		sed -n '/LOG_DEBUG/d; s/.*"\(.*\)"/\1/p' | sort -u >"$scratch/logged"
	sed -n '/^\.Sh LOG/,/^\.Sh METRICS/s/^\.It Sy //p' "$1" | sed 's/ , /\n/g' | sort | diff "$scratch/logged" - | grep '^[<>]' | tr '\n' ';'
}
[ -z "$(events daemon/redlockd.8)" ] && [ -s "$scratch/logged" ]
verdict $? "daemon/redlockd.8, LOG, does not have each event once: $(events daemon/redlockd.8)"
sed 's/^\.It Sy node-slow/.It Sy node-planted/' daemon/redlockd.8 >"$scratch/planted.8"
[ "$(events "$scratch/planted.8")" = '< node-slow;> node-planted;' ]
verdict $? "an event that the page lacks, and one that the daemon lacks, are not found: $(events "$scratch/planted.8")"

# entries page : what is wrong with the entries of the options there: "<" is one that the page lacks, ">" one that it has beyond cli.def, or twice.
entries() {
	sed -nE "s/^CLI_OPTION\([A-Z_]+, \"([a-z-]+)\", '(.)', (NULL|\"([A-Z]+)\"), .*/.It Fl \2 , Fl -\1 Ar \4/p" client/cli/cli.def |
		sed 's/ Ar $//' | sort >"$scratch/options"
	grep '^\.It Fl . , Fl -' "$1" | sort | diff "$scratch/options" - | grep '^[<>]' | tr '\n' ';'
}
[ -z "$(entries client/cli/redlock.1)" ] && [ -s "$scratch/options" ]
verdict $? "client/cli/redlock.1 does not have one entry for each option of cli.def: $(entries client/cli/redlock.1)"
sed 's/^\.It Fl a , /.It Fl X , /; /^\.It Fl o ,/d; s/^\(\.It Fl h .*\)/\1\n\1/' client/cli/redlock.1 >"$scratch/planted.1"
[ "$(entries "$scratch/planted.1" | grep -oE '(< \.It Fl a|> \.It Fl X|< \.It Fl o|> \.It Fl h)' | wc -l)" -eq 4 ]
verdict $? "a wrong letter, a missing entry and a second one are not found: $(entries "$scratch/planted.1")"

# The make goals and the paths that these pages name exist.
pages='README.md CONTRIBUTING.md tests/RESULTS.md tests/bench/RESULTS.md'
${MAKE:-make} help | awk '{ print $1 }' >"$scratch/goals"
for page in $pages; do
	for goal in $(grep -oE '(^ *|`)make( [a-z][a-z0-9-]*)+' "$page" | sed 's/.*make//' | sort -u); do
		grep -qx "$goal" "$scratch/goals"
		verdict $? "$page: there is no make $goal"
	done
	for path in $(grep -oE '\b(proto|conf|daemon|client|tests|\.ci)/[A-Za-z0-9_./-]*' "$page" | sed 's/[.]$//' | sort -u); do
		[ -e "$path" ]
		verdict $? "$page: there is no $path"
	done
done

verdict_sum
