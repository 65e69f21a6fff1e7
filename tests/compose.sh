#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compose.sh : starts contrib/compose/compose.yaml where an engine answers, and locks through it: the lock that one host holds is seen by the others, and stays
# while one of the servers is stopped. All of it is removed again.
set -u
. tests/verdict.sh

compose() {
	docker compose --project-name redlockd-checked -f contrib/compose/compose.yaml "$@"
}
if ! docker info >/dev/null 2>&1 || ! docker compose version >/dev/null 2>&1; then
	echo "skipped: contrib/compose is not started: no docker with compose answers here"
	verdict_sum
	exit
fi
trap 'compose down --volumes >/dev/null 2>&1' EXIT
said=$(compose up --build --detach --wait 2>&1)
verdict $? "up: $said"
compose exec -T host1 redlock run demo -- sleep 30 &
holder=$!
for _ in $(seq 50); do
	said=$(compose exec -T host2 redlock show demo 2>&1) && break
	sleep 0.2
done
echo "$said" | grep -q host1
verdict $? "host2 does not see that host1 holds the lock: $said"
compose stop redis3 >/dev/null 2>&1
said=$(compose exec -T host3 redlock try demo -- true 2>&1)
[ $? -eq 124 ]
verdict $? "with two of three servers host3 gets the lock that host1 holds: $said"
kill "$holder" 2>/dev/null
verdict_sum
