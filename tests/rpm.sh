#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rpm.sh folder package ... : builds the packages of contrib/rpm/redlockd.spec from a copy of the source, as root in a clean root that has nothing but a minimal
# Debian, make, rpm and the Debian packages that are named, else in the folder. Together they must have the files that `make install` puts there, each once,
# and the documents that the spec adds; in the clean root they are installed, and their programs print the version. Debian's rpm knows no packages of rpm
# distributions: what a build requires is not asked for. The clean root is kept as folder/root.tar.
set -u
. tests/verdict.sh

command -v rpmbuild >/dev/null || {
	echo "skipped: contrib/rpm: no rpmbuild is here"
	verdict_sum
	exit
}
folder=$1
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -rf "$folder/top" "$folder/installed" "$folder/root"
mkdir -p "$folder/top/SOURCES" "$folder/installed"
version=$(sed -n 's/^VERSION := //p' Makefile)
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	git ls-files --cached --others --exclude-standard
else
	find . -name build -prune -o -type f -print
fi |
	tar -czf "$folder/top/SOURCES/redlockd-$version.tar.gz" --transform "s|^|redlockd-$version/|" -T -
cp contrib/rpm/redlockd.spec "$folder/top"

# within command : runs the command in the clean root, where the folder top is /top.
# shellcheck disable=SC2016 # the inner shell fills these in
within() {
	unshare --mount --pid --fork --kill-child sh -euc '
		mount --make-rprivate /
		mount --bind "$1/top" "$1/root/top"
		mount --rbind /dev "$1/root/dev"
		mount -t proc none "$1/root/proc"
		exec chroot "$1/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -euc "$2"' - "$folder" "$1"
}

if [ "$(id -u)" -eq 0 ] && command -v mmdebstrap >/dev/null; then
	clean=yes
	if [ ! -e "$folder/root.tar" ]; then
		mmdebstrap --quiet --variant=apt --include="$(echo rpm make "$@" | tr ' ' ,)" bookworm "$folder/new.tar" >"$folder/log" 2>&1 &&
			mv "$folder/new.tar" "$folder/root.tar"
		verdict $? "the clean root: $(tail -n 5 "$folder/log")"
	fi
	mkdir "$folder/root" && tar -xf "$folder/root.tar" -C "$folder/root" --exclude='./dev/*' && mkdir "$folder/root/top" || exit 2
	within 'rpmbuild -bb --nodeps --define "_topdir /top" --define "debug_package %{nil}" /top/redlockd.spec' >"$folder/log" 2>&1
	verdict $? "rpmbuild: $(tail -n 20 "$folder/log")"
else
	clean=
	echo "skipped: contrib/rpm in a clean root: it takes root and mmdebstrap"
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u O rpmbuild -bb --nodeps --define "_topdir $folder/top" --define 'debug_package %{nil}' \
		contrib/rpm/redlockd.spec >"$folder/log" 2>&1
	verdict $? "rpmbuild: $(tail -n 20 "$folder/log")"
fi

$MAKE install DESTDIR="$folder/installed" PREFIX=/usr LIBDIR=/usr/lib64 UNITDIR=/usr/lib/systemd/system >"$folder/log" 2>&1
verdict $? "make install: $(tail -n 5 "$folder/log")"
(cd "$folder/installed" && find . -type f -o -type l) | sed 's/^\.//' | sort >"$folder/expected"
rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$folder"/top/RPMS/*/*.rpm 2>/dev/null |
	sed -n 's/^[-l]\S* //p' | grep -vE '^/usr/(share/(doc|licenses)|lib/\.build-id)/' | sed '/^\/usr\/share\/man/s/\.gz$//' | sort >"$folder/found"
diff "$folder/expected" "$folder/found"
verdict $? "the packages do not have what make install puts there"
names=$(rpm -qp --qf '%{NAME} %{VERSION}\n' "$folder"/top/RPMS/*/*.rpm 2>/dev/null | sort | tr '\n' ' ')
[ "$names" = "libredlock $version libredlock-devel $version redlock $version redlockd $version " ]
verdict $? "the packages are $names"
if [ "$clean" ]; then
	said=$(within 'rpm --install --nodeps --force-debian /top/RPMS/*/*.rpm >&2 && redlockd --version && redlock --version &&
		redlockd --check-config --quiet --config /etc/redlockd/redlockd.yaml' 2>"$folder/log")
	[ "$said" = "redlockd $version
redlock $version" ]
	verdict $? "installed, the packages say: $said $(tail -n 5 "$folder/log")"
	rm -rf "$folder/root"
fi
verdict_sum
