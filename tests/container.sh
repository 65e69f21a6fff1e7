#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# container.sh folder : builds the image of Containerfile and runs it: without privileges, with a root folder that it cannot write. Clients in other containers
# lock through it, also over a restart. Its base is a minimal Debian that mmdebstrap makes, kept as folder/base.tar. As root; needs podman, crun and mmdebstrap.
# Everything runs in namespaces of its own, and images and containers are in the folder: no others of this host are touched.
set -u

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ "${2:-}" != --inside ]; then
	for program in podman crun mmdebstrap; do
		command -v $program >/dev/null || {
			echo "$program is missing: make deps container-checked"
			exit 1
		}
	done
	exec unshare --mount --pid --fork --kill-child --ipc sh "$0" "$folder" --inside
fi
. tests/verdict.sh

mount --make-rprivate /
mount -t proc none /proc
mount -t cgroup2 none /sys/fs/cgroup
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT

# Images and containers stand in the folder. No systemd is asked to run the health check now and then: the test does.
export DISABLE_HC_SYSTEMD=true
pod() {
	podman --root "$folder/images" --runroot "$scratch/run" --tmpdir "$scratch/tmp" --storage-driver overlay --cgroup-manager cgroupfs --events-backend file "$@"
}

# start name argument ... : a container in the background that shares the volume.
start() {
	name=$1
	shift
	pod run -d --name "$name" --network none --cgroups=disabled --ulimit host --read-only --cap-drop all -v redlockd:/run/redlockd "$@"
}

# client argument ... : runs redlock in a container of its own.
client() {
	pod run --rm --network none --cgroups=disabled --ulimit host --read-only --cap-drop all -v redlockd:/run/redlockd --entrypoint redlock redlockd "$@"
}

# soon command ... : the command succeeds within half a minute.
soon() {
	for _ in $(seq 60); do
		"$@" >"$scratch/soon" 2>&1 && return
		sleep 0.5
	done
	return 1
}

rm -rf "$folder/images" # of an earlier run
[ -e "$folder/base.tar" ] || mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$folder/base.tar" || exit 2
pod import "$folder/base.tar" docker.io/library/debian:12-slim >"$scratch/log" 2>&1
verdict $? "the base: $(cat "$scratch/log")"
pod build --isolation chroot --format docker --pull=never -t redlockd . >"$folder/log" 2>&1
verdict $? "the build: $(tail -n 20 "$folder/log")"
echo "the image: $(pod image inspect --format '{{.Size}}' redlockd | awk '{ printf "%.0f MB", $1 / 1e6 }'), its base: $(
	pod image inspect --format '{{.Size}}' docker.io/library/debian:12-slim | awk '{ printf "%.0f MB", $1 / 1e6 }')"

said=$(start daemon redlockd 2>&1)
verdict $? "the container does not start: $said"
soon pod healthcheck run daemon
verdict $? "the container is not healthy: $(cat "$scratch/soon"; pod logs daemon 2>&1)"
[ "$(pod exec daemon id -un)" = redlockd ]
verdict $? "the daemon runs as $(pod exec daemon id -un)"
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
