#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# build.sh folder : copies what belongs to the source into folder/redlockd-VERSION, builds the Debian packages there, and leaves them in the folder.
# In a working tree of git that is what git lists; elsewhere all but build folders. DEB_HOST_ARCH names other processors, as arm64.
set -eu

version=$(sed -n 's/^VERSION := //p' Makefile)
[ "$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)" = "$version" ] || {
	echo "debian/changelog and the Makefile name different versions" >&2
	exit 1
}
command -v dh >/dev/null || {
	echo "debhelper is missing: make deps deb" >&2
	exit 1
}
rm -rf "$1"
copy=$1/redlockd-$version
mkdir -p "$copy"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp -dp --parents -t "$copy"
else
	find . -name build -prune -o \( -type f -o -type l \) -print0 | xargs -0 cp -dp --parents -t "$copy"
fi
# The build of a caller that has exported its settings must be the same.
log=$(cd "$1" && pwd)/log
if ! (cd "$copy" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u CPPFLAGS -u LDFLAGS -u O -u DESTDIR -u PREFIX \
	dpkg-buildpackage -us -uc -b ${DEB_HOST_ARCH:+-a "$DEB_HOST_ARCH"}) >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	exit 1
fi
rm -rf "$copy"
ls "$1"/*.deb
