// SPDX-License-Identifier: BSD-2-Clause
// A session, without I/O: bytes in, bytes and events out. The caller says what time it is with each call, opens a connection when dialAt says so, and closes it
// when online is false. Nothing here sleeps, reads a clock or opens a socket.
//
// In order: requests come in (submit, take, free, drop); lines come in (receive); the connection comes and goes (connected, disconnected, notConnected); time
// passes (tick). What is to be sent is takeOutput(), what happened is takeEvents(), when to call tick() at the latest is wake.
import { Disconnected, LockLost, type RedlockError } from "./errors.js";
import { Auth, Greeting, Hello, Resume } from "./greeting.js";
import { Hold, type HoldNews, JobHold, type Key, NEVER, Permit, keyFor, keyOf } from "./holds.js";
import { type Ask, Check, Extend, Free, PATIENCE, Quiet, Quit, Ready, type Request, Take, type Terms } from "./requests.js";
import { Line, ProtocolError, Reader, decode, duration, encode, quote } from "./wire.js";

const PAUSE_FIRST = 0.01;
const PAUSE_MOST = 0.5;
const ANSWERS = new Set(["OK", "BUSY", "TIMEOUT", "ERR"]);

/** What a session asks for. address is for texts. The secret stands in no text. */
export interface Settings {
  readonly address: string;
  readonly label: string | undefined;
  readonly grace: number;
  readonly heartbeat: number;
  readonly user: string | undefined;
  readonly secret: (() => string) | undefined; // a function: nothing that prints a client prints it
}

/** What happened unasked: to a hold, to the connection, or a push that is about neither. */
export type News =
  | { readonly kind: HoldNews; readonly hold: Hold }
  | { readonly kind: "up" | "down" }
  | { readonly kind: "push"; readonly line: Line };

/**
 * Where the connection is. off: none, and none is wanted; away: none, and one is wanted at dialAt; greeting: connected, but the session has not begun or come
 * back yet; up: requests are sent as they come; closed: the session is over for good.
 */
export type State = "off" | "away" | "greeting" | "up" | "closed";

/** See the top of this file. */
export class Core {
  state: State = "off";
  why: string;
  time = 0;
  dialAt = NEVER;
  wake = NEVER;
  dialing = false; // an attempt to connect is under way
  lease = 10;
  grace: number;
  session = 1; // counts sessions: a hold of another one is not told to the daemon
  alive = 0; // how many holds are
  readonly holds = new Map<Key, Hold>();
  readonly used = new Set<Key>(); // keys of what is held, asked for, or being given back
  readonly sent = new Map<string, Request>();
  later: Request[] = []; // sent when the session is there
  private giveUpAt = NEVER;
  private beatAt = NEVER;
  private id = "";
  private secret = "";
  private pauses = 0;
  private events: (Request | News)[] = [];
  private out = "";
  private reader = new Reader();
  private connections = 0;
  private tags = 0;

  constructor(readonly settings: Settings, private readonly chance: () => number = Math.random) {
    this.grace = settings.grace;
    this.why = `${settings.address}: no connection yet`;
  }

  // --- what the front end looks at ---

  /** Whether there is to be a connection now. One that is open otherwise must be closed. */
  get online(): boolean {
    return this.state === "greeting" || this.state === "up";
  }

  /** Whether the session outlives its connection. */
  get resumable(): boolean {
    return this.secret !== "" && this.grace > 0 && this.state !== "closed";
  }

  /** Whether something is held, or somebody waits. */
  get busy(): boolean {
    return this.alive > 0 || this.sent.size > 0 || this.later.length > 0;
  }

  /** What is to be sent, a character for each byte. It is handed out once. */
  takeOutput(): string {
    const out = this.out;
    this.out = "";
    return out;
  }

  /** What happened since the last call: requests that have finished, and news. */
  takeEvents(): (Request | News)[] {
    const events = this.events;
    if (events.length) this.events = [];
    return events;
  }

  // --- requests ---

  /** Sends a request, at once or when the session is there. */
  submit(request: Request, now: number): void {
    if (this.state === "up") {
      this.send(request, now);
      return;
    }
    if (this.state === "closed") throw new Disconnected(`${this.settings.address}: this client is closed`);
    this.later.push(request);
    this.wakeAt(request.deadline);
    if (this.state === "off") this.dialAgainAt(now);
  }

  /** Puts the line of a request into the output. T of its answer is now, or later. */
  send(request: Request, now: number): void {
    request.tag = `@${++this.tags}`;
    request.asked = now;
    if (request.finished) request.deadline = now + PATIENCE; // the caller has been told, but it is to be carried out
    this.sent.set(request.tag, request);
    this.out += `${request.tag} ${request.line(now)}\n`;
    this.wakeAt(request.deadline);
    if (request instanceof Extend) this.wakeAt(request.hold.until); // it may ask for a shorter lease
    if (this.settings.heartbeat) this.beatAt = now + this.settings.heartbeat / 3;
  }

  /**
   * Asks for locks, a permit or a job. who is the owner: the daemon sees by it who waits for whom. What that owner has already, or asks for already, is asked
   * for as somebody else.
   */
  take(terms: Terms, who: string, now: number): Take {
    let request = new Take(terms, who, now);
    if (!request.isJob) {
      for (let n = 1; request.keys.some((key) => this.used.has(key)); n++) request = new Take(terms, `${who}.${n}`, now);
      for (const key of request.keys) this.used.add(key);
    }
    this.submit(request, now);
    return request;
  }

  /** Gives a hold back. undefined: there is nothing to tell the daemon any more. */
  free(hold: Hold, now: number, extra = ""): Free | undefined {
    if (hold.freed) return undefined;
    this.letGo(hold);
    if (hold.session !== this.session || this.holds.get(hold.key) !== hold) return undefined; // another session; or the job was taken again meanwhile
    const request = new Free(hold, extra, now + PATIENCE);
    this.submit(request, now);
    return request;
  }

  /** Asks whether a hold is still there. */
  check(hold: Hold, now: number): Check {
    const request = new Check(hold, now + PATIENCE);
    if (hold.alive) this.submit(request, now);
    else {
      hold.checking = false;
      this.finish(request, undefined, new LockLost(decode(hold.name), hold.reason || "released", hold.fence));
    }
    return request;
  }

  /** Ends the session. undefined: there is no connection to say so on. */
  quit(now: number): Ask | undefined {
    if (this.state !== "up") return undefined;
    const request = new Quit(now + 1);
    this.send(request, now);
    return request;
  }

  /** Nothing is held from here on, and nothing is asked any more. */
  close(): void {
    this.why = `${this.settings.address}: this client is closed`;
    this.state = "closed";
    this.endSession("closed");
  }

  // --- what requests do with the session ---

  /** The caller of a request is to be told. */
  finish<T>(request: Request<T>, result?: T, error?: Error): void {
    if (request.finished) return;
    request.finished = true;
    request.result = result;
    request.error = error;
    this.events.push(request);
  }

  /** The session has these from now on. */
  has(holds: readonly Hold[]): void {
    for (const hold of holds) {
      const before = this.holds.get(hold.key);
      if (before) this.lose(before, "evicted"); // the job was taken again
      this.holds.set(hold.key, hold);
      this.alive++;
      this.wakeAt(Math.min(hold.checkAt, hold.until));
    }
  }

  /** The session has it no more, and another one of its key may be asked for. */
  forget(hold: Hold): void {
    this.letGo(hold);
    if (this.holds.get(hold.key) === hold) {
      this.holds.delete(hold.key);
      this.used.delete(hold.key);
    }
  }

  /** Frees what nobody knows of. */
  returnQuietly(hold: Hold, now: number): void {
    if (hold.freed) return;
    this.letGo(hold);
    if (hold.session !== this.session) return;
    this.holds.delete(hold.key);
    this.freeQuietly(hold, now);
  }

  /** Sends a release of which only the errors of the connection matter. The key stays in use until it is answered. */
  freeQuietly(hold: Hold, now: number): void {
    this.used.add(hold.key);
    this.submit(new Quiet(hold.free(hold instanceof JobHold ? "RETRY failed=no" : ""), hold.key, now + PATIENCE), now);
  }

  /** A hold cannot be relied on any more. Its key stays in use until its caller lets it go, and so acknowledges the loss. */
  lose(hold: Hold, reason: string): void {
    if (!hold.alive) return;
    this.alive--;
    hold.reason = reason;
    this.events.push({ kind: "lost", hold });
  }

  /** An answer has moved the deadline on. */
  relieve(hold: Hold, now: number): void {
    this.wakeAt(Math.min(hold.checkAt, hold.until));
    if (hold.riskUntil && hold.until > hold.riskUntil + hold.ttl / 10) this.safe(hold, now);
  }

  /** Sends a request again when the session comes back. */
  park(request: Request): void {
    if (this.later.includes(request)) return;
    this.later.push(request);
    this.wakeAt(request.deadline);
  }

  /** Takes back one that was not sent yet. Whether there was one. */
  unpark(request: Request): boolean {
    const at = this.later.indexOf(request);
    if (at >= 0) this.later.splice(at, 1);
    return at >= 0;
  }

  /** These keys may be asked for again. */
  unused(keys: Iterable<Key>): void {
    for (const key of keys) this.used.delete(key);
  }

  /** The machine was suspended: nothing is relied on until a request that is sent from now on is answered. */
  suspended(now: number): void {
    for (const hold of this.holds.values()) {
      if (!hold.alive) continue;
      hold.doubted = now;
      hold.checkAt = now;
      hold.checking = false; // what is under way was asked before
    }
    this.wake = Math.min(this.wake, now);
  }

  private letGo(hold: Hold): void {
    if (hold.alive) this.alive--;
    hold.freed = true;
  }

  private wakeAt(moment: number): void {
    if (moment < this.wake) this.wake = moment;
  }

  private safe(hold: Hold, _now: number): void {
    if (!hold.riskUntil) return;
    hold.riskUntil = 0;
    this.events.push({ kind: "safe", hold });
  }

  private risk(hold: Hold): void {
    if (hold.riskUntil) return;
    hold.riskUntil = hold.until;
    this.events.push({ kind: "risk", hold });
  }

  // --- lines ---

  /** Takes in bytes of the daemon, a character for each. */
  receive(data: string, now: number): void {
    this.time = now;
    const connection = this.connections;
    try {
      for (const text of this.reader.feed(data)) {
        const end = text.indexOf(" ");
        const tag = end < 0 ? text : text.slice(0, end);
        const request = this.sent.get(tag);
        if (request) this.answer(request, new Line(text.slice(end + 1)), now);
        else if (tag === "!") this.push(new Line(text), now);
        if (connection !== this.connections || !this.online) return; // it has been given up
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.disconnected(`the daemon sent what is no answer: ${error.message}`, now);
    }
  }

  private answer(request: Request, line: Line, now: number): void {
    if (line.kind === "*") {
      if (request.rows) request.rows.push(line);
      else request.rows = [line];
    } else if (ANSWERS.has(line.kind)) {
      this.sent.delete(request.tag);
      try {
        request.answer(this, line, now);
      } catch (error) {
        if (error instanceof ProtocolError) this.sent.set(request.tag, request); // it ends with the connection
        throw error;
      }
    }
  }

  private push(line: Line, now: number): void {
    const { code } = line;
    if (code !== "LOST" && code !== "RISK" && code !== "SAFE") {
      this.events.push({ kind: "push", line });
      return;
    }
    const hold = this.pushedHold(line);
    if (!hold?.alive) return;
    if (code === "LOST") {
      this.lose(hold, line.get("reason") ?? "unknown");
      return;
    }
    hold.until = Math.min(hold.until, now + line.seconds(code === "RISK" ? "left_ms" : "valid_ms"));
    if (code === "RISK") this.risk(hold);
    else {
      this.safe(hold, now);
      hold.checkAt = now; // a push moves no deadline on
    }
    this.wake = now;
  }

  private pushedHold(line: Line): Hold | undefined {
    const owner = line.get("owner") ?? "";
    if (owner.startsWith("job:")) {
      // the lock of a job
      return [...this.holds.values()].find((hold) => hold instanceof JobHold && owner === `job:${hold.name}/${hold.job}`);
    }
    const hold = this.holds.get(keyOf(line));
    return hold?.isAt(line) ? hold : undefined;
  }

  // --- the connection ---

  /** The front end begins an attempt to connect. */
  dial(): void {
    this.dialAt = NEVER;
    this.dialing = true;
  }

  /** A connection is there: the session begins, or comes back. */
  connected(now: number): void {
    this.time = now;
    this.state = "greeting";
    this.dialAt = NEVER;
    this.dialing = false;
    this.connections++;
    this.reader = new Reader();
    const { user, secret } = this.settings;
    if (user && secret) this.send(new Auth(`AUTH ${quote(encode(user))} ${quote(encode(secret()))}`, now + PATIENCE), now);
    else this.greet(now);
  }

  /** Sends RESUME, or HELLO. */
  greet(now: number): void {
    if (this.id && this.resumable) {
      this.send(new Resume(`RESUME ${this.id} ${this.secret}`, now + PATIENCE), now);
      return;
    }
    const { label, heartbeat } = this.settings;
    const words = ["HELLO 1"];
    if (label) words.push(`name=${quote(encode(label))}`);
    if (heartbeat) words.push(`heartbeat=${duration(heartbeat)}`);
    if (this.grace) words.push(`grace=${duration(this.grace)}`);
    this.send(new Hello(words.join(" "), now + PATIENCE), now);
  }

  /** An attempt to connect has failed. */
  notConnected(why: string, now: number): void {
    this.time = now;
    this.dialing = false;
    this.why = `${this.settings.address}: ${why}`;
    if (this.resumable) this.dialLater(now);
    else this.giveUp();
  }

  /** The connection broke, or is given up. */
  disconnected(why: string, now: number): void {
    if (!this.online) return;
    this.time = now;
    this.why = `${this.settings.address}: ${why}`;
    const greeting = this.state === "greeting";
    const pending = [...this.sent.values()];
    this.sent.clear();
    this.out = "";
    this.beatAt = NEVER;
    this.events.push({ kind: "down" });
    if (!this.resumable) {
      this.later.unshift(...pending);
      this.giveUp();
      return;
    }
    this.state = "away";
    const kept: Request[] = [];
    for (const request of pending) {
      if (request.survives && (request.deadline > now || request.finished)) kept.push(request);
      else if (!(request instanceof Greeting)) request.overdue(this);
    }
    this.later.unshift(...kept);
    if (greeting) {
      this.dialLater(now);
      return;
    }
    this.giveUpAt = now + this.grace;
    for (const hold of this.holds.values()) if (hold.alive && hold.until < NEVER) this.giveUpAt = Math.max(this.giveUpAt, hold.until);
    this.pauses = 0;
    this.dialAgainAt(now);
  }

  private dialAgainAt(at: number): void {
    this.state = "away";
    this.dialAt = at;
    this.wakeAt(at);
  }

  private dialLater(now: number): void {
    if (now >= this.giveUpAt) {
      this.giveUp();
      return;
    }
    const longest = Math.min(PAUSE_FIRST * 2 ** Math.min(this.pauses++, 10), PAUSE_MOST);
    this.dialAgainAt(now + longest / 2 + (this.chance() * longest) / 2);
  }

  /** There is no session any more, and nobody tries to have one until the next request. */
  private giveUp(): void {
    this.state = "off";
    this.endSession("disconnected");
  }

  /** All holds are lost by name, and all requests are told. */
  private endSession(reason: string): void {
    this.dialAt = this.giveUpAt = NEVER;
    this.dialing = false;
    this.id = this.secret = "";
    this.session++;
    this.grace = this.settings.grace;
    this.loseAll(reason);
    const pending = [...this.sent.values(), ...this.later];
    this.sent.clear();
    this.later = [];
    this.out = "";
    for (const request of pending) request.overdue(this);
    this.used.clear();
  }

  private loseAll(reason: string): void {
    for (const hold of this.holds.values()) this.lose(hold, reason);
    this.holds.clear();
  }

  // --- greeting: what its answers do ---

  /** HELLO was answered OK. */
  begun(line: Line, now: number): void {
    this.id = line.get("session") ?? "";
    this.secret = line.get("secret") ?? "";
    this.lease = line.number("lease_ms", 10000) / 1000;
    this.up(now);
  }

  /** RESUME was answered OK: what has a row is held, what has none is lost, unless the daemon says that some are undecided or did not fit. */
  resumed(rows: readonly Line[], line: Line, asked: number, now: number): void {
    const at = new Map(rows.map((row) => [keyOf(row), row]));
    const undecided = line.number("open") > 0 || line.number("more") > 0;
    for (const hold of this.holds.values()) {
      const row = at.get(hold.key);
      at.delete(hold.key);
      if (hold.freed) continue; // its release is asked again
      if (row && hold.isAt(row)) {
        hold.confirm(asked, row.seconds("valid_ms"));
        this.relieve(hold, now);
      } else if (!row && undecided) hold.checkAt = now;
      else this.lose(hold, "evicted");
    }
    const takes = this.later.filter((request) => request instanceof Take);
    const wanted = new Set(takes.flatMap((request) => request.keys));
    for (const request of this.later) if (request instanceof Quiet && request.key !== undefined) wanted.add(request.key);
    const queues = new Set(takes.filter((request) => request.isJob && !request.withdrawn).map((request) => request.terms.names[0] as string));
    this.mentionJobs(queues, now);
    this.up(now);
    for (const [key, row] of at) this.surplus(key, row, wanted, queues, now);
  }

  /** Before a TAKE is asked again each job that is known is mentioned, so that it is not answered with one of them. */
  private mentionJobs(queues: ReadonlySet<string>, now: number): void {
    const known = [...this.holds.values()].filter((hold) => hold instanceof JobHold && hold.alive && queues.has(hold.name));
    this.later.unshift(...known.map((hold) => new Check(hold, now + PATIENCE)));
  }

  /** A row of what nobody knows of: the grant, or the release, was answered over the connection that broke. */
  private surplus(key: Key, row: Line, wanted: ReadonlySet<Key>, queues: ReadonlySet<string>, now: number): void {
    let hold: Hold | undefined;
    const name = row.get("name") ?? "";
    const owner = row.get("owner") ?? "";
    if (row.get("job") !== undefined) {
      if (!queues.has(row.get("queue") ?? "")) hold = new JobHold(row, this.lease, this.session);
    } else if (!wanted.has(key) && !this.holds.has(keyFor(name, owner)) && owner.startsWith("t")) {
      const fence = row.number("fence");
      const permit = row.get("permit");
      hold = permit === undefined ? new Hold(name, owner, fence, 1, this.session) : new Permit(name, owner, fence, 1, this.session, Number(permit));
    }
    if (hold) {
      this.alive++; // letGo() counts it down
      this.returnQuietly(hold, now);
    }
  }

  /** The daemon does not know the session any more: all is lost by name, and what waits begins anew. */
  gone(now: number): void {
    this.id = this.secret = "";
    this.session++;
    this.loseAll("expired");
    for (const request of this.later) request.sessionOver(this);
    this.later = this.later.filter((request) => !request.finished);
    this.used.clear();
    for (const request of this.later) if (request instanceof Take && !request.isJob) for (const key of request.keys) this.used.add(key);
    this.grace = this.settings.grace;
    this.greet(now);
  }

  /** The daemon does not want us. No request is answered, nor is any later one, until the next attempt. */
  refused(error: RedlockError): void {
    this.why = error.message;
    this.events.push({ kind: "down" });
    for (const request of this.later) this.finish(request, undefined, error);
    this.giveUp();
  }

  private up(now: number): void {
    this.state = "up";
    this.pauses = 0;
    this.giveUpAt = NEVER;
    this.events.push({ kind: "up" });
    const later = this.later;
    this.later = [];
    for (const request of later) {
      if (request instanceof Ready) this.finish(request);
      else if (request.deadline <= now && !request.finished && !(request instanceof Quiet)) request.overdue(this);
      if (!request.finished || request instanceof Take || request instanceof Free) request.again(this, now);
    }
    this.later = [];
    this.wake = now; // what is due is looked for
  }

  // --- time ---

  /** Does what is due. Sets wake to when something is due next. */
  tick(now: number): void {
    this.time = now;
    if (now < this.wake) return;
    if (this.state === "up") this.keep(now);
    this.expire(now);
    for (const request of this.sent.values()) {
      if (request.deadline <= now) {
        this.disconnected(`no answer within ${(now - request.asked).toFixed(1)} s`, now);
        break;
      }
    }
    for (const request of this.later.filter((one) => one.deadline <= now && !one.finished)) {
      this.unpark(request);
      request.overdue(this);
    }
    this.wake = this.nextMoment();
  }

  /** CHECKs what is due, and what is nearly due with it: one moment for many holds. */
  private keep(now: number): void {
    for (const hold of this.holds.values()) {
      if (!hold.alive || hold.checking || hold.checkAt > now + hold.ttl / 30) continue;
      this.send(new Check(hold, now + PATIENCE), now);
      this.events.push({ kind: "checked", hold });
    }
    if (now >= this.beatAt) {
      this.out += "\n";
      this.beatAt = now + this.settings.heartbeat / 3;
    }
  }

  private expire(now: number): void {
    for (const hold of this.holds.values()) {
      if (!hold.alive) continue;
      if (hold.until <= now) this.lose(hold, "expired");
      else if (hold.riskAt <= now) this.risk(hold);
    }
  }

  private nextMoment(): number {
    let next = Math.min(this.dialAt, this.beatAt);
    for (const request of this.sent.values()) next = Math.min(next, request.deadline);
    for (const request of this.later) if (!request.finished) next = Math.min(next, request.deadline);
    for (const hold of this.holds.values()) {
      if (!hold.alive) continue;
      next = Math.min(next, hold.until, hold.riskAt);
      if (!hold.checking && this.state === "up") next = Math.min(next, hold.checkAt);
    }
    return next;
  }
}
