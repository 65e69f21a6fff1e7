#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install.sh : installs below a scratch DESTDIR, once as a package does and once with the default prefix. Every file must be in its place, the programs must
# run, the configuration must be valid, the library must link, and uninstall must leave nothing but the configuration.
set -u

scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
. tests/verdict.sh

# install_into name prefix : installs into scratch/name.
install_into() {
	$MAKE install DESTDIR="$scratch/$1" PREFIX="$2" >"$scratch/log" 2>&1
	verdict $? "install with PREFIX=$2: $(cat "$scratch/log")"
}

# lies root path ... : these files are below root, and no others.
lies() {
	root=$1
	shift
	for path; do printf '%s\n' "$path"; done | sort >"$scratch/expected"
	(cd "$root" && find . -type f -o -type l | sed 's/^\.//' | sort) >"$scratch/found"
	diff "$scratch/expected" "$scratch/found"
	verdict $? "the files below $root"
}

# unit_names file text : the unit file has the text, and no placeholder is left in it.
unit_names() {
	grep -qF -- "$2" "$1" && ! grep -q '@[A-Z]*@' "$1"
	verdict $? "$1 lacks: $2"
}

version=$(sed -n 's/^VERSION := //p' Makefile)
install_into usr /usr
lies "$scratch/usr" /usr/sbin/redlockd /usr/bin/redlock /usr/include/redlock.h /usr/include/redlock/poll.h /usr/include/redlock/libevent.h \
	/usr/include/redlock/libuv.h /usr/include/redlock/glib.h /usr/lib/libredlock.a /usr/lib/sysusers.d/redlockd.conf \
	/usr/lib/libredlock.so /usr/lib/libredlock.so.0 "/usr/lib/libredlock.so.$version" /usr/lib/pkgconfig/redlock.pc \
	/usr/share/man/man1/redlock.1 /usr/share/man/man3/libredlock.3 /usr/share/man/man5/redlockd.yaml.5 \
	/usr/share/man/man7/redlock-protocol.7 /usr/share/man/man8/redlockd.8 \
	/usr/share/bash-completion/completions/redlock /usr/share/zsh/site-functions/_redlock /usr/share/fish/vendor_completions.d/redlock.fish \
	/lib/systemd/system/redlockd.service /lib/systemd/system/redlockd.socket /etc/redlockd/redlockd.yaml
unit_names "$scratch/usr/lib/systemd/system/redlockd.service" 'ExecStart=/usr/sbin/redlockd --config /etc/redlockd/redlockd.yaml'

(umask 077 && $MAKE install DESTDIR="$scratch/local" PREFIX=/usr/local) >"$scratch/log" 2>&1
verdict $? "install with PREFIX=/usr/local: $(cat "$scratch/log")"
hidden=$(find "$scratch/local/usr" "$scratch/local/etc" ! -type l ! -perm -0444)
[ -z "$hidden" ]
verdict $? "installed with umask 077, these are for root alone: $hidden"
[ -e "$scratch/local/usr/local/lib/sysusers.d/redlockd.conf" ]
verdict $? "with PREFIX=/usr/local the users are not where systemd-sysusers looks"
unit_names "$scratch/local/etc/systemd/system/redlockd.service" 'ExecStart=/usr/local/sbin/redlockd --config /usr/local/etc/redlockd/redlockd.yaml'
install_into opt /opt/redlockd
[ -e "$scratch/opt/etc/sysusers.d/redlockd.conf" ]
verdict $? "with PREFIX=/opt/redlockd the users are not where systemd-sysusers looks"

"$scratch/usr/usr/sbin/redlockd" --version | grep -q '^redlockd [0-9]'
verdict $? "redlockd does not print its version"
"$scratch/usr/usr/bin/redlock" --version | grep -q '^redlock [0-9]'
verdict $? "redlock does not print its version"
"$scratch/usr/usr/sbin/redlockd" --config "$scratch/usr/etc/redlockd/redlockd.yaml" --check-config >"$scratch/log" 2>&1
verdict $? "the installed configuration: $(cat "$scratch/log")"

cat >"$scratch/program.c" <<'C'
#include <redlock.h>
int main(void)
{
	return redlock_now_us() > 0 ? 0 : 1;
}
C
${CC:-cc} -Wall -Wextra -Werror -std=c11 -I"$scratch/usr/usr/include" -o "$scratch/program" "$scratch/program.c" -L"$scratch/usr/usr/lib" -lredlock &&
	LD_LIBRARY_PATH="$scratch/usr/usr/lib" "$scratch/program"
verdict $? "a program does not link against the installed library, or does not run"
cat >"$scratch/secure.c" <<'C'
#include <redlock.h>
#include <stdio.h>
int main(void)
{
	struct redlock_tls tls = {.size = sizeof(tls), .ca_file = "/nonexistent/ca.pem"};
	char why[256];
	struct redlock *c;

	puts(redlock_use_tls(&tls, why, sizeof(why)) ? why : "?");
	return redlock_open("tls://localhost:1", 1000, &c) ? 0 : 1;
}
C
said=$(${CC:-cc} -Wall -Wextra -Werror -std=c11 -I"$scratch/usr/usr/include" -o "$scratch/secure" "$scratch/secure.c" -L"$scratch/usr/usr/lib" -lredlock -lssl -lcrypto &&
	LD_LIBRARY_PATH="$scratch/usr/usr/lib" "$scratch/secure")
[ "$said" = '/nonexistent/ca.pem: cannot be read: No such file or directory' ]
verdict $? "a program that uses TLS does not link against the installed library, or does not run: $said"
readelf -d "$scratch/program" | grep -q 'libredlock\.so\.0'
verdict $? "the program was not linked against the shared library"
PKG_CONFIG_LIBDIR="$scratch/usr/usr/lib/pkgconfig" pkg-config --libs redlock 2>&1 | grep -q -e '-lredlock'
verdict $? "pkg-config does not know redlock"
[ "$(PKG_CONFIG_LIBDIR="$scratch/usr/usr/lib/pkgconfig" pkg-config --modversion redlock)" = "$version" ]
verdict $? "pkg-config names another version of redlock than $version"
grep -oE '\bredlock_[a-z_]+\(' client/lib/redlock.h | tr -d '(' | sort -u >"$scratch/declared"
nm -D --defined-only "$scratch/usr/usr/lib/libredlock.so" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }' | sort | diff "$scratch/declared" -
verdict $? "libredlock.so exports other functions than redlock.h declares: see client/lib/libredlock.map"
sed -n 's/^ \(redlock_[a-z_]*\)@.*/\1/p' debian/libredlock0.symbols | sort | diff "$scratch/declared" -
verdict $? "debian/libredlock0.symbols has other functions than redlock.h"
cc=${CC:-cc}
$cc -std=c11 -I"$scratch/usr/usr/include" -o "$scratch/static" "$scratch/program.c" "$scratch/usr/usr/lib/libredlock.a" && "$scratch/static"
verdict $? "a program does not link against the installed archive, or does not run"
strangers=$(nm -g --defined-only "$scratch/usr/usr/lib/libredlock.a" | awk 'NF == 3 && $3 !~ /^redlock_/ { print $3 }')
[ -z "$strangers" ]
verdict $? "libredlock.a exports names without the prefix redlock_: $strangers"

echo '# mine' >>"$scratch/usr/etc/redlockd/redlockd.yaml"
install_into usr /usr
tail -n 1 "$scratch/usr/etc/redlockd/redlockd.yaml" | grep -q '^# mine$'
verdict $? "a second install has overwritten the configuration"
$MAKE uninstall DESTDIR="$scratch/usr" PREFIX=/usr >"$scratch/log" 2>&1
verdict $? "uninstall: $(cat "$scratch/log")"
lies "$scratch/usr" /etc/redlockd/redlockd.yaml

verdict_sum
