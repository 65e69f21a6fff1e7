#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh build-folder : compares what the program says about configurations with what is expected. Each name.yaml has
#   name.err   the messages about it, if there are any; with an error among them the program must exit with 78
#   name.out   what --check-config prints, if there is no error
#   name.dump  what --dump-config prints, for some
#   name.args  further arguments, one a line, for some
# The dump of each valid one, and of one with a .dump, whose files may be missing, must yield the same values again. ACCEPT=1 writes the
# expected files anew, for a look at their diff.
set -u
# shellcheck source=tests/verdict.sh
. "$(dirname "$0")/../verdict.sh"
build=$(cd "${1:-build}" && pwd) || exit 2
cd "$(dirname "$0")" || exit 2
program=$build/redlockd
[ -x "$program" ] || program=$build/conf-tool
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT

chmod o= redis-password api-token http_open.yaml # they are named as secrets

# same name expected-file actual-file : the two must be the same.
same() {
	[ -n "${ACCEPT:-}" ] && { if [ -s "$3" ]; then cp "$3" "$2"; else rm -f "$2"; fi; }
	[ -e "$2" ] || set -- "$1" /dev/null "$3"
	diff -u "$2" "$3"
	verdict $? "$1"
}

# run mode file args-file : runs the program. Its output is in $scratch/out and $scratch/err, its status in $code.
run() {
	mode=$1 file=$2 extra=$3
	set -- --config "$file" "$mode"
	if [ -e "$extra" ]; then
		while IFS= read -r word; do set -- "$@" "$word"; done <"$extra"
	fi
	"$program" "$@" >"$scratch/out" 2>"$scratch/err"
	code=$?
}

# expected_code err-file : the status that belongs to these messages.
expected_code() {
	if grep -q ': error: ' "$1"; then echo 78; else echo 0; fi
}

# values dump : the dump without its comments, which name the origin of each value.
values() {
	sed 's/ *#.*//' "$1"
}

# round_trip name : the dump must be read again as the same values.
round_trip() {
	run --dump-config "$1.yaml" "$1.args"
	[ -e "$1.dump" ] || [ -n "${ACCEPT_DUMP:-}" ] && same "$1: dump" "$1.dump" "$scratch/out"
	cp "$scratch/out" "$scratch/first.yaml"
	run --dump-config "$scratch/first.yaml" /dev/null
	values "$scratch/first.yaml" >"$scratch/a"
	values "$scratch/out" >"$scratch/b"
	[ -s "$scratch/a" ] && diff -u "$scratch/a" "$scratch/b"
	verdict $? "$1: the dump is read as other values than it shows"
}

for input in *.yaml; do
	name=${input%.yaml}
	run --check-config "$input" "$name.args"
	[ "$code" -eq "$(expected_code "$scratch/err")" ]
	verdict $? "$name: ended with $code"
	same "$name: messages" "$name.err" "$scratch/err"
	same "$name: summary" "$name.out" "$scratch/out"
	if [ "$code" -eq 0 ] || [ -e "$name.dump" ]; then round_trip "$name"; fi
done

# The example and the manual agree with the table of the configuration.
"$build/conf-docgen" example | diff -u ../../conf/redlockd.yaml -
verdict $? "conf/redlockd.yaml differs from the table (make rendered)"
"$build/conf-docgen" manual <../../conf/redlockd.yaml.5 >"$scratch/manual" && diff -u ../../conf/redlockd.yaml.5 "$scratch/manual"
verdict $? "conf/redlockd.yaml.5 differs from the table (make rendered)"
sed 's/ *#.*//' ../../conf/redlockd.yaml >"$scratch/bare.yaml"
: >"$scratch/empty.yaml"
for shown in ../../conf/redlockd.yaml "$scratch/bare.yaml" "$scratch/empty.yaml"; do
	run --dump-config "$shown" /dev/null
	values "$scratch/out" >"$scratch/$(basename "$shown").values"
	[ "$code" -eq 0 ] && [ ! -s "$scratch/err" ]
	verdict $? "$shown has mistakes"
done
diff -u "$scratch/empty.yaml.values" "$scratch/redlockd.yaml.values"
verdict $? "the example differs from the defaults"
diff -u "$scratch/empty.yaml.values" "$scratch/bare.yaml.values"
verdict $? "the example without its comments differs from the defaults"
sed 's/^\( *\)#\([a-z_]*: \)/\1\2/; s/^store: memory/store: redis/; s|/var/log/redlockd/|/tmp/|' ../../conf/redlockd.yaml >"$scratch/full.yaml"
umask 077
for secret in redis-password sentinel-password http-token metrics-token api-token; do # which full.yaml names
	echo 0123456789abcdef >"$scratch/$secret"
done
cp users "$scratch/users"
run --check-config "$scratch/full.yaml" /dev/null
[ "$code" -eq 0 ] && [ ! -s "$scratch/err" ]
verdict $? "the example with all its keys has mistakes: $(cat "$scratch/err")"

# Files that cannot stand in this folder.
run --check-config "$scratch/missing.yaml" /dev/null
[ "$code" -eq 78 ] && grep -q "missing.yaml: error: cannot be read: No such file" "$scratch/err"
verdict $? "a missing file"
run --check-config "$scratch" /dev/null
[ "$code" -eq 78 ] && grep -q "error: cannot be read: Is a directory" "$scratch/err"
verdict $? "a folder"
yes '# filler' | head -c 1100000 >"$scratch/huge.yaml"
run --check-config "$scratch/huge.yaml" /dev/null
[ "$code" -eq 78 ] && grep -q "huge.yaml:1:1: error: this is larger than 1 MiB" "$scratch/err"
verdict $? "a huge file"
yes 'nonsense: 1' | head -n 5000 >"$scratch/flood.yaml"
run --check-config "$scratch/flood.yaml" /dev/null
[ "$code" -eq 78 ] && [ "$(grep -c ': error: ' "$scratch/err")" -eq 200 ] && grep -q '4800 more' "$scratch/err"
verdict $? "a flood of mistakes"

verdict_sum
