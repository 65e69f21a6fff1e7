# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the suites that run containers, as root, in namespaces of their own, once folder= is set: images, containers and networks are in the folder and in
# a scratch folder, and no others of this host are touched. Nothing comes from a registry: the base is a minimal Debian that mmdebstrap makes, and that stays
# as folder/base.tar.
# shellcheck shell=sh disable=SC2154

# What a suite that has sourced this runs within another namespace has got the scratch folder from it.
if [ -z "${scratch:-}" ]; then
	mount --make-rprivate /
	mount -t proc none /proc
	mount -t cgroup2 none /sys/fs/cgroup
	scratch=$(mktemp -d) || exit 2
	trap 'rm -rf "$scratch"' EXIT
fi

# No systemd is asked to run the health check now and then: the test does.
export DISABLE_HC_SYSTEMD=true CONTAINERS_CONF="$scratch/containers.conf"
cat >"$CONTAINERS_CONF" <<CONF
[containers]
cgroups = "disabled"
default_ulimits = []
[network]
network_backend = "netavark"
network_config_dir = "$scratch/networks"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$scratch/tmp"
CONF
cat >"$scratch/pod" <<POD
#!/bin/sh
exec podman --root "$folder/images" --runroot "$scratch/run" --storage-driver overlay "\$@"
POD
chmod 755 "$scratch/pod"

# pod argument ... : podman, which sees the folder only.
pod() {
	"$scratch/pod" "$@"
}

# pod_base [architecture] : puts the base in the place of the image that Containerfile names.
pod_base() {
	base="$folder/base${1:+-$1}.tar"
	[ -e "$base" ] || {
		mmdebstrap --quiet ${1:+--architectures="$1"} --variant=minbase --include=ca-certificates bookworm "$folder/new.tar" && mv "$folder/new.tar" "$base"
	} || exit 2
	pod import ${1:+--arch "$1"} "$base" docker.io/library/debian:12-slim >"$scratch/log" 2>&1
	verdict $? "the base: $(cat "$scratch/log")"
}

# soon command ... : the command succeeds within half a minute.
soon() {
	for _ in $(seq 60); do
		"$@" >"$scratch/soon" 2>&1 && return
		sleep 0.5
	done
	return 1
}
