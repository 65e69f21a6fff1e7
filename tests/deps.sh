#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh package ... : installs the Debian packages that are missing, as root or through sudo. The tests start Redis servers themselves: the package must not
# start one, neither now nor at the next boot.
set -eu

missing=
for package; do
	case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :) in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
if [ -z "$missing" ]; then
	echo "deps: nothing is missing"
	exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
	as_root=
elif command -v sudo >/dev/null; then
	as_root=sudo
else
	echo "deps: neither root nor sudo; please install:$missing" >&2
	exit 1
fi

# invoke-rc.d and deb-systemd-invoke ask policy-rc.d whether they may start a service. A policy-rc.d that exists already stays.
policy=/usr/sbin/policy-rc.d
new_redis=
case " $missing " in
*" redis-server "*)
	new_redis=yes
	if [ ! -e $policy ]; then
		trap '$as_root rm -f $policy' EXIT
		trap 'exit 130' INT TERM
		printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
		$as_root chmod 755 $policy
	fi
	;;
esac

echo "deps: installing$missing"
$as_root apt-get -q update
# shellcheck disable=SC2086 # a list
$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing

if [ "$new_redis" ] && [ -d /run/systemd/system ]; then
	$as_root systemctl disable --quiet redis-server.service
fi
