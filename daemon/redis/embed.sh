#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# embed.sh folder script.lua ... : writes folder/scripts.c, the scripts as C string literals. batch is prelude, free, common, shares, long, queue, sharing,
# acquire, extend, release, look, break and batch in one; mark, probe and publish stand alone; call stands in front of table, of home with rate, and of home with
# jobs. Lines of comment become empty lines, to keep scripts short: a server that wants a password breaks the connection, and does not say why, when a script is
# longer than 16 KiB. The batch is: so it is loaded last.
set -eu

folder=$1
shift
lua=$(dirname "$1")

# literal NAME file ... : writes a literal with one "line\n" for each line.
literal() {
	printf 'static const char %s[] =\n' "$1"
	shift
	cat "$@" | sed -e 's/^ *--.*//' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/	"/' -e 's/$/\\n"/'
	printf ';\n\n'
}

{
	printf '/* Made by daemon/redis/embed.sh from daemon/redis/lua. */\n#include "daemon/redis/script.h"\n\n'
	literal batch "$lua/prelude.lua" "$lua/free.lua" "$lua/common.lua" "$lua/shares.lua" "$lua/long.lua" "$lua/queue.lua" "$lua/sharing.lua" \
		"$lua/acquire.lua" "$lua/extend.lua" "$lua/release.lua" "$lua/look.lua" "$lua/break.lua" "$lua/batch.lua"
	literal mark "$lua/mark.lua"
	literal probe "$lua/probe.lua"
	literal table "$lua/call.lua" "$lua/table.lua"
	literal home "$lua/call.lua" "$lua/home.lua" "$lua/rate.lua"
	literal jobs "$lua/call.lua" "$lua/home.lua" "$lua/jobs.lua"
	literal publish "$lua/publish.lua"
	printf 'const struct span script_text[SCRIPT_N] = {\n'
	printf '\t[SCRIPT_BATCH] = {batch, sizeof(batch) - 1},\n'
	printf '\t[SCRIPT_MARK] = {mark, sizeof(mark) - 1},\n'
	printf '\t[SCRIPT_PROBE] = {probe, sizeof(probe) - 1},\n'
	printf '\t[SCRIPT_TABLE] = {table, sizeof(table) - 1},\n'
	printf '\t[SCRIPT_HOME] = {home, sizeof(home) - 1},\n'
	printf '\t[SCRIPT_JOBS] = {jobs, sizeof(jobs) - 1},\n'
	printf '\t[SCRIPT_PUBLISH] = {publish, sizeof(publish) - 1},\n};\n'
} >"$folder/scripts.c.new"
mv "$folder/scripts.c.new" "$folder/scripts.c"
