// SPDX-License-Identifier: BSD-2-Clause
// What a caller gets: a lock, several, a permit or a job.
import type { Client } from "./client.js";
import type { Engine } from "./engine.js";
import { LockLost, RedlockError } from "./errors.js";
import type { Hold, HoldNews, JobHold, Listener } from "./holds.js";
import { Extend, PATIENCE } from "./requests.js";
import { decode, duration } from "./wire.js";

/** How a lock is given back. */
export interface UnlockOptions {
  /** Nobody gets the lock for so many seconds. */
  keep?: number;
  /** Return when a quorum of stores has freed it. */
  sync?: boolean;
}

/**
 * Hears of losses as long as the daemon may tell one, whether or not somebody still refers to the lock: its signal may be in other hands. A lock that nobody
 * refers to is warned about when the keeper next asks about it, and not unlocked: who knows what still relies on it.
 */
class Watch implements Listener {
  controller: AbortController | undefined;
  private warned = false;
  private readonly held: WeakRef<Held>;

  constructor(held: Held, private readonly client: Client) {
    this.held = new WeakRef(held);
  }

  news(kind: HoldNews, hold: Hold): void {
    if (kind === "lost") this.controller?.abort(lossOf(hold));
    const held = this.held.deref();
    if (kind === "checked") {
      if (!held && !this.warned) this.warn(hold);
    } else if (held && this.client.listenerCount(kind)) process.nextTick(() => this.client.emit(kind, held));
  }

  private warn(hold: Hold): void {
    this.warned = true;
    process.emitWarning(`the lock "${decode(hold.name)}" was not unlocked: it stays held until its client is closed`, { code: "REDLOCK_FORGOTTEN" });
  }
}

function lossOf(hold: Hold): LockLost {
  return new LockLost(decode(hold.name), hold.reason || "released", hold.fence);
}

/** What can be lost while its holder works. */
export abstract class Held {
  /** Of a lock its name, of a job its queue; of several locks all, with commas. */
  readonly name: string;
  /** The fencing token of this grant: pass it on with each write. Of several locks it is that of the first. */
  readonly fence: number;
  /** Who it is for the daemon. */
  readonly owner: string;
  protected told = false; // of the loss, by ensure() or the signal
  protected ended = false;
  private readonly watch: Watch;

  /** For the client. */
  constructor(client: Client, protected readonly engine: Engine, protected readonly holds: readonly Hold[]) {
    const first = holds[0] as Hold;
    this.name = holds.length === 1 ? decode(first.name) : holds.map((hold) => decode(hold.name)).join(", ");
    this.fence = first.fence;
    this.owner = first.owner;
    this.watch = new Watch(this, client);
    for (const hold of holds) hold.listener = this.watch;
  }

  /** The fencing tokens by name. */
  get fences(): Record<string, number> {
    return Object.fromEntries(this.holds.map((hold) => [decode(hold.name), hold.fence]));
  }

  /** The slot of a permit. */
  get permit(): number | undefined {
    return this.holds[0]?.permit;
  }

  /** For how many seconds it may be relied on, by the local clock. 0: not at all. */
  get remaining(): number {
    return this.ended ? 0 : this.engine.left(this.holds);
  }

  /** Whether it is held and may be relied on. */
  get held(): boolean {
    return this.remaining > 0;
  }

  /** Why it is lost; "" if it is not. */
  get reason(): string {
    return this.holds.find((hold) => hold.reason)?.reason ?? "";
  }

  /** Whether it is lost. */
  get lost(): boolean {
    return this.reason !== "";
  }

  /** Aborts with LockLost when it is lost. */
  get signal(): AbortSignal {
    this.told = true;
    if (!this.watch.controller) {
      this.watch.controller = new AbortController();
      const lost = this.holds.find((hold) => hold.reason);
      if (lost) this.watch.controller.abort(lossOf(lost));
    }
    return this.watch.controller.signal;
  }

  /**
   * Asks the daemon, right before an effect that cannot be undone and takes so many seconds. Returns for how long the lock may be relied on, which is longer
   * than that; if need be the lease is renewed first. Rejects with LockLost otherwise.
   */
  async ensure(seconds = 0): Promise<number> {
    try {
      if (this.ended) throw new LockLost(this.name, "released", this.fence);
      const now = this.engine.begin();
      await Promise.all(this.holds.map((hold) => this.engine.wait(this.engine.core.check(hold, now), undefined, () => undefined)));
      if (this.remaining <= seconds && this.extendable) await this.extend();
      const left = this.remaining;
      if (left <= seconds) throw new LockLost(this.name, this.reason || "short", this.fence);
      return left;
    } catch (error) {
      if (error instanceof LockLost && error.reason !== "short") this.told = true;
      throw error;
    }
  }

  /** Renews the lease now, and sets its length if ttl is given, in seconds. Returns for how long the lock may be relied on. */
  async extend(ttl?: number): Promise<number> {
    const lost = this.holds.find((hold) => !hold.alive);
    if (lost) throw lossOf(lost);
    const now = this.engine.begin();
    const requests = this.holds.map((hold) => new Extend(hold, ttl, now + PATIENCE));
    for (const request of requests) this.engine.core.submit(request, now);
    await Promise.all(requests.map((request) => this.engine.wait(request, undefined, () => undefined)));
    return this.remaining;
  }

  /** What console.log() prints. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    const state = this.reason ? `lost, ${this.reason}` : this.ended ? "released" : `held, fence ${this.fence}`;
    return `${this.constructor.name} { "${this.name}", ${state} }`;
  }

  protected get extendable(): boolean {
    return true;
  }

  /** Gives all back. Rejects with LockLost if it was lost before. The second time nothing happens. */
  protected give(words: string): Promise<void> {
    if (this.ended) return Promise.resolve();
    this.ended = true;
    const { core } = this.engine;
    const lost = this.holds.find((hold) => hold.reason);
    const now = this.engine.begin();
    if (this.holds.length === 1) {
      const request = core.free(this.holds[0] as Hold, now, words);
      return lost ? Promise.reject(lossOf(lost)) : request ? this.engine.wait(request, undefined, () => undefined) : Promise.resolve();
    }
    const waits = this.holds.map((hold) => {
      const asked = !hold.reason;
      const request = core.free(hold, now, words);
      return request && asked ? this.engine.wait(request, undefined, () => undefined) : undefined;
    });
    return Promise.allSettled(waits).then((outcomes) => {
      if (lost) throw lossOf(lost);
      for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    });
  }
}

/** A lock, several, or a permit. `await using` unlocks it at the end of the block. */
export class Lock extends Held {
  /** Gives the lock back. Rejects with LockLost if it was lost before. The second time nothing happens. */
  unlock(options: UnlockOptions = {}): Promise<void> {
    return this.give((options.keep ? ` keep=${duration(options.keep)}` : "") + (options.sync ? " sync=yes" : ""));
  }

  /** The end of a block: unlock(), and LockLost if it was lost and the block has not heard of that, by ensure() or `signal`. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.unlock();
    } catch (error) {
      if (!(error instanceof LockLost && this.told)) throw error;
    }
  }
}

/** A job that was taken from a queue, with its lock. At the end of a block of `await using` it is given back, to be tried again, unless done() was called. */
export class Job extends Held {
  readonly queue: string;
  readonly id: string;
  readonly payload: Buffer;
  /** 1 the first time. */
  readonly attempt: number;
  /** The lock that was granted with it, or "". */
  readonly lock: string;

  /** For the client. */
  constructor(client: Client, engine: Engine, holds: readonly Hold[]) {
    super(client, engine, holds);
    const hold = holds[0] as JobHold;
    this.queue = decode(hold.name);
    this.id = decode(hold.job);
    this.payload = Buffer.from(hold.payload, "latin1");
    this.attempt = hold.attempt;
    this.lock = decode(hold.lock);
  }

  /** Whether done() or retry() was called. */
  get over(): boolean {
    return this.ended;
  }

  /** The job is done and gone. */
  done(): Promise<void> {
    return this.end("");
  }

  /** Gives the job back, to be due again after delay. failed: false: the attempt is not counted. */
  retry(options: { delay?: number; failed?: boolean } = {}): Promise<void> {
    return this.end(`RETRY${options.delay ? ` delay=${duration(options.delay)}` : ""}${options.failed === false ? " failed=no" : ""}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.ended) await this.retry().catch(unlessLost);
  }

  protected override get extendable(): boolean {
    return false;
  }

  private end(words: string): Promise<void> {
    return this.ended ? Promise.reject(new RedlockError(`the job "${this.id}" has ended already`)) : this.give(words);
  }
}

/** Throws what is no LockLost. */
export function unlessLost(error: unknown): void {
  if (!(error instanceof LockLost)) throw error;
}
