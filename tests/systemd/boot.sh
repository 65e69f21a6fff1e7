#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# boot.sh tree share command [argument ...] : boots the systemd of a tree (/ is this system) as the first process of namespaces of its own, over a copy that
# nobody else sees, and runs the command there as a unit. The folder share is /share inside. There is no network but a loopback of its own. When the command
# ends, all of it ends. Its output is in share/said, and its status is that of boot.sh; 99: the tree was not booted. It takes root, overlayfs and cgroup2;
# BOOT_SECONDS (300) is the longest it may take.
set -u

# The first process in the new namespaces: it builds the root folder and becomes systemd.
inside() {
	set -e
	tree=$1 share=$2 work=$3 root=$3/root
	mount --make-rprivate /
	mount -t tmpfs none "$work"
	mkdir "$work/upper" "$work/work" "$root"
	mount -t overlay overlay -o "lowerdir=$tree,upperdir=$work/upper,workdir=$work/work" "$root"
	mount -t proc none "$root/proc"
	mount -t sysfs none "$root/sys" -o ro
	for folder in run tmp dev; do mount -t tmpfs none "$root/$folder" -o mode=755; done
	chmod 1777 "$root/tmp"
	# Nodes, as a host has them: each mount more would make the sandbox of a unit slower.
	for device in null zero full random urandom tty; do
		cp -a "/dev/$device" "$root/dev/$device" 2>/dev/null || {
			touch "$root/dev/$device"
			mount --bind "/dev/$device" "$root/dev/$device"
		}
	done
	mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/share"
	mount -t tmpfs none "$root/dev/shm"
	mount -t devpts none "$root/dev/pts" -o newinstance,ptmxmode=666
	ln -s pts/ptmx "$root/dev/ptmx"
	touch "$root/dev/console"
	ln -s /proc/self/fd "$root/dev/fd"
	mount --bind "$share" "$root/share"
	mount -t cgroup2 none "$root/sys/fs/cgroup"
	mkdir "$root/.old"
	cd "$root"
	pivot_root . .old
	umount -l .old
	mount --make-rshared / # for LoadCredential=
	ip link set lo up 2>/dev/null
	# The settings of the kernel are those of the host.
	for unit in sysctl modules-load binfmt random-seed remount-fs udevd udev-trigger; do
		ln -sf /dev/null "/etc/systemd/system/systemd-$unit.service"
	done
	rm -f /usr/sbin/policy-rc.d # where services may not start, inside a container or while tests install Redis
	printf '[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\nWants=command.service\n' >/etc/systemd/system/command.target
	cat >/etc/systemd/system/command.service <<-'UNIT'
		[Unit]
		After=basic.target
		SuccessAction=exit-force
		FailureAction=exit-force
		[Service]
		Type=oneshot
		Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
		ExecStart=/bin/sh /share/.command
		StandardOutput=append:/share/said
		StandardError=append:/share/said
	UNIT
	exec env -i container=manual PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=command.target --show-status=0 --log-target=journal
}

if [ "$1" = --inside ]; then
	shift
	inside "$@"
fi

tree=$1 share=$2
shift 2
# The words of the command, each quoted for the shell inside.
quoted=$(for word; do printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"; done)
printf 'touch /share/.booted\nexec %s\n' "$quoted" >"$share/.command"
rm -f "$share/.booted"
: >"$share/said"
groups=$(findmnt -nt cgroup2 -o TARGET | head -n 1)
group=$groups/redlockd-boot-$$
[ -n "$groups" ] && mkdir "$group" || exit 99
work=$(mktemp -d) || exit 99
tidy() {
	find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
	rmdir "$work"
}
trap tidy EXIT
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
	timeout -s KILL "${BOOT_SECONDS:-300}" unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh "$0" --inside "$tree" "$share" "$work" \
	</dev/null >"$share/.boot" 2>&1
status=$?
[ -e "$share/.booted" ] || {
	cat "$share/.boot" >>"$share/said"
	exit 99
}
exit $status
