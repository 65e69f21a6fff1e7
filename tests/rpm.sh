#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rpm.sh folder : builds the packages of contrib/rpm/redlockd.spec in the folder, from a copy of the source. Together they must have the files that
# `make install` puts there, each once, and the documents that the spec adds. Debian's rpmbuild knows no packages of rpm distributions: what a build requires
# is not asked for, and nothing is installed.
set -u
. tests/verdict.sh

command -v rpmbuild >/dev/null || {
	echo "skipped: contrib/rpm: no rpmbuild is here"
	verdict_sum
	exit
}
folder=$1
rm -rf "$folder"
mkdir -p "$folder/SOURCES" "$folder/installed"
folder=$(cd "$folder" && pwd)
version=$(sed -n 's/^VERSION := //p' Makefile)
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then git ls-files --cached --others --exclude-standard; else find . -name build -prune -o -type f -print; fi |
	tar -czf "$folder/SOURCES/redlockd-$version.tar.gz" --transform "s|^|redlockd-$version/|" -T -
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u O rpmbuild -bb --nodeps --define "_topdir $folder" --define 'debug_package %{nil}' contrib/rpm/redlockd.spec >"$folder/log" 2>&1
verdict $? "rpmbuild: $(tail -n 20 "$folder/log")"

$MAKE install DESTDIR="$folder/installed" PREFIX=/usr LIBDIR=/usr/lib64 UNITDIR=/usr/lib/systemd/system >"$folder/log" 2>&1
verdict $? "make install: $(tail -n 5 "$folder/log")"
(cd "$folder/installed" && find . -type f -o -type l) | sed 's/^\.//' | sort >"$folder/expected"
rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$folder"/RPMS/*/*.rpm 2>/dev/null |
	sed -n 's/^[-l]\S* //p' | grep -vE '^/usr/(share/(doc|licenses)|lib/\.build-id)/' | sed '/^\/usr\/share\/man/s/\.gz$//' | sort >"$folder/found"
diff "$folder/expected" "$folder/found"
verdict $? "the packages do not have what make install puts there"
names=$(rpm -qp --qf '%{NAME} %{VERSION}\n' "$folder"/RPMS/*/*.rpm 2>/dev/null | sort | tr '\n' ' ')
[ "$names" = "libredlock $version libredlock-devel $version redlock $version redlockd $version " ]
verdict $? "the packages are $names"
verdict_sum
