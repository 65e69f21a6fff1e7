#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# layout.sh folder machine source ... : makes folder/layout.c, the digest of all structures that may stand in a segment (base/segment.h), and of the machine. A
# program goes on from the segment of another only if both have the same digest. What is not a structure, a union, an enum or a constant may change freely. A
# change of what a member means, which no text shows, needs another number here:
meaning=2

folder=$1 machine=$2
shift 2
# A size in a structure may come of any header that is included, so each of them must be given.
missing=$(awk '
	FILENAME != file { file = FILENAME; given[file] = 1 }
	/^ *#include "/ { split($0, part, "\""); by[part[2]] = file }
	END { for (header in by) if (!(header in given)) print by[header] " includes " header }' "$@")
if [ "$missing" ]; then
	printf '%s\n' "$missing, which STRUCTURES in the Makefile lack" >&2
	exit 1
fi
digest=$({
	printf '%s\n%s\n' "$meaning" "$machine"
	awk '
		# Definitions that begin in the first column, without comments.
		{ gsub(/\/\*([^*]|\*[^\/])*\*\//, "") }
		/\/\*/ { sub(/\/\*.*/, ""); comment = 1; emit(); next }
		comment { if (!sub(/.*\*\//, "")) next; comment = 0 }
		{ emit() }
		function emit() {
			if (!inside && $0 ~ /^(static const )?(struct|union|enum)( [a-z_0-9]+)? \{/) inside = 1
			if (inside || $0 ~ /^#define [A-Z_0-9]+ +[^ ]/ || $0 ~ /^[A-Z_]+\(.*\)$/ || $0 ~ /^[A-Z]+_HEAD\(/) {
				line = $0
				gsub(/[ \t]+/, " ", line)
				sub(/ $/, "", line)
				if (line != "" && line != " ") print line
			}
			if (inside && ($0 ~ /^\}/ || $0 ~ /^[a-z].*\};$/)) inside = 0
		}' "$@"
} | sha256sum)
mkdir -p "$folder"
printf '/* Made by layout.sh. */\n#include "daemon/layout.h"\n\nconst char layout_digest[] = "%s";\n' "${digest%% *}" >"$folder/layout.c"
