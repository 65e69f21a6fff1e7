// SPDX-License-Identifier: BSD-2-Clause
// What can be asked for, and the words of the requests.
import type { Terms } from "./requests.js";
import { duration, encode, quote } from "./wire.js";

/** Of all that may wait. */
export interface WaitOptions {
  /** Seconds to wait in the queue; 0 does not wait. Without it, or with Infinity, the wait has no end. */
  wait?: number;
  /** Ends the wait: the promise rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Of a job that is taken. */
export interface JobOptions extends WaitOptions {
  /** The length of the lease in seconds, which the daemon renews. */
  ttl?: number;
}

/** Of a permit of a semaphore. */
export interface PermitOptions extends JobOptions {
  /** What others see of the holder. */
  note?: string;
  /** The traceparent of the span that asks: whoever is refused the lock gets it in the error. */
  trace?: string;
  /** From 0 to 9: a level counts as a minute of waiting. */
  priority?: number;
  /** What this caller holds already: the daemon then sees who waits for whom, and a cycle ends in Deadlock. */
  holding?: { readonly owner: string };
}

/** Of a lock. */
export interface LockOptions extends PermitOptions {
  /** Readers hold the lock together. */
  shared?: boolean;
}

/** How often something may be done. */
export interface RateOptions {
  /** So often in any time of this length, in seconds. */
  limit: number;
  per: number;
  /** How many uses this is; 0 only asks. */
  cost?: number;
  /** Seconds to wait until it is admitted; 0 by default. */
  wait?: number;
  signal?: AbortSignal;
}

/** A use that was admitted. left more would be admitted now, and in reset seconds all. unmetered: the store that counts cannot be used. */
export interface Rate {
  readonly left: number;
  readonly reset: number;
  readonly unmetered: boolean;
}

/** Of a job that is put into a queue. */
export interface DeferOptions {
  /** Seconds until it is due. */
  delay?: number;
  /** A lock that is granted together with the job. */
  lock?: string;
  /** While a job of this id is in the queue, another one is the same. */
  id?: string;
}

/** The answer to ask(): the fields of its last line, and those of each row. */
export interface Answer {
  readonly fields: Record<string, string>;
  readonly rows: readonly Record<string, string>[];
}

/** A number of seconds. */
export function seconds(value: number, what: string): number {
  if (typeof value !== "number" || !(value >= 0)) throw new TypeError(`${what} is a number of seconds, not ${String(value)}`);
  return value;
}

/** The wait of a request; undefined for ever. */
export function waitOf(options: WaitOptions): number | undefined {
  return options.wait === undefined || options.wait === Infinity ? undefined : seconds(options.wait, "wait");
}

/** The words of a request that takes something. */
export function termsOf(verb: Terms["verb"], names: readonly string[], options: LockOptions, limit?: number): Terms {
  let fields = "";
  if (limit !== undefined) fields += ` limit=${limit}`;
  if (options.ttl !== undefined) fields += ` ttl=${duration(seconds(options.ttl, "ttl"))}`;
  if (options.shared) fields += " mode=shared";
  if (options.note !== undefined) fields += ` note=${quote(encode(options.note))}`;
  if (options.trace !== undefined) fields += ` trace=${quote(encode(options.trace))}`;
  if (options.priority) fields += ` priority=${options.priority}`;
  const raw = names.map((name) => {
    if (typeof name !== "string") throw new TypeError(`a name is a string, not ${typeof name}`);
    return encode(name);
  });
  return { verb, names: raw, text: raw.map(quote).join(" "), fields, wait: waitOf(options), ttl: options.ttl };
}
