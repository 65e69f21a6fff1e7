#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# layers.sh folder-of-objects compiler flag ... : which folders and files may include and call which others. What the tables do not allow is forbidden. Then
# each table must refuse a planted violation, and each mistake of `make mutants` must still find its place in the sources, and compile with these flags.
set -u
. tests/order.sh
. tests/verdict.sh

objects=$1
shift
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT

# folder: what its files may include, and those of its subfolders that have no row of their own. A word that ends in / allows all headers below that folder, and
# ! forbids one again. @pure allows the headers of libc without I/O and time, @libc all headers of libc and the kernel. Headers of other libraries must be
# named. The store has SQLite for the file of jobs: the store says what is written and when, and SQLite never waits, so it reads no clock.
includes='
proto         @pure stdio.h proto/
tls           @libc openssl/ tls/
conf          @libc yaml.h conf/ proto/
daemon/base   @libc sanitizer/asan_interface.h daemon/base/ proto/span.h
daemon/core   @pure stdio.h proto/ daemon/core/ daemon/base/ !daemon/base/clock.h
daemon/store  @pure sqlite3.h stdio.h dirent.h fcntl.h unistd.h sys/mman.h sys/param.h sys/stat.h sys/statvfs.h daemon/store/ daemon/core/event/event.h daemon/base/ !daemon/base/clock.h proto/span.h
daemon/redis  @libc hiredis/ event2/ tls/ daemon/redis/ daemon/core/event/event.h daemon/base/ proto/span.h
daemon/net    @libc event2/ tls/ daemon/net/ daemon/base/
daemon/web    @libc event2/ daemon/web/ daemon/base/ daemon/net/listener.h daemon/net/tcp_listeners.h daemon/net/address.h daemon/net/pacing.h proto/ tls/
daemon/api    @libc event2/ daemon/api/ daemon/web/ daemon/base/ proto/
daemon/files   @libc conf/ daemon/files/ daemon/base/ proto/span.h tls/context.h
daemon/systemd @libc conf/ daemon/systemd/ daemon/base/
daemon        @libc event2/ daemon/ conf/ proto/ tls/context.h
client/lib    @libc client/lib/ proto/ tls/
client/cli    @libc libsmartcols/ client/ proto/ tls/
'
pure='assert.h ctype.h endian.h errno.h inttypes.h limits.h stdarg.h stdbool.h stddef.h stdint.h stdlib.h string.h strings.h sys/queue.h'

# Inside daemon/core tests/order.sh holds the order of folders and files. A noun, and the nouns below it whose headers its two files may not include either.
apart='
journal  event core
round    lock
session  round engine_data engine
'

# folder: what its objects may not call.
time='clock_gettime|clock_boottime|clock_wall_us|gettimeofday|time|localtime.*|gmtime.*|usleep|nanosleep|sleep'
chance='rand|rand_r|srand|random|srandom|.rand48|getrandom|arc4random.*|rng_seed_from_system'
sockets='socket|socketpair|connect|accept4?|bind|listen|sendto|sendmsg|send|recv|recvfrom|recvmsg|poll|ppoll|select|epoll_.*|getaddrinfo'
files='open|openat|fopen|fdopen|read|write|close'
streams='fopen|printf|fprintf|puts|fputs|fwrite|putchar|perror'
memory='malloc|calloc|realloc|free|reallocarray|strdup|strndup|asprintf|mem_alloc|mem_grow|mem_copy'
calls="
proto         $time|$chance|$sockets|$files|$streams|$memory
daemon/core   $time|$chance|$sockets|$files|$streams|log_event|getenv
daemon/store  $time|$chance|$sockets|$streams|log_event|getenv
"

# files folder pattern : the files of the folder, and of its subfolders that have no row of their own, by that pattern.
files() {
	find "$1" -name "$2" | awk -v folder="$1" -v table="$includes" '
		BEGIN { n = split(table, rows, "\n"); for (i = 1; i <= n; i++) { split(rows[i], w, " "); if (index(w[1], folder "/") == 1) other[w[1] "/"] } }
		{ for (o in other) if (index($0, o) == 1) next; print }'
}

# included root folder : "file header" for each #include in the files of the folder. Headers of the system keep their <>.
included() {
	(cd "$1" && files "$2" '*.[ch]' | xargs \
		sed -nE 's|^[[:space:]]*#[[:space:]]*include[[:space:]]*(<[^>]*>).*|\1|; T quoted; F; p; b; :quoted s|^[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]*)".*|\1|; T; F; p') |
		paste -d ' ' - -
}

# forbidden root folder : the includes that the row of the folder does not allow.
forbidden() {
	included "$1" "$2" | awk -v folder="$2" -v table="$includes" -v pure="$pure" '
		function matches(word, header) { return word ~ /\/$/ ? index(header, word) == 1 : header == word }
		function allowed(header, angled,    i, word, ok) {
			for (i = 2; i <= words; i++) {
				word = row[i]
				if (word == "@pure") ok = ok || (angled && (header in is_pure))
				else if (word == "@libc") ok = ok || (angled && header ~ libc && !(header in library))
				else if (word ~ /^!/) { if (matches(substr(word, 2), header)) return 0 }
				else ok = ok || matches(word, header)
			}
			return ok
		}
		BEGIN {
			n = split(pure, a, " "); for (i = 1; i <= n; i++) is_pure[a[i]]
			n = split("check.h event.h evdns.h evhttp.h evutil.h lauxlib.h lua.h lualib.h yaml.h", a, " "); for (i = 1; i <= n; i++) library[a[i]]
			libc = "^((arpa|linux|net|netinet|sys)/)?[a-z0-9_]+[.]h$"
			n = split(table, rows, "\n")
			for (i = 1; i <= n; i++) { words = split(rows[i], row, " "); if (row[1] == folder) break }
		}
		{ header = $2; gsub(/[<>]/, "", header); if (!allowed(header, $2 ~ /^</)) print "  " $1 " includes " $2 }'
}

# too_near root noun : the headers that its files include and that it is to be apart from.
too_near() {
	others=$(printf '%s\n' "$apart" | awk -v noun="$2" '$1 == noun { $1 = ""; print }')
	for noun in $others; do
		(cd "$1/daemon/core" && grep -nH "^# *include \"daemon/core/[a-z]*/$noun\.h\"" ./*/"$2".[ch] 2>/dev/null)
	done
}

# called folder-of-objects folder : the calls that the row of the folder forbids.
called() {
	bad=$(printf '%s\n' "$calls" | awk -v folder="$2" '$1 == folder { print $2 }')
	(cd "$1" && files "$2" '*.o' | xargs nm -A -u) | awk -v bad="^(__)?($bad)(_chk)?\$" '
		$3 ~ bad { sub(/:$/, "", $1); print "  " $1 " calls " $3 }'
}

# expect clean|refused name text : "clean" expects no text, "refused" expects some.
expect() {
	{ [ "$1" = clean ] && [ -z "$3" ]; } || { [ "$1" = refused ] && [ -n "$3" ]; }
	verdict $? "$2: expected $1
$3"
}

# plant folder include : the row of the folder must refuse a file with this include.
plant() {
	rm -rf "$scratch/tree" && mkdir -p "$scratch/tree/$1"
	printf '#include <string.h>\n  # include %s /* planted */\n' "$2" >"$scratch/tree/$1/planted.c"
	expect refused "a planted $2 in $1" "$(forbidden "$scratch/tree" "$1")"
}

# plant_call folder function : the row of the folder must refuse a file with this call.
plant_call() {
	rm -rf "$scratch/tree" && mkdir -p "$scratch/tree/$1"
	printf 'void %s(void);\nvoid planted(void);\nvoid planted(void)\n{\n\t%s();\n}\n' "$2" "$2" |
		${CC:-cc} -fno-builtin -x c -c -o "$scratch/tree/$1/planted.o" -
	expect refused "a planted call of $2 in $1" "$(called "$scratch/tree" "$1")"
}

for folder in $(printf '%s\n' "$includes" | awk 'NF { print $1 }'); do
	[ "$(included . "$folder")" ] || verdict 1 "$folder has no includes"
	expect clean "$folder" "$(forbidden . "$folder")"
done
for noun in $(printf '%s\n' "$apart"); do
	[ -e "$(find daemon/core -name "$noun.h")" ] || verdict 1 "$noun.h is missing"
done
for noun in $(printf '%s\n' "$apart" | awk 'NF { print $1 }'); do
	expect clean "what $noun is apart from in daemon/core" "$(too_near . "$noun")"
done
for folder in $(printf '%s\n' "$calls" | awk 'NF { print $1 }'); do
	[ -e "$(find "$objects/$folder" -name '*.o' 2>/dev/null | head -n 1)" ] || verdict 1 "$folder has no objects"
	expect clean "calls of $folder" "$(called "$objects" "$folder")"
done

ordered="proto conf daemon/base daemon/systemd daemon/files daemon/core daemon/store daemon/redis daemon/net daemon/web daemon/api daemon/restart daemon/main client"
for folder in $ordered; do
	expect clean "order of the files of $folder" "$(arrows "$objects" "$folder" | misplaced "$folder")"
done

for folder in $ordered; do
	expect clean "order of the headers of $folder" "$(headers "$folder" | misplaced "$folder")"
	# The two headers of daemon/systemd do not include each other.
	[ "$(headers "$folder")" ] || [ "$folder" = daemon/systemd ] || verdict 1 "$folder has no headers"
done

plant proto '<time.h>'
plant proto '"daemon/base/buf.h"'
plant tls '"daemon/base/mem.h"'
plant tls '"proto/proto.h"'
plant daemon/core '"tls/tls.h"'
plant daemon/net '<openssl/ssl.h>'
plant conf '"daemon/base/mem.h"'
plant daemon/base '"daemon/core/event/event.h"'
plant daemon/base '<event2/event.h>'
plant daemon/core '"daemon/base/clock.h"'
plant daemon/core '<sys/socket.h>'
plant daemon/core '<time.h>'
plant daemon/core '<hiredis/hiredis.h>'
plant daemon/core '"daemon/store/memory.h"'
plant daemon/store '"daemon/base/clock.h"'
plant daemon/store '"daemon/core/service/service.h"'
plant daemon/redis '"daemon/core/service/service.h"'
plant daemon/redis '"daemon/net/net.h"'
plant daemon/net '"daemon/core/event/event.h"'
plant daemon/net '"proto/proto.h"'
plant daemon/web '"daemon/core/event/event.h"'
plant daemon/web '"daemon/net/net.h"'
plant daemon/api '"daemon/core/event/event.h"'
plant daemon/api '"tls/tls.h"'
plant daemon '<hiredis/hiredis.h>'
plant daemon '"client/lib/redlock.h"'
plant daemon/files '"daemon/main/internal.h"'
plant daemon/systemd '"daemon/main/internal.h"'
plant client/lib '"daemon/base/buf.h"'
plant client/lib '"client/cli/cli.h"'
plant client/cli '"conf/conf.h"'
rm -rf "$scratch/tree" && mkdir -p "$scratch/tree/daemon/core/event" "$scratch/tree/daemon/core/lock" "$scratch/tree/daemon/core/service"
echo '#include "daemon/core/event/event.h"' >"$scratch/tree/daemon/core/event/journal.c"
expect refused "a planted event.h in journal.c" "$(too_near "$scratch/tree" journal)"
for noun in lock service; do
	: >"$scratch/tree/daemon/core/$noun/$noun.c"
	: >"$scratch/tree/daemon/core/$noun/$noun.h"
done
echo '#include "daemon/core/service/service.h"' >"$scratch/tree/daemon/core/lock/lock.c"
expect refused "a planted service.h in lock.c" "$(cd "$scratch/tree" && headers daemon/core | misplaced daemon/core)"
expect refused "a planted call upward" "$(printf 'member/admission service/service\n' | misplaced daemon/core | grep 'member/admission needs service/service')"
expect refused "a file without a place" "$(printf 'member/planted member/admission\n' | misplaced daemon/core | grep 'member/planted has no place')"
rm -rf "$scratch/tree" && mkdir -p "$scratch/tree/client/cli" "$scratch/tree/client/lib"
echo '#include "client/cli/cli.h"' >"$scratch/tree/client/lib/holds.c" && : >"$scratch/tree/client/cli/cli.c"
expect refused "a planted header from above" "$(cd "$scratch/tree" && headers client | misplaced client)"
plant_call proto malloc
plant_call daemon/core clock_gettime
plant_call daemon/core getrandom
plant_call daemon/store sendto

expect clean "the mistakes of tests/sim/mutant" "$(sh tests/sim/compile.sh "$scratch/mutant" "$@" 2>&1)"
mistake=tests/sim/mutant/GUARD_OFF.patch
expect refused "a mistake whose text is gone" "$(sed 's/^-	/-	gone/' $mistake | awk -f tests/sim/plant.awk - 2>&1)"
expect refused "a mistake in another function" "$(sed 's/^\(@@ .* @@\) .*/\1 void gone(/' $mistake | awk -f tests/sim/plant.awk - 2>&1)"
expect refused "a mistake that changes nothing" "$(head -n 1 $mistake | awk -f tests/sim/plant.awk - 2>&1)"
expect refused "a mistake with two places" "$(sed 's/^-	.*/-		break;/' $mistake | awk -f tests/sim/plant.awk - 2>&1)"

# plant_mistake mutant text compiler flag ... : with this text in place of what it adds it must be complained of, by its name.
plant_mistake() {
	name=$1 text=$2
	shift 2
	rm -rf "$scratch/patches" && mkdir "$scratch/patches"
	sed "s/^+\([^+]\).*/+\1$text/" "tests/sim/mutant/$name.patch" >"$scratch/patches/$name.patch"
	expect refused "a mistake that leaves '$text'" "$(PATCHES=$scratch/patches sh tests/sim/compile.sh "$scratch/planted" "$@" 2>&1 | grep "^$name: ")"
}
plant_mistake GUARD_OFF 'm->gone = 1;' "$@"
plant_mistake GUARD_OFF 'gone();' "$@"
plant_mistake TICKET_COARSE 'then then' "$@"

# wide file … : the lines that are wider than the layout allows (.clang-format). A tab ends at a multiple of 8.
wide() {
	awk '
		function width(text,    n) {
			for (; match(text, /\t/); text = substr(text, RSTART + 1)) n = n + RSTART - 1 + 8 - (n + RSTART - 1) % 8
			return n + length(text)
		}
		width($0) > 160 { print FILENAME ":" FNR }' "$@"
}
printf '\t%0152d\n\t%0153d\n' 0 0 >"$scratch/wide.c"
[ "$(wide "$scratch/wide.c")" = "$scratch/wide.c:2" ]
verdict $? "a line of 161 columns is not found"
# shellcheck disable=SC2046 # one word for each file
too_wide=$(wide $(find daemon proto tls client conf tests -name '*.[ch]') daemon/core/*.md)
[ -z "$too_wide" ]
verdict $? "wider than 160 columns: $too_wide"

verdict_sum
