#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# restart.sh build-folder : installs what is built there below a scratch folder, and has restart.py restart it under a systemd of its own, while clients use
# it. MAKE is the make to install with. As root.
set -u

tests=$(cd "$(dirname "$0")" && pwd)
share=$(mktemp -d) || exit 2
trap 'rm -rf "$share"' EXIT

${MAKE:-make} O="$1" install DESTDIR="$share/root" PREFIX=/usr >"$share/log" 2>&1 || {
	cat "$share/log"
	exit 2
}
cp "$1/load" "$share/load"
# Inside, /tmp is another one, and only the file system of / is there: this checkout may stand in neither.
mkdir "$share/tests"
cp -R "$tests" "$tests/../lib" "$tests/../func" "$share/tests"
sh "$tests/boot.sh" / "$share" env REDLOCKD_BUILD=/share /usr/bin/python3 -B /share/tests/systemd/restart.py /share/root
status=$?
cat "$share/said"
exit $status
