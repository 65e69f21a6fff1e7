#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# first.sh folder packages : has first.py do what the README tells a newcomer to type, in a fresh Debian 12 under a systemd of its own, with the packages of the
# other folder. mmdebstrap makes that Debian once, with what the packages depend on in apt's cache, and it is kept in the folder. As root; needs mmdebstrap.
set -u

folder=$1 packages=$2
tests=$(cd "$(dirname "$0")" && pwd)
share=$(mktemp -d) || exit 2
trap 'rm -rf "$share"' EXIT
chmod 755 "$share"

# What a Debian with a person at it has. The base of Debian has no manuals, since mmdebstrap's smallest is meant for containers: man-db reads those of packages.
standard=ca-certificates,systemd-sysv,dbus,procps,sudo,iproute2,less,man-db,bash-completion,netcat-openbsd,python3,redis-server
depends=$(for package in redlockd redlock; do dpkg-deb -f "$packages/${package}"_*.deb Depends; done) || exit 2
if [ "$(cat "$folder/depends" 2>/dev/null)" != "$depends" ]; then
	command -v mmdebstrap >/dev/null || {
		echo "mmdebstrap is missing: make deps first-minutes"
		exit 1
	}
	rm -rf "$folder"
	mkdir -p "$folder"
	cp "$packages"/redlockd_*.deb "$packages"/redlock_*.deb "$share"
	# shellcheck disable=SC2016 # $1 is the root folder, for the hook
	mmdebstrap --quiet --variant=minbase --skip=cleanup/apt --include=$standard --customize-hook="copy-in $share /root" \
		--customize-hook='chroot "$1" sh -c "apt-get install -y --download-only /root/*/*.deb; rm -r /root/tmp.*"' \
		bookworm "$folder/debian" >"$folder/log" 2>&1 || {
		cat "$folder/log"
		exit 2
	}
	rm -f "$share"/*.deb
	printf '%s\n' "$depends" >"$folder/depends"
fi

mkdir -p "$share/redlockd/build/deb" "$share/systemd"
cp "$packages"/*.deb "$share/redlockd/build/deb"
cp "$tests/first.py" "$tests/terminal.py" "$share/systemd"
cp "$tests/../../README.md" "$share/redlockd"
sh "$tests/boot.sh" "$folder/debian" "$share" /usr/bin/python3 -B /share/systemd/first.py
status=$?
cat "$share/said"
[ $status -ne 99 ] || echo "no systemd can be booted here"
exit $status
