# SPDX-License-Identifier: BSD-2-Clause
# Sourced by layers.sh: the files of a folder from the bottom to the top. A file calls only files before it, and includes no
# header of a file above it, either.
# shellcheck shell=sh

standing='
conf         number words source schema address report yaml file secret users modes protect rules check sentinel list value reader load live conf show print docgen
daemon/core  event metric sample state core origin alarms journal kept_names value card admission flow quorum members health fences bounds judge meet likeness jump probe observe trust member claim readers contender lease lock notices calls round ask tokens releases parts admit move adoption release ticket waiters wait split rebase together acquire retry holders grant convert belief hold lessee denial renew adopt look break rendezvous home conclude lower enter engine
daemon/core  user ahead session who rules audit jobs page queuerows rows remote_holders ask_daemon semaphore listing remember waitgraph tell slow former news watch terms refusal pending stored rate rate_turns agent group renewals groups job places take pass runner seats announce contended permits heard circle deadlock survey list suspects auth end resume owned locks lockall permits_owned semaphores order take_again defer tally query noted show busy alarm drain revoke access admin deliver award gather issue obtain hangup recall restore command settle fire service view carry
client       moment person address room line secure channel pushes pauses outcome draft greeting taken holds pending tracking bundle counted watches
client       conn recovery exchange await farewell lock secret public many deferred rate ask following admin use_tls
client       complaint descriptors loss options arguments dial json rows place process letting nested shortage status deferring waiting family belief working several wakeups holding linger keeper signals keeping hold finding ward doctor board screen top ping query names watch force drain limit passwd run lead work move completion init cli main
'

# arrows folder-of-objects folder sources … : "caller callee" for each call from one file of the folder to another.
arrows() {
	objects=$1 folder=$2
	shift 2
	for source; do
		printf '%s\n' "$objects/${source%.c}.o"
	done | xargs nm -A | sed -E 's|^[^:]*/([^/:]*)\.o:|\1 |' | awk '
		$(NF - 1) ~ /^[TDBR]$/ { owner[$NF] = $1 }
		$(NF - 1) == "U" { wants[$1 " " $NF] = 1 }
		END { for (pair in wants) { split(pair, of, " "); if (of[2] in owner && owner[of[2]] != of[1]) print of[1], owner[of[2]] } }' | sort -u
}

# headers folder : "file header" for each header that a file of the folder includes from another file of it. Headers without a source file do not count, nor
# does conf.h, by which the others know the configuration.
headers() {
	grep -H "^#include \"$1/[a-z_]*\.h\"" "$1"/*.[ch] | sed -E "s|^$1/([a-z_]*)\.[ch]:#include \"$1/([a-z_]*)\.h\".*|\1 \2|" |
		while read -r file header; do
			[ "$file" = "$header" ] || [ "$1/$header" = conf/conf ] || [ ! -e "$1/$file.c" ] || [ ! -e "$1/$header.c" ] || printf '%s %s\n' "$file" "$header"
		done | sort -u
}

# misplaced folder : reads arrows or headers. Prints the upward ones, and files without a place.
misplaced() {
	awk -v folder="$1" -v standing="$standing" '
		function file(name) { if (!(name in at)) print "  " name " has no place in the order of " folder }
		BEGIN {
			n = split(standing, row, "\n")
			for (i = 1; i <= n; i++) { words = split(row[i], w, " "); if (w[1] == folder) for (j = 2; j <= words; j++) at[w[j]] = ++place }
		}
		{ file($1); file($2) }
		at[$2] > at[$1] { print "  " $1 " needs " $2 ", which stands above it" }'
}
