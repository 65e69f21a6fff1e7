#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# upgrade.sh folder : takes the packages in the folder, makes two later versions of them, which differ in nothing else, and has upgrade.py install one after
# the other under a systemd of its own, while clients hold locks. As root.
set -u

from=$1
tests=$(cd "$(dirname "$0")" && pwd)
share=$(mktemp -d) || exit 2
trap 'rm -rf "$share"' EXIT

# later file version folder : the package with another version.
later() {
	dpkg-deb -R "$1" "$share/tree" &&
		sed -i "s/^Version: .*/Version: $2/" "$share/tree/DEBIAN/control" &&
		dpkg-deb --root-owner-group -b "$share/tree" "$3" >/dev/null || exit 2
	rm -rf "$share/tree"
}

mkdir "$share/old" "$share/new" "$share/newer"
for package in redlockd redlock libredlock0; do
	file=$(ls "$from/${package}"_*.deb) || exit 2
	version=$(dpkg-deb -f "$file" Version)
	cp "$file" "$share/old"
	for step in new newer; do
		[ $step = new ] && next=$version+1 || next=$version+2
		later "$file" "$next" "$share/$step"
		echo "$next" >"$share/$step/version"
	done
done
# Inside, /tmp is another one, and only the file system of / is there: this checkout may stand in neither.
mkdir "$share/tests"
cp -R "$tests" "$tests/../lib" "$tests/../func" "$share/tests"
sh "$tests/boot.sh" / "$share" /usr/bin/python3 -B /share/tests/systemd/upgrade.py /share
status=$?
cat "$share/said"
exit $status
