// SPDX-License-Identifier: BSD-2-Clause
// Moves bytes between the core and a socket, and tells callers. One timer serves all holds, requests and attempts to connect. All requests of one turn of the
// event loop are sent at once. The socket and the timer keep the process alive while something is held or somebody waits, and not longer.
import type { Socket } from "node:net";
import { look, now, suspends } from "./clock.js";
import { Core, type News, type Settings } from "./core.js";
import { type Hold, NEVER } from "./holds.js";
import { type Place, type TlsOptions, dial } from "./place.js";
import { PATIENCE, Ready, Request } from "./requests.js";

/** setTimeout() takes no more milliseconds. */
const TIMER_MOST = 2 ** 31 - 1;

/** See the top of this file. */
export class Engine {
  readonly core: Core;
  /** Hears what is about the connection, and pushes. */
  heard: (news: News) => void = () => undefined;
  private socket: Socket | undefined;
  private dialing: Socket | undefined;
  private dialUntil = NEVER;
  private timer: NodeJS.Timeout | undefined;
  private timerAt = NEVER;
  private flushing = false;
  private kept = false; // whether the process is kept alive
  private closed = false;
  private suspends = suspends();

  constructor(settings: Settings, private readonly place: Place, private readonly tls: TlsOptions, private readonly timeout: number) {
    this.core = new Core(settings);
  }

  // --- requests ---

  /** Before a request: what time it is. What is submitted then is sent at the end of this turn of the event loop. */
  begin(): number {
    const moment = this.seen(now());
    if (moment >= this.core.wake) this.core.tick(moment);
    if (!this.flushing) {
      this.flushing = true;
      process.nextTick(this.flush);
    }
    return moment;
  }

  /** The result of a request. When the signal aborts, the request is withdrawn, and the promise rejects with the signal's reason. */
  wait<T, R>(request: Request<T>, signal: AbortSignal | undefined, make: (result: T, request: Request<T>) => R): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      const told = (): void => {
        if (request.error) reject(request.error);
        else resolve(make(request.result as T, request));
      };
      request.told = told;
      if (!signal) return;
      const abort = (): void => {
        request.told = undefined;
        request.drop(this.core, this.begin());
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", abort, { once: true });
      request.told = () => {
        signal.removeEventListener("abort", abort);
        told();
      };
    });
  }

  /** For how many seconds all of these may be relied on. */
  left(holds: readonly Hold[]): number {
    const moment = this.seen(look());
    let least = holds.length ? NEVER : 0;
    for (const hold of holds) least = Math.min(least, hold.left(moment));
    return least;
  }

  /** Waits until the session is there. */
  open(signal: AbortSignal | undefined): Promise<void> {
    const request = new Ready(this.begin() + this.timeout + PATIENCE);
    this.core.submit(request, now());
    return this.wait(request, signal, () => undefined);
  }

  /** Ends the session, and waits a second at most until the daemon has read that. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    const request = this.core.quit(this.begin());
    if (request) await this.wait(request, undefined, () => undefined).catch(() => undefined);
    this.core.close();
    this.settle();
    clearTimeout(this.timer);
  }

  /** Whether close() was called. */
  get isClosed(): boolean {
    return this.closed;
  }

  private seen(moment: number): number {
    if (this.suspends !== suspends()) {
      this.suspends = suspends();
      this.core.suspended(moment);
      if (!this.flushing) {
        this.flushing = true;
        process.nextTick(this.flush);
      }
    }
    return moment;
  }

  // --- what follows from what the core was told ---

  private readonly flush = (): void => {
    this.flushing = false;
    if (this.core.wake <= now()) this.core.tick(now());
    this.settle();
  };

  /** Closes, tells, sends, dials, and sets the timer. */
  private settle(): void {
    const core = this.core;
    for (let events = core.takeEvents(); events.length; events = core.takeEvents()) {
      for (const event of events) {
        if (event instanceof Request) event.told?.();
        else if ("hold" in event) event.hold.listener?.news(event.kind, event.hold);
        else this.heard(event);
      }
    }
    if (this.socket) {
      if (core.online) {
        const out = core.takeOutput();
        if (out) this.socket.write(out, "latin1");
      } else this.drop();
    }
    if (this.dialing && !core.dialing) this.hangUp();
    if (core.dialAt < NEVER && core.dialAt <= now()) this.dial();
    if (core.busy !== this.kept) this.keep(core.busy);
    if (Math.min(core.wake, this.dialUntil) < this.timerAt) this.arm();
  }

  private keep(kept: boolean): void {
    this.kept = kept;
    for (const one of [this.socket, this.dialing, this.timer]) {
      if (kept) one?.ref();
      else one?.unref();
    }
  }

  private arm(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.timerAt = Math.min(this.core.wake, this.dialUntil);
    if (this.timerAt === NEVER || this.core.state === "closed") return;
    this.timer = setTimeout(this.tick, Math.min(TIMER_MOST, Math.max(0, Math.ceil((this.timerAt - now()) * 1000))));
    if (!this.kept) this.timer.unref();
  }

  private readonly tick = (): void => {
    this.timer = undefined;
    this.timerAt = NEVER;
    const moment = this.seen(look());
    if (moment >= this.dialUntil) this.failed(`no connection within ${this.timeout} s`);
    this.core.tick(moment);
    this.settle();
    if (!this.timer) this.arm();
  };

  // --- the connection ---

  private dial(): void {
    this.core.dial();
    this.dialUntil = now() + this.timeout;
    this.attempt();
  }

  private attempt(): void {
    let socket: Socket;
    const read = (data: Buffer): void => {
      if (socket !== this.socket) return;
      this.core.receive(data.toString("latin1"), this.seen(now()));
      this.settle();
    };
    try {
      socket = dial(this.place, this.tls, read);
    } catch (error) {
      this.dialUntil = NEVER;
      process.nextTick(() => this.failed((error as Error).message)); // a file of TLS, or an address that cannot be used
      return;
    }
    this.dialing = socket;
    socket.once(this.place.tls ? "secureConnect" : "connect", () => this.connected(socket));
    socket.on("data", read);
    socket.on("error", (error: NodeJS.ErrnoException) => this.broken(socket, reasonOf(error)));
    socket.on("end", () => this.broken(socket, "the daemon closed the connection"));
    socket.on("close", () => this.broken(socket, "the daemon closed the connection"));
  }

  private connected(socket: Socket): void {
    if (socket !== this.dialing) return;
    this.dialing = undefined;
    this.dialUntil = NEVER;
    this.socket = socket;
    if (!this.kept) socket.unref();
    this.core.connected(this.seen(now()));
    this.settle();
  }

  private broken(socket: Socket, why: string): void {
    if (socket === this.dialing && why.includes("EAGAIN")) this.attemptAgain(socket);
    else if (socket === this.dialing) this.failed(why);
    else if (socket === this.socket) {
      this.core.disconnected(why, now());
      this.settle();
    }
  }

  /** More clients connect to the Unix socket at this moment than the daemon has accepted. */
  private attemptAgain(socket: Socket): void {
    this.dialing = undefined;
    socket.destroy();
    setTimeout(() => {
      if (this.core.dialing && !this.dialing) this.attempt();
    }, 10);
  }

  private failed(why: string): void {
    this.hangUp();
    if (!this.core.dialing) return;
    this.core.notConnected(why, now());
    this.settle();
  }

  private hangUp(): void {
    const socket = this.dialing;
    this.dialing = undefined;
    this.dialUntil = NEVER;
    socket?.destroy();
  }

  /** Closes the connection. What was not sent yet is not sent any more. */
  private drop(): void {
    const socket = this.socket;
    this.socket = undefined;
    socket?.destroy();
  }
}

function reasonOf(error: NodeJS.ErrnoException): string {
  const all = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [error];
  return all.map((one) => one.message || one.code).join("; ") || "the connection broke";
}
