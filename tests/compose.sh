#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compose.sh folder : starts contrib/compose/compose.yaml where an engine is, and locks through it: the lock that one host holds is seen by the others, and
# stays while one of the servers is stopped; without a quorum no host is healthy. All of it is removed again. Where docker answers, it is started there. Else podman
# starts it, as root, in namespaces of its own: the images of the base and of Redis are made of Debian's packages then.
set -u
. tests/verdict.sh

skipped() {
	echo "skipped: contrib/compose is not started: $1"
	verdict_sum
	exit
}

folder=$1
file=contrib/compose/compose.yaml
if docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; then
	compose() {
		docker compose --project-name redlockd-checked -f $file "$@"
	}
	# at service command ... : runs the command in the container of the service.
	at() {
		compose exec -T "$@"
	}
	soon() {
		for _ in $(seq 60); do "$@" >/dev/null 2>&1 && return; sleep 0.5; done
		return 1
	}
	trap 'compose down --volumes >/dev/null 2>&1' EXIT
	said=$(compose up --build --detach --wait 2>&1)
	verdict $? "up: $said"
else
	[ "$(id -u)" -eq 0 ] || skipped "no docker with compose answers here, and podman needs root"
	for program in podman crun podman-compose mmdebstrap iptables /usr/lib/podman/netavark /usr/lib/podman/aardvark-dns; do
		command -v $program >/dev/null || skipped "no docker with compose answers here, and podman lacks $program: make deps compose-checked"
	done
	mkdir -p "$folder"
	folder=$(cd "$folder" && pwd)
	case ${2:-} in
	"") exec unshare --mount --pid --fork --kill-child --ipc sh "$0" "$folder" --inside ;;
	--inside)
		. tests/pod.sh
		rm -rf "$folder/images" # of an earlier run
		pod_base ""
		printf 'FROM docker.io/library/debian:12-slim\nRUN apt-get update && apt-get install -y --no-install-recommends redis-server\n' >"$scratch/Containerfile"
		pod build --isolation chroot --pull=never -t docker.io/library/redis:7.2 -f "$scratch/Containerfile" "$scratch" >"$folder/log" 2>&1
		verdict $? "the image of Redis: $(tail -n 20 "$folder/log")"
		podman-compose --podman-path "$scratch/pod" --podman-build-args="--isolation chroot --format docker --pull=never" -f $file build host1 >"$folder/log" 2>&1
		verdict $? "build: $(tail -n 20 "$folder/log")"
		[ $failed -eq 0 ] || { verdict_sum; exit; }
		scratch=$scratch unshare --net sh "$0" "$folder" --started
		exit
		;;
	esac
	. tests/pod.sh
	ip link set lo up
	compose() {
		podman-compose --podman-path "$scratch/pod" --podman-run-args="--ulimit host" --project-name redlockd-checked -f $file "$@" >"$folder/log" 2>&1
	}
	# podman-compose mixes its own lines with what a command prints, and does not return its status.
	at() {
		service=$1
		shift
		pod exec "redlockd-checked_${service}_1" "$@"
	}
	compose up --detach
	verdict $? "up: $(tail -n 20 "$folder/log")"
fi

for host in host1 host2 host3; do
	soon at $host redlock ping
	verdict $? "$host is not healthy: $(at $host redlock nodes 2>&1)"
done
[ "$(at host1 id -u)" = 7420 ]
verdict $? "the daemon is user $(at host1 id -u)"
at host1 redlock run demo -- sleep 600 &
soon at host2 redlock show demo
said=$(at host2 redlock show demo)
echo "$said" | grep -q host1
verdict $? "host2 does not see that host1 holds the lock: $said"
compose stop redis3 >/dev/null 2>&1
said=$(at host3 redlock try demo -- true)
[ $? -eq 124 ]
verdict $? "with two of three servers host3 gets the lock that host1 holds: $said"
[ "$(at host3 redlock run other -- echo mine)" = mine ]
verdict $? "with two of three servers host3 gets no lock"
compose stop redis2 >/dev/null 2>&1
unhealthy() {
	! at "$1" redlock ping
}
soon unhealthy host2
verdict $? "with one of three servers host2 is healthy"
verdict_sum
