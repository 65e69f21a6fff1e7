// SPDX-License-Identifier: BSD-2-Clause
// What a session has: locks, permits and jobs, each with its deadline. Times are seconds of the clock that the caller reads.
import { type Line, duration, quote } from "./wire.js";

/** A moment that never comes. */
export const NEVER = Infinity;

/** What tells a hold apart from all else that the session has. Owners have no blank. */
export type Key = string;

/** What happens to a hold; checked: the keeper has asked about it. */
export type HoldNews = "lost" | "risk" | "safe" | "checked";

/** Hears what happens to a hold. */
export interface Listener {
  news(kind: HoldNews, hold: Hold): void;
}

/** What stands for the owner in the key of a job; no owner of our locks begins so. */
export function jobOwner(job: string): string {
  return `job:${job}`;
}

/** The key of a name and an owner. */
export function keyFor(name: string, owner: string): Key {
  return owner.startsWith("job:") ? `${quote(owner)} ${name}` : `${owner} ${name}`;
}

/** The key of what a row or a push is about. */
export function keyOf(line: Line): Key {
  const job = line.get("job");
  return job === undefined ? keyFor(line.get("name") ?? "", line.get("owner") ?? "") : keyFor(line.get("queue") ?? "", jobOwner(job));
}

/**
 * A lock that the daemon has granted. It may be relied on until `until`, and not after a loss; reason is "" until then. `asked` is when the request was sent
 * whose answer set `until`. After a suspend of the machine it is `doubted`, and nothing is relied on until a request that was sent later is answered.
 */
export class Hold {
  readonly key: Key;
  until = 0;
  asked = 0;
  checkAt = NEVER;
  checking = false;
  reason = "";
  freed = false;
  riskUntil = 0; // the deadline when the caller was warned; 0: there is no risk
  doubted = 0; // since when; 0: it is not
  listener: Listener | undefined;

  constructor(readonly name: string, readonly owner: string, readonly fence: number, public ttl: number, readonly session: number) {
    this.key = keyFor(name, owner);
  }

  /** Whether the session has it, as far as the client knows. */
  get alive(): boolean {
    return !this.reason && !this.freed;
  }

  /** The slot of a permit. */
  get permit(): number | undefined {
    return undefined;
  }

  /** Takes in an answer OK to a request that was sent at that time. An answer to an earlier one than the last says nothing new. */
  confirm(asked: number, valid: number): void {
    if (asked < this.asked) return;
    this.asked = asked;
    this.until = asked + valid;
    if (asked >= this.doubted) this.doubted = 0;
    this.checkAt = this.doubted || asked + Math.min(this.ttl / 3, valid / 2);
  }

  /** When the caller is to be warned, because no answer has moved the deadline on. */
  get riskAt(): number {
    return !this.riskUntil && this.until - this.asked > this.ttl / 3 ? this.until - this.ttl / 6 : NEVER;
  }

  /** For how many seconds it may be relied on, at least 0. */
  left(now: number): number {
    return this.alive && !this.doubted ? Math.max(0, this.until - now) : 0;
  }

  /** Whether a row or a push with the same name and owner is about this grant. */
  isAt(line: Line): boolean {
    return line.get("fence") === String(this.fence);
  }

  /** The request that asks whether it is still held. */
  check(): string {
    return `CHECK ${quote(this.name)} owner=${this.owner}`;
  }

  /** The request that renews the lease now. */
  extend(ttl: number | undefined): string {
    return `EXTEND ${quote(this.name)} owner=${this.owner}${ttl ? ` ttl=${duration(ttl)}` : ""}`;
  }

  /** The request that gives it back. It may be repeated. */
  free(extra = ""): string {
    return `UNLOCK ${quote(this.name)} owner=${this.owner} fence=${this.fence} count=0${extra}`;
  }
}

/** A permit of a semaphore. */
export class Permit extends Hold {
  constructor(name: string, owner: string, fence: number, ttl: number, session: number, private readonly slot: number) {
    super(name, owner, fence, ttl, session);
  }

  override get permit(): number {
    return this.slot;
  }

  override isAt(line: Line): boolean {
    return super.isAt(line) && line.number("permit", this.slot) === this.slot;
  }

  override check(): string {
    return `${super.check()} permit=${this.slot}`;
  }

  override extend(ttl: number | undefined): string {
    return `${super.extend(ttl)} permit=${this.slot}`;
  }

  override free(): string {
    return `RELEASE ${quote(this.name)} owner=${this.owner} permit=${this.slot} fence=${this.fence} count=0`;
  }
}

/** A job, with the lock that was granted with it. Its name is the queue. */
export class JobHold extends Hold {
  readonly job: string;
  readonly attempt: number;
  readonly payload: string;
  readonly lock: string;

  constructor(line: Line, ttl: number, session: number) {
    const job = line.need("job");
    super(line.need("queue"), jobOwner(job), line.number("fence"), ttl, session);
    this.job = job;
    this.attempt = line.number("attempt", 1);
    this.payload = line.get("payload") ?? "";
    this.lock = line.get("name") ?? "";
  }

  override isAt(): boolean {
    return true;
  }

  override check(): string {
    return `CHECK ${quote(this.name)} job=${quote(this.job)}`;
  }

  /** The request that ends it: DONE, or RETRY with its fields. */
  override free(extra = ""): string {
    const [verb, ...rest] = (extra || "DONE").split(" ");
    return [verb, quote(this.job), `queue=${quote(this.name)}`, ...rest].join(" ");
  }
}
