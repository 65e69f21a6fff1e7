#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# alike.sh sim other : runs the same worlds with both builds of the simulator, new worlds each time. 0: all their events were the same.
set -eu

from=$(date +%s)000
hash() {
	"$1" --seeds 32 --from "$from" --jobs 2 --keep-going | sed -n 's/^hash //p'
}

one=$(hash "$1")
if [ -z "$one" ] || [ "$one" != "$(hash "$2")" ]; then
	echo "$1 and $2 differ in the worlds from seed $from on" >&2
	exit 1
fi
