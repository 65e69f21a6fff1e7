#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# container.sh folder [architecture] : builds the image of Containerfile and runs it: without privileges, with a root folder that it cannot write. Clients in
# other containers lock through it, also over a restart. As root, in namespaces of its own; needs podman, crun and mmdebstrap. With another architecture than
# that of this host, as arm64, the packages are cross-built, and qemu-user-static runs the image: the kernel knows of that in these namespaces only.
set -u
. tests/verdict.sh

mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(dpkg --print-architecture 2>/dev/null)
arch=${2:-$here}
qemu=
[ "$arch" = "$here" ] || case $arch in
arm64) qemu="qemu-aarch64" ;;
*)
	echo "container.sh: $arch is neither arm64 nor that of this host" >&2
	exit 2
	;;
esac
if [ "${3:-}" != --inside ]; then
	lacks=
	[ "$(id -u)" -eq 0 ] || lacks="it takes root"
	for program in podman crun mmdebstrap ${qemu:+$qemu-static arch-test}; do
		command -v "$program" >/dev/null || lacks="$program is missing: make deps container${qemu:+-$arch}-checked"
	done
	if [ "$lacks" ]; then
		echo "skipped: the image for $arch: $lacks"
		verdict_sum
		exit
	fi
	[ "$qemu" ] || exec unshare --mount --pid --fork --kill-child --ipc sh "$0" "$folder" "$arch" --inside
	# What qemu is for is known to a user namespace: this one has the same users.
	turn=$(mktemp -d) || exit 2
	trap 'rm -rf "$turn"' EXIT
	mkfifo "$turn/mapped"
	# shellcheck disable=SC2016 # the inner shell fills these in
	unshare --user --mount --cgroup --ipc sh -c 'read _ <"$1/mapped" && shift && exec unshare --pid --fork --kill-child sh "$@" --inside' - \
		"$turn" "$0" "$folder" "$arch" &
	until [ "$(readlink "/proc/$!/ns/user")" != "$(readlink /proc/$$/ns/user)" ]; do sleep 0.1; done
	echo "0 0 65536" >"/proc/$!/uid_map" && echo "0 0 65536" >"/proc/$!/gid_map" && echo >"$turn/mapped"
	wait $!
	exit
fi
. tests/pod.sh
[ -z "$qemu" ] || { mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && cat "/usr/lib/binfmt.d/$qemu.conf" >/proc/sys/fs/binfmt_misc/register; } || exit 2

# start name argument ... : a container in the background that shares the volume.
start() {
	name=$1
	shift
	pod run -d --name "$name" --network none --ulimit host --read-only --cap-drop all -v redlockd:/run/redlockd "$@"
}

# client argument ... : runs redlock in a container of its own.
client() {
	pod run --rm --network none --ulimit host --read-only --cap-drop all -v redlockd:/run/redlockd --entrypoint redlock redlockd "$@"
}

rm -rf "$folder/images" # of an earlier run
pod_base ""
if [ "$qemu" ]; then
	# Other builders than this podman keep the compiler on the processors of the host by themselves. Here the first stage is built there, then the second.
	pod build --isolation chroot --format docker --pull=never --target build --build-arg "TARGETARCH=$arch" -t localhost/compiled . >"$folder/log" 2>&1
	verdict $? "the build: $(tail -n 20 "$folder/log")"
	pod_base "$arch"
	# It copies what it needs from the folder that the first one has left.
	sed -n '/^FROM debian/,$p' Containerfile | sed 's|--from=build ||' >"$scratch/Containerfile"
	compiled=$(pod image mount localhost/compiled) && mkdir -p "$scratch/context/build" "$scratch/context/src/contrib" &&
		cp -R "$compiled/build/deb" "$scratch/context/build" && cp "$compiled/src/contrib/sbom.sh" "$scratch/context/src/contrib"
	verdict $? "the packages are not found in what the first stage has left"
	pod build --isolation chroot --format docker --pull=never --platform "linux/$arch" -t redlockd -f "$scratch/Containerfile" \
		"$scratch/context" >"$folder/log" 2>&1
else
	pod build --isolation chroot --format docker --pull=never -t redlockd . >"$folder/log" 2>&1
fi
verdict $? "the build: $(tail -n 20 "$folder/log")"
echo "the image: $(pod image inspect --format '{{.Size}}' redlockd | awk '{ printf "%.0f MB", $1 / 1e6 }'), its base: $(
	pod image inspect --format '{{.Size}}' docker.io/library/debian:12-slim | awk '{ printf "%.0f MB", $1 / 1e6 }')"

said=$(start daemon redlockd 2>&1)
verdict $? "the container does not start: $said"
soon pod healthcheck run daemon
verdict $? "the container is not healthy: $(cat "$scratch/soon"; pod logs daemon 2>&1)"
[ "$(pod exec daemon sh -c 'id -un && dpkg --print-architecture' | tr '\n' ' ')" = "redlockd $arch " ]
verdict $? "the daemon runs as $(pod exec daemon sh -c 'id -un && dpkg --print-architecture')"
[ "$(pod exec daemon redlockd --version)" = "redlockd $(sed -n 's/^VERSION := //p' Makefile)" ]
verdict $? "the daemon is $(pod exec daemon redlockd --version)"
pod exec daemon cat /sbom.cdx.json | grep -q "pkg:deb/debian/redlockd@[^?]*?arch=$arch"
verdict $? "/sbom.cdx.json of the image does not list redlockd"
! pod exec daemon sh -c 'command -v gcc || command -v make || ls -d /src /packages 2>/dev/null'
verdict $? "the image has what only the build needs"
[ "$(client run demo -- echo mine)" = mine ]
verdict $? "a client in another container gets no lock"

# Over a restart of the daemon, a command in another container keeps its lock and its fence.
said=$(start holder --entrypoint redlock redlockd run held -- sleep 600 2>&1)
verdict $? "the holder does not start: $said"
fence() {
	client ls -l --json | sed -n 's/.*"fence":\([0-9]*\).*/\1/p'
}
soon client show held
before=$(fence)
said=$(pod restart -t 15 daemon 2>&1)
verdict $? "the container does not restart: $said"
soon pod healthcheck run daemon
verdict $? "the container is not healthy after a restart: $(cat "$scratch/soon"; pod logs daemon 2>&1)"
[ -n "$before" ] && [ "$(fence)" = "$before" ]
verdict $? "the lock is not held with its fence after a restart: $before, $(fence)"
said=$(client try held -- true 2>&1)
[ $? -eq 124 ]
verdict $? "somebody else got the lock: $said"

pod stop -t 15 daemon holder >/dev/null 2>&1
[ "$(pod inspect --format '{{.State.ExitCode}}' daemon)" = 0 ]
verdict $? "the daemon ended with $(pod inspect --format '{{.State.ExitCode}}' daemon): $(pod logs daemon 2>&1 | tail -n 5)"

# The file of an operator decides where the daemon listens.
! pod logs daemon 2>&1 | grep ' ready ' | grep -qv 'tcp=no'
verdict $? "without a file of its own the container listens on a port: $(pod logs daemon 2>&1 | grep ' ready ')"
printf 'listen:\n  tcp: 127.0.0.1:7430\n' >"$scratch/redlockd.yaml"
chmod 755 "$scratch"
said=$(start port -v "$scratch/redlockd.yaml:/etc/redlockd/redlockd.yaml:ro" redlockd 2>&1)
verdict $? "the container does not start with a file: $said"
soon pod exec port redlock --addr 127.0.0.1:7430 ping
verdict $? "listen.tcp of the file has no effect: $(pod logs port 2>&1 | tail -n 5)"
pod stop -t 15 port >/dev/null 2>&1
pod rm -af >/dev/null 2>&1
pod volume prune -f >/dev/null 2>&1
verdict_sum
