// SPDX-License-Identifier: BSD-2-Clause
// A clock that goes on while the machine is suspended.
//
// performance.now() stands still then on Linux. So it is compared with the time since boot, which does not: when the two part by more than 50 ms, the
// difference is added, and whoever holds something is told that it was so. Other systems, and a process that may not read /proc/uptime, have the wall clock in
// its place.
import { openSync, readSync } from "node:fs";

const PARTED = 0.05;
/** Seconds after which now() compares again. look() always does. */
const STALE = 0.02;

const buffer = Buffer.alloc(64);

function openUptime(): number {
  if (process.platform !== "linux") return -1;
  try {
    return openSync("/proc/uptime", "r");
  } catch {
    return -1;
  }
}

const uptime = openUptime();

/** Seconds of a clock that counts suspends. */
function beside(): number {
  if (uptime < 0) return Date.now() / 1000;
  try {
    return parseFloat(buffer.toString("latin1", 0, readSync(uptime, buffer, 0, 64, 0)));
  } catch {
    return Date.now() / 1000;
  }
}

let skew = 0; // what is added to performance.now()
let apart = Infinity; // how far the two are apart, at least
let looked = -Infinity;
let count = 0;

/** How often the machine was suspended. */
export function suspends(): number {
  return count;
}

/** The time, in seconds, after a comparison with the time since boot. */
export function look(): number {
  const steady = performance.now() / 1000;
  const offset = beside() - steady;
  looked = steady;
  if (offset - apart > PARTED) {
    skew += offset - apart;
    apart = offset;
    count++;
  } else if (offset < apart) apart = offset;
  return steady + skew;
}

/** The time, in seconds. The comparison may be some milliseconds old. */
export function now(): number {
  const steady = performance.now() / 1000;
  return steady - looked < STALE && steady >= looked ? steady + skew : look();
}

look();
