// SPDX-License-Identifier: BSD-2-Clause
// A session of redlockd, as its callers see it.
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { basename } from "node:path";
import type { News } from "./core.js";
import { Engine } from "./engine.js";
import { Busy, LockTimeout, RedlockError } from "./errors.js";
import { NEVER } from "./holds.js";
import { type Held, Job, Lock, unlessLost } from "./lock.js";
import { type Outcome, Runs } from "./once.js";
import { type TlsOptions, credentials, defaultAddress, placeOf } from "./place.js";
import { Ask, PATIENCE, Repeatable, type Terms } from "./requests.js";
import type { Answer, DeferOptions, JobOptions, LockOptions, PermitOptions, Rate, RateOptions } from "./terms.js";
import { seconds, termsOf, waitOf } from "./terms.js";
import { type Line, decode, duration, encode, quote, quoted } from "./wire.js";

/** What connect() is asked for. */
export interface ConnectOptions {
  /** The path of a Unix socket, host:port or tls://host:port. Without it REDLOCK_ADDR says where the daemon is, else it is on this host. */
  address?: string;
  /** What others see of this session; the name of the program by default. */
  label?: string;
  /** Seconds for which the session outlives a broken connection, with its locks. */
  grace?: number;
  /** The daemon takes this client for gone when it has heard nothing for so many seconds. */
  heartbeat?: number;
  /** Without it REDLOCK_USER, REDLOCK_SECRET_FILE and REDLOCK_SECRET say who this is. */
  user?: string;
  secret?: string;
  tls?: TlsOptions;
  /** Seconds that an attempt to connect may take; 5 by default. */
  timeout?: number;
  signal?: AbortSignal;
}

type Kind<T> = new (...args: ConstructorParameters<typeof Lock>) => T;

/** What a client emits, and with what. */
export interface ClientEvents {
  /** A renewal failed or is late. "safe" or "lost" follows. */
  risk: [held: Held];
  safe: [held: Held];
  lost: [held: Held];
  /** The connection is there again; with grace the locks are, too. */
  reconnect: [];
  /** The daemon grants nothing new, and stops in so many seconds; Infinity: when nobody holds anything. */
  drain: [seconds: number];
}

/**
 * Connects to redlockd.
 *
 *     const client = await connect();
 *     await using lock = await client.lock("orders/42", { wait: 5 });
 */
export async function connect(options: ConnectOptions | string = {}): Promise<Client> {
  const given = typeof options === "string" ? { address: options } : options;
  given.signal?.throwIfAborted();
  const address = given.address ?? defaultAddress();
  const { user, secret } = given.user === undefined ? credentials() : given;
  const settings = {
    address,
    label: given.label ?? (process.argv[1] ? basename(process.argv[1]) : undefined),
    grace: seconds(given.grace ?? 0, "grace"),
    heartbeat: seconds(given.heartbeat ?? 0, "heartbeat"),
    user,
    secret: secret === undefined ? undefined : () => secret,
  };
  const engine = new Engine(settings, placeOf(address), given.tls ?? {}, seconds(given.timeout ?? 5, "timeout"));
  const client = new Client(engine);
  try {
    await engine.open(given.signal);
  } catch (error) {
    await engine.close();
    throw error;
  }
  return client;
}

/** A session of redlockd. Made by connect(); ends with close(), or at the end of the block of an `await using`. One is enough for a process. */
export class Client extends EventEmitter<ClientEvents> {
  private owners = 0;
  private ups = 0;

  /** For connect(). */
  constructor(private readonly engine: Engine) {
    super();
    engine.heard = (news) => this.heard(news);
    (this as EventEmitter).on("newListener", (event) => {
      if (event === "drain" && !this.listenerCount("drain") && engine.core.state === "up") this.subscribe();
    });
  }

  // --- locks ---

  /** Takes a lock. Rejects with LockTimeout, or with Busy if wait is 0. Readers (shared) hold it together. */
  lock(name: string, options: LockOptions = {}): Promise<Lock> {
    return this.taken("LOCK", [name], options, Lock);
  }

  /** The same without waiting: null if somebody else has it, or it was not granted within `wait`. */
  tryLock(name: string, options: LockOptions = {}): Promise<Lock | null> {
    return this.lock(name, { wait: 0, ...options }).catch((error: unknown) => {
      if (error instanceof Busy || error instanceof LockTimeout) return null;
      throw error;
    });
  }

  /** Takes all of these locks, or none. `fences` has their tokens; the loss of one is a loss. */
  locks(names: readonly string[], options: LockOptions = {}): Promise<Lock> {
    return this.taken("LOCKALL", names, options, Lock);
  }

  /** Takes one of these locks, the first that is free: `name` says which. */
  anyLock(names: readonly string[], options: LockOptions = {}): Promise<Lock> {
    return this.taken("LOCKANY", names, options, Lock);
  }

  /** Takes one of limit permits, over all hosts together: `permit` says which. */
  semaphore(name: string, limit: number, options: PermitOptions = {}): Promise<Lock> {
    return this.taken("ACQUIRE", [name], options, Lock, limit);
  }

  /**
   * Calls a function while a lock, or all of several, is held. The signal aborts with LockLost when it is lost; then using() rejects with that, unless the
   * function has thrown an error of its own.
   */
  async using<T>(name: string | readonly string[], options: LockOptions, body: (signal: AbortSignal, lock: Lock) => Promise<T> | T): Promise<T>;
  async using<T>(name: string | readonly string[], body: (signal: AbortSignal, lock: Lock) => Promise<T> | T): Promise<T>;
  async using<T>(
    name: string | readonly string[],
    ...rest: [LockOptions, (signal: AbortSignal, lock: Lock) => Promise<T> | T] | [(signal: AbortSignal, lock: Lock) => Promise<T> | T]
  ): Promise<T> {
    const [options, body] = rest.length === 1 ? [{}, rest[0]] : rest;
    return this.within(await (typeof name === "string" ? this.lock(name, options) : this.locks(name, options)), body);
  }

  private async within<T>(lock: Lock, body: (signal: AbortSignal, lock: Lock) => Promise<T> | T): Promise<T> {
    const { signal } = lock;
    let result: T;
    try {
      result = await body(signal, lock);
    } catch (error) {
      await lock.unlock().catch(() => undefined);
      throw signal.aborted && (error as Error | undefined)?.name === "AbortError" ? signal.reason : error;
    }
    await lock.unlock();
    return result;
  }

  /**
   * Campaigns for a leadership, over and over: `for await (const term of client.lead("x")) { … }`. A term begins when it was won, and is given up at the end of
   * the loop's body. A loss is no error: `term.signal` aborts, and when the body ends the next term is campaigned for.
   */
  async *lead(name: string, options: Omit<LockOptions, "wait" | "shared"> = {}): AsyncGenerator<Lock, void, void> {
    for (;;) {
      const term = await this.lock(name, { ...options, wait: Infinity });
      try {
        yield term;
      } finally {
        await term.unlock().catch(unlessLost);
      }
    }
  }

  /**
   * Calls a function, unless it runs now or has begun within `every` seconds, on any host: then it resolves to null. The function runs under the lock of that
   * name, and the signal aborts with LockLost when it is lost. A call that throws counts as well; one whose lock was lost does not. `redlock once` has the same
   * records. With an event and a listener it is that of every EventEmitter.
   */
  override once(name: string, options: { every: number }, body: (signal: AbortSignal) => unknown): Promise<Outcome | null>;
  override once<K extends keyof ClientEvents>(event: K, listener: (...args: ClientEvents[K]) => void): this;
  override once(
    name: string,
    options: { every: number } | ((...args: never[]) => void),
    body?: (signal: AbortSignal) => unknown,
  ): this | Promise<Outcome | null> {
    if (typeof options === "function") return super.once(name as never, options as never);
    return this.called(name, options, body as (signal: AbortSignal) => unknown);
  }

  private async called(name: string, options: { every: number }, body: (signal: AbortSignal) => unknown): Promise<Outcome | null> {
    const every = seconds(options.every, "every");
    const lock = await this.tryLock(name);
    if (!lock) return null;
    return this.within(lock, async (signal) => {
      const runs = await this.runs(name);
      if (runs.last && runs.last.next > 0) return null;
      try {
        await body(signal);
      } catch (error) {
        await this.hasRun(lock, runs, runs.ends(1, every)).catch(() => undefined);
        throw error;
      }
      return this.hasRun(lock, runs, runs.ends(0, every));
    });
  }

  /** The result of the last run of once(), on whatever host; null: no run is known. */
  async onceStatus(name: string): Promise<Outcome | null> {
    return (await this.runs(name)).last ?? null;
  }

  private async runs(name: string): Promise<Runs> {
    return new Runs(name, await this.ask(Runs.question(name)));
  }

  private async hasRun(lock: Lock, runs: Runs, outcome: Outcome): Promise<Outcome> {
    await lock.ensure();
    await this.defer(runs.queue, Runs.record(outcome), { delay: outcome.next });
    for (const request of runs.drops()) if (!(await this.ask(request).catch(() => null))) break; // the next run drops them
    return outcome;
  }

  // --- rate limits and jobs ---

  /** Counts one more use. Rejects with Busy, which has retryAfter, or with LockTimeout. */
  async rate(name: string, options: RateOptions): Promise<Rate> {
    const wait = waitOf({ wait: 0, ...options });
    let text = `RATE ${quote(encode(name))} limit=${options.limit} per=${duration(seconds(options.per, "per"))}`;
    if (options.cost !== undefined && options.cost !== 1) text += ` cost=${options.cost}`;
    if (wait !== 0) text += wait === undefined ? " wait=forever" : ` wait=${duration(wait)}`;
    // It is never repeated: the use may have been counted.
    const line = await this.send((now) => new Ask(text, now + (wait ?? NEVER) + PATIENCE), options.signal);
    if (line.kind === "OK") return { left: line.number("left"), reset: line.seconds("reset_ms"), unmetered: line.get("unmetered") !== undefined };
    const retry = line.get("retry_ms") === undefined ? undefined : line.seconds("retry_ms");
    throw line.kind === "BUSY" ? new Busy(`${name}: the limit is used up`, name, undefined, retry) : new LockTimeout(`${name}: not admitted in time`, name);
  }

  /** Puts a job into a queue, and returns its id. */
  async defer(queue: string, payload: string | Uint8Array, options: DeferOptions = {}): Promise<string> {
    let text = `DEFER ${quote(encode(queue))} ${quoted(encode(payload))} id=${quote(encode(options.id ?? randomUUID()))}`; // with an id it can be repeated
    if (options.delay) text += ` delay=${duration(seconds(options.delay, "delay"))}`;
    if (options.lock !== undefined) text += ` lock=${quote(encode(options.lock))}`;
    return decode((await this.send((now) => new Repeatable(text, now + PATIENCE))).get("job") ?? "");
  }

  /** Takes the first job of a queue that is due. Rejects with Busy or LockTimeout if there is none. */
  job(queue: string, options: JobOptions = {}): Promise<Job> {
    return this.taken("TAKE", [queue], options, Job);
  }

  /**
   * The jobs of a queue, one after the other, until none came for `wait` seconds. At the end of the loop's body a job is done, unless it has been ended by
   * done() or retry(). When the body throws or leaves the loop, the job is given back, to be tried again.
   */
  async *jobs(queue: string, options: JobOptions = {}): AsyncGenerator<Job, void, void> {
    for (;;) {
      let job: Job;
      try {
        job = await this.job(queue, options);
      } catch (error) {
        if (error instanceof Busy || error instanceof LockTimeout) return;
        throw error;
      }
      let on = false;
      try {
        yield job;
        on = true;
        if (!job.over) await job.done();
      } finally {
        if (!on && !job.over) await job.retry().catch(unlessLost);
      }
    }
  }

  // --- anything else ---

  /** Sends any line of redlock-protocol(7), such as "SHOW orders/42". wait is that of the line. What it takes is yours to keep and to give back. */
  async ask(request: string, options: { wait?: number; signal?: AbortSignal } = {}): Promise<Answer> {
    if (/[\r\n]/.test(request)) throw new TypeError("a request is one line");
    const made = new Ask(encode(request), this.engine.begin() + (options.wait ?? 0) + PATIENCE);
    const line = await this.submit(made, options.signal);
    if (line.kind !== "OK") throw new RedlockError(`${request.split(" ", 1)[0]}: ${line.kind} ${line.text}`, line.kind);
    return { fields: fieldsOf(line), rows: (made.rows ?? []).map(fieldsOf) };
  }

  /** The address of the daemon. */
  get address(): string {
    return this.engine.core.settings.address;
  }

  /** Ends the session: all that it holds is free at once. */
  close(): Promise<void> {
    return this.engine.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** What console.log() prints. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Client { ${this.address} }`;
  }

  // --- inside ---

  private taken<T extends Held>(verb: Terms["verb"], names: readonly string[], options: LockOptions, kind: Kind<T>, limit?: number): Promise<T> {
    const { holding, signal } = options;
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    try {
      const terms = termsOf(verb, names, options, limit);
      const request = this.engine.core.take(terms, holding?.owner ?? `t${(++this.owners).toString(36)}`, this.engine.begin());
      return this.engine.wait(request, signal, (holds) => new kind(this, this.engine, holds));
    } catch (error) {
      return Promise.reject(error as Error); // of an argument, or of a client that is closed
    }
  }

  private send(make: (now: number) => Ask, signal?: AbortSignal): Promise<Line> {
    return this.submit(make(this.engine.begin()), signal);
  }

  private submit(request: Ask, signal?: AbortSignal): Promise<Line> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    this.engine.core.submit(request, this.engine.begin());
    return this.engine.wait(request, signal, (line) => line);
  }

  /** Asks for the push DRAIN. That ends with the connection. */
  private subscribe(): void {
    this.send((now) => new Ask("SUBSCRIBE", now + PATIENCE)).catch(() => undefined);
  }

  private heard(news: News): void {
    if (news.kind === "up") {
      if (this.listenerCount("drain")) this.subscribe();
      if (this.ups++) process.nextTick(() => this.emit("reconnect"));
    } else if (news.kind === "push" && news.line.code === "DRAIN") {
      const ms = news.line.number("in_ms", -1);
      process.nextTick(() => this.emit("drain", ms < 0 ? Infinity : ms / 1000));
    }
  }
}

function fieldsOf(line: Line): Record<string, string> {
  return Object.fromEntries([...line.fields()].map(([name, value]) => [name, decode(value)]));
}

