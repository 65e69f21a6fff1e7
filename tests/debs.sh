#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# debs.sh folder : builds the packages twice, in folders of different names, with different clocks and time zones. They must be the same, byte for byte, and
# lintian must find neither an error nor a warning. As root it also installs them over a copy of this system that nobody else sees, uses what they installed,
# and purges them: nothing may be left. Last it upgrades them under a systemd of its own, while clients hold locks (systemd/upgrade.sh).
set -u
. tests/verdict.sh

folder=$1
rm -rf "$folder"
mkdir -p "$folder"
TZ=UTC sh debian/build.sh "$folder/one" >"$folder/one.log" 2>&1
verdict $? "the first build: $(cat "$folder/one.log")"
TZ=Asia/Kathmandu LC_ALL=C.UTF-8 sh debian/build.sh "$folder/two/with-a-longer-name" >"$folder/two.log" 2>&1
verdict $? "the second build: $(cat "$folder/two.log")"

names=$(cd "$folder/one" && ls -- *.deb)
for package in redlockd redlock libredlock0 libredlock-dev python3-redlockd; do
	echo "$names" | grep -q "^${package}_"
	verdict $? "there is no package $package"
done
for name in $names; do
	cmp "$folder/one/$name" "$folder/two/with-a-longer-name/$name"
	verdict $? "$name is not the same in both builds"
done

found=$(lintian --allow-root --fail-on error,warning "$folder"/one/*.changes 2>&1)
verdict $? "lintian: $found"

if [ "$(id -u)" -ne 0 ]; then
	echo "not root: the packages are not installed"
	verdict_sum
	exit
fi

# Everything that is written goes into the upper folder. /run is another, so that no service of this system is touched.
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/top"
cp "$folder"/one/*.deb "$scratch"
rm -f "$scratch"/*-dbgsym_*
cat >"$scratch/inside.sh" <<'INSIDE'
set -e
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
ls -A / /etc /usr/lib/systemd/system /etc/systemd/system >/packages/before
dpkg -i /packages/*.deb >/packages/log 2>&1 || { cat /packages/log; exit 1; }
getent passwd redlockd >/dev/null
getent group redlock-admin >/dev/null
[ -L /etc/systemd/system/sockets.target.wants/redlockd.socket ]
[ -L /etc/systemd/system/multi-user.target.wants/redlockd.service ]
systemd-analyze verify --man=no /lib/systemd/system/redlockd.service /lib/systemd/system/redlockd.socket 2>&1 | grep -i redlock && exit 1
redlockd --config /etc/redlockd/redlockd.yaml --check-config --quiet
redlockd --set listen.tcp=no --config /etc/redlockd/redlockd.yaml 2>/packages/redlockd.log &
daemon=$!
for i in $(seq 100); do [ -S /run/redlockd/redlockd.sock ] && break; sleep 0.1; done
[ "$(redlock run --wait 5s demo -- echo mine)" = mine ]
cat >/packages/program.c <<'C'
#include <redlock.h>
int main(void)
{
	struct redlock_grant grant;
	struct redlock *c;

	return redlock_open(NULL, 1000, &c) || redlock_lock(c, "demo", NULL, &grant) ? 1 : 0;
}
C
cc -o /packages/program /packages/program.c $(pkg-config --cflags --libs redlock)
readelf -d /packages/program | grep -q 'libredlock\.so\.0'
/packages/program
/usr/bin/python3 -c "import redlockd, redlockd.aio
with redlockd.connect() as client, client.lock('demo', wait=5) as lock: assert lock.fence > 0"
kill $daemon
wait $daemon
dpkg -P redlockd redlock libredlock-dev libredlock0 python3-redlockd >/packages/log 2>&1 || { cat /packages/log; exit 1; }
! grep -q 'warning' /packages/log || { cat /packages/log; exit 1; }
ls -A / /etc /usr/lib/systemd/system /etc/systemd/system >/packages/after
INSIDE
cat >"$scratch/outside.sh" <<'OUTSIDE'
set -e
mount -t tmpfs none "$1/top"
mkdir "$1/top/upper" "$1/top/work" "$1/top/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/top/upper,workdir=$1/top/work" "$1/top/root"
mount -t tmpfs none "$1/top/root/run"
mount -t proc none "$1/top/root/proc"
mount -t tmpfs none "$1/top/root/tmp"
mount --rbind /dev "$1/top/root/dev"
mkdir "$1/top/root/packages"
mount --bind "$1" "$1/top/root/packages"
chroot "$1/top/root" sh /packages/inside.sh
cd "$1/top/upper"
find . \( -type f -o -type l \) -iname '*redlock*' ! -path './packages/*' >"$1/left"
find "$1/top/root/run" -iname '*redlock*' >>"$1/left"
OUTSIDE
said=$(unshare --mount --pid --fork sh "$scratch/outside.sh" "$scratch" 2>&1)
verdict $? "installed, used and purged: $said"
diff "$scratch/before" "$scratch/after" >&2
verdict $? "the purge has left something in these folders"
[ -e "$scratch/left" ] && [ ! -s "$scratch/left" ]
verdict $? "the purge has left: $(cat "$scratch/left")"

sh tests/systemd/upgrade.sh "$folder/one" >"$scratch/upgraded"
case $? in
99) echo "no systemd can be booted here: the packages are not upgraded under one: $(cat "$scratch/upgraded")" ;;
*)
	sed '$d' "$scratch/upgraded"
	read -r count _ failures _ <<-SUM
		$(tail -n 1 "$scratch/upgraded")
	SUM
	passed=$((passed + count)) failed=$((failed + failures))
	;;
esac
verdict_sum
