# SPDX-License-Identifier: BSD-2-Clause
# Sourced by layers.sh: folders from the bottom to the top, and the files of each likewise. A file calls only files before it, and includes no header of a
# file above it, either. So a folder uses those above it in this list, and nothing below. daemon/core, for one, is all the folders daemon/core/….
# shellcheck shell=sh

standing='
proto                  text nearest command defect duration foreign help json quote token reader reply request docgen
conf                   words schema report yaml address nodes rules value reader check file conf docgen
daemon/base            mem arena map rng buf clock fdlist heap histogram log netstring offload pack peer pool roll
daemon/systemd         systemd unit
daemon/files           audit_file credentials frame journal runtime
daemon/core/event      event metric origin core journal value
daemon/core/member     admission members health probe clock observe member
daemon/core/lock       claim lease lock
daemon/core/round      round engine_data home
daemon/core/engine     move release wait acquire retry grant break hold renew adopt engine
daemon/core/session    session client bid jobs semaphore group
daemon/core/reply      remote_holders listing records send lists watch history show
daemon/core/rights     suspects auth access
daemon/core/deadlock   wait_graph deadlock
daemon/core/rate       rate
daemon/core/job        job job_list take queue
daemon/core/semaphore  permit_lines permits permit_step permit_restore
daemon/core/group      groups
daemon/core/resume     resume handover restore
daemon/core/request    locks lockall semaphores job_requests queries
daemon/core/admin      admin alarm
daemon/core/service    command after_step service
daemon/store           keyfile keyspace ledger job_rows job_keep job_restore jobs home memory_key memory memory_whole state
daemon/redis           word batch departure failure handshake resp loop script stream socket resolver link redial sentinel subscriber node_trouble node upstream
daemon/net             address lines slots shares listener inherited tcp_listeners pacing hub sockets held conn_state secure closing output conn admission handshakes acceptor turns net carry
daemon/web             translate answer visits asker gate snapshot stream web
daemon/api             fields problem calls follower sessions api
daemon/restart         parcel once trial records carry restart carried
daemon/main            backlog answer_queue program passed descriptors rest verifier signals guard pump stores removed_files listen exposition site supervise outer_figures daemon main
client/lib             boottime display address line channel request pushes holds conn recovery exchange open lock commands job once tls
client/cli/io          output options arguments dial
client/cli/run         process wait_display waiting descendants locks_held once lease keeper hold run
client/cli/command     doctor top query watch request passwd move completion
client/cli             cli main
'

# arrows folder-of-objects folder : "caller callee" for each call from one file below the folder to another, and each object that is missing. proto/docgen.c,
# a tool of the build, has none there.
arrows() {
	find "$2" -name '*.c' ! -path proto/docgen.c | sed "s|.*|$1/&|; s|c$|o|" | xargs nm -A 2>&1 | sed "s|^$1/$2/||; s|\.o:| |" | awk '
		$(NF - 1) ~ /^[TDBR]$/ { owner[$NF] = $1 }
		$(NF - 1) == "U" { wants[$1 " " $NF] = 1 }
		/No such file/ { print }
		END { for (pair in wants) { split(pair, of, " "); if (of[2] in owner && owner[of[2]] != of[1]) print of[1], owner[of[2]] } }' | sort -u
}

# headers folder : "file header" for each header that a file below the folder includes from another one there. Headers without a source file do not count, nor
# does conf.h, by which the others know the configuration.
headers() {
	find "$1" -name '*.[ch]' -exec grep -H "^#include \"$1/" {} + | sed -nE "s|^$1/([a-z_/]*)\.[ch]:#include \"$1/([a-z_/]*)\.h\".*|\1 \2|p" |
		while read -r file header; do
			[ "$file" = "$header" ] || [ "$1/$header" = conf/conf ] || [ ! -e "$1/$file.c" ] || [ ! -e "$1/$header.c" ] || printf '%s %s\n' "$file" "$header"
		done | sort -u
}

# misplaced folder : reads arrows or headers. Prints the upward ones, and files without a place.
misplaced() {
	awk -v folder="$1" -v standing="$standing" '
		function file(name) { if (!(name in at)) print "  " name " has no place in the order of " folder }
		function place(row, room,    i) { for (i = 2; i <= words; i++) at[room row[i]] = ++places }
		BEGIN {
			n = split(standing, row, "\n")
			for (i = 1; i <= n; i++) {
				words = split(row[i], w, " ")
				if (index(w[1] "/", folder "/") == 1) place(w, substr(w[1] "/", length(folder) + 2))
			}
		}
		{ file($1); file($2) }
		at[$2] > at[$1] { print "  " $1 " needs " $2 ", which stands above it" }'
}
