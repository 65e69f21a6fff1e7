#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# next.sh build-folder [argument of redlockd ...] : says what to type once `make run` has started the daemon with these arguments.
set -u
build=$1
shift
tcp=$("$build/redlockd" "$@" --dump-config 2>/dev/null | sed -n '/^listen:/,/^[^ ]/s/^  tcp: \([^ ]*\).*/\1/p' | tr -d '"')
unix=$("$build/redlockd" "$@" --dump-config 2>/dev/null | sed -n '/^listen:/,/^[^ ]/s/^  unix: \([^ ]*\).*/\1/p' | tr -d '"')
http=$("$build/redlockd" "$@" --dump-config 2>/dev/null | sed -n '/^listen:/,/^[^ ]/s/^  http: \([^ ]*\).*/\1/p' | tr -d '"')
addr=
case $unix in
/run/redlockd/redlockd.sock | "") ;;
no) [ "$tcp" = 127.0.0.1:7420 ] || addr=" --addr $tcp" ;;
*) addr=" --addr $unix" ;;
esac
case $tcp in
no | "") nc="nc -U ${unix:-/run/redlockd/redlockd.sock}" ;;
*) nc="nc $(echo "$tcp" | sed 's/^\[//; s/\]\{0,1\}:\([0-9]*\)$/ \1/')" ;;
esac
printf '%-27s %-36s %s\n' "Next, in another terminal:" "$build/redlock$addr run demo -- sleep 60" "holds the lock 'demo' while its command runs" \
	"in a third one:" "$build/redlock$addr run demo -- echo mine" "waits for it; $build/redlock$addr ls shows who holds it" \
	"or by hand:" "$nc" "then type: LOCK demo wait=5s     (HELP lists the rest)"
case $http in
no | "" | unix:*) ;;
*) printf '%-27s %-36s %s\n' "in a browser:" "http://$http/" "who holds what, and who waits for it" ;;
esac
