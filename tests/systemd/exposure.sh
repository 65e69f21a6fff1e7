#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# exposure.sh : what systemd-analyze says of the sandbox of the unit that is installed. It may say MOST at most.
set -u
. tests/verdict.sh

MOST=1.2
command -v systemd-analyze >/dev/null || {
	verdict 1 "the sandbox of the unit is not judged: systemd-analyze is missing, of the Debian package systemd"
	verdict_sum
	exit
}
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
sed -e 's|@SBINDIR@|/usr/sbin|g' -e 's|@SYSCONFDIR@|/etc|g' redlockd.service >"$scratch/redlockd.service"
said=$(LC_ALL=C systemd-analyze security --offline=true --no-pager "$scratch/redlockd.service" 2>&1)
score=$(echo "$said" | sed -n 's/.*exposure level for redlockd.service: \([0-9.]*\).*/\1/p')
echo "exposure: $score, of at most $MOST"
[ -n "$score" ] && awk "BEGIN { exit !($score <= $MOST) }"
verdict $? "the unit is exposed too much: $(echo "$said" | grep '^-')"
verdict_sum
