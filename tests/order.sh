# SPDX-License-Identifier: BSD-2-Clause
# Sourced by layers.sh: folders from the bottom to the top, and the files of each likewise. A file calls only files before it, and includes no header of a
# file above it, either. So a folder uses those above it in this list, and nothing below. daemon/core, for one, is all the folders daemon/core/….
# shellcheck shell=sh

standing='
proto                  text nearest command defect duration foreign help json quote token reader reply request docgen
conf                   words schema report yaml address nodes rules value reader check file conf docgen
daemon/base            mem arena map rng backoff buf clock fdlist file heap histogram log netstring offload pack peer pool roll
daemon/systemd         systemd fdstore unit
daemon/files           audit_file credentials frame journal runtime
daemon/core/event      event metric sample name_groups core origin turns alarms journal value
daemon/core/member     admission flow quorum members health fences clock_bounds judge clock_first_look same_jump clock_jump probe observe trust member member_records
daemon/core/lock       state kept_names remark holder_text claim readers contender lease lock notices
daemon/core/round      calls round ask tokens releases engine_data rendezvous home
daemon/core/engine     admission_wait move adopted_lease release ticket waiters wait split_vote rebase shared_lease acquire retry holders grant convert validity hold lease_owner vote_gaps renew adopt ask_holder break round_done votes_fall lock_request engine
daemon/core/session    user lines_ahead session client_identity rules audit jobs semaphore inner_session group
daemon/core/reply      page rows remote_holders ask_daemon listing records tell lists slow_log former_holders watch_news watch request_terms refusal pending renewal_limits permit_lines name_history show busy
daemon/core/rights     suspects auth access
daemon/core/deadlock   wait_graph local_circle deadlock
daemon/core/rate       stored_limits rate rate_turns
daemon/core/job        queue_rows job take_places take queue_pass session_jobs job_list queue_list job_order take_again
daemon/core/semaphore  permit_slots contended permits permit_resume permit_answer permit_step permit_restore
daemon/core/group      groups group_answer group_step
daemon/core/resume     session_end resume handover restore
daemon/core/request    list held_locks locks lockall held_permits semaphores job_requests all_figures help_stats
daemon/core/admin      alarm drain revoke admin
daemon/core/service    deliver hangup command after_step due_timers service service_view
daemon/store           keyfile keyspace shown share_list ledger rate table job_rows job_keep job_restore job_op job_show jobs home memory_key breaking sharing memory memory_whole statefile state
daemon/redis           word batch departure failure flight handshake resp script stream socket resolver link links redial post sentinel subscriber node_trouble node upstream
daemon/net             address admin lines slots shares listener inherited tcp_listeners pacing hub sockets held conn_state secure ending closing room output conn admission handshakes acceptor turns net carried carry
daemon/web             translate answer visits asker gate snapshot stream web
daemon/api             fields problem calls follower sessions api
daemon/restart         parcel once trial records carry restart carried
daemon/main            backlog answer_queue program reach passed descriptors rest verifier timer signals lasting guard wrong_port pump stores vanished listen exposition site status supervise outer_figures daemon main
client/lib             boottime display address line channel request pushes holds conn recovery exchange open lock commands job once tls
client/cli/io          terminal output options arguments dial
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
