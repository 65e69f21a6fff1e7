// SPDX-License-Identifier: BSD-2-Clause
// The requests, each from its call to its answer. A request knows the line that it sends, what its answers mean, and what becomes of it when the connection
// breaks. It has no clock and no socket: the core sends its line, and hands it the answer.
import type { Core } from "./core.js";
import { Busy, Disconnected, LockLost, LockTimeout, type RedlockError, errorOf } from "./errors.js";
import { Hold, JobHold, type Key, NEVER, Permit, keyFor } from "./holds.js";
import { type Line, decode, duration, quote } from "./wire.js";

/** Seconds that an answer may take, in addition to the wait that the request asks for. */
export const PATIENCE = 5;
/** A grant that took longer than this is asked about again before the caller sees it. */
const WAITED_LONG = 0.1;

/** finished, with result or error, says that the caller may be told: by told(). asked is when the line was sent last, deadline when the answer is overdue. */
export abstract class Request<T = unknown> {
  tag = "";
  asked = 0;
  finished = false;
  repeated = false;
  result: T | undefined;
  error: Error | undefined;
  rows: Line[] | undefined;
  told: (() => void) | undefined;

  constructor(public deadline: number) {}

  /** Whether it is sent again in the resumed session when its answer was lost. */
  get survives(): boolean {
    return false;
  }

  /** What is sent, without tag and line end. */
  abstract line(now: number): string;

  /** Takes in the answer. */
  abstract answer(core: Core, line: Line, now: number): void;

  /** Sends it over the next connection: once more, if it was sent before. */
  again(core: Core, now: number): void {
    this.repeated = this.tag !== "";
    core.send(this, now);
  }

  /** No answer came in time, or the session is over. core.why says what happened. */
  overdue(core: Core): void {
    core.finish(this, undefined, new Disconnected(core.why));
  }

  /** The session was not resumed, and another one begins. A request that survives is sent in that. */
  sessionOver(_core: Core): void {}

  /** Its caller wants the answer no more. What is under way at the daemon is cancelled. */
  drop(_core: Core, _now: number): void {}
}

/** Is finished when the session is there. Nothing is sent. */
export class Ready extends Request {
  override line(): string {
    return "";
  }

  override answer(): void {}
}

/** Any line of the protocol. Its result is the last line of the answer; the rows are in rows. */
export class Ask extends Request<Line> {
  constructor(readonly text: string, deadline: number) {
    super(deadline);
  }

  override line(): string {
    return this.text;
  }

  override answer(core: Core, line: Line, _now: number): void {
    core.finish(this, line, line.kind === "ERR" ? errorOf(line.code, line.text, this.text.split(" ", 1)[0] as string) : undefined);
  }

  override drop(core: Core, now: number): void {
    if (!this.survives && core.sent.has(this.tag)) core.submit(new Cancel(this.tag, now + PATIENCE), now); // it may wait, as RATE does
  }
}

/** A request that may be sent twice, as DEFER with an id may. */
export class Repeatable extends Ask {
  override get survives(): boolean {
    return true;
  }
}

/** Ends the session. The daemon ends the connection after its answer, which is no loss of it. */
export class Quit extends Ask {
  constructor(deadline: number) {
    super("QUIT", deadline);
  }

  override answer(core: Core, line: Line, now: number): void {
    super.answer(core, line, now);
    core.close();
  }
}

/** Gives something back for which nobody waits. key is free for another hold once it is answered. */
export class Quiet extends Repeatable {
  constructor(text: string, readonly key: Key | undefined, deadline: number) {
    super(text, deadline);
  }

  override answer(core: Core, _line: Line, _now: number): void {
    if (this.key !== undefined) core.used.delete(this.key);
    this.finished = true;
  }

  override again(core: Core, now: number): void {
    this.deadline = now + PATIENCE;
    super.again(core, now);
  }

  override overdue(core: Core): void {
    this.deadline = NEVER;
    if (core.resumable) core.park(this);
    else this.finished = true;
  }

  override sessionOver(): void {
    this.finished = true;
  }
}

/** CHECK, for the keeper or for a caller, or for a grant that waited: its parent. */
export class Check extends Request<Hold> {
  constructor(readonly hold: Hold, deadline: number, private readonly parent?: Take) {
    super(deadline);
    hold.checking = true;
  }

  override get survives(): boolean {
    return true;
  }

  override line(_now: number): string {
    return this.hold.check();
  }

  override answer(core: Core, line: Line, now: number): void {
    const hold = this.hold;
    let error: RedlockError | undefined;
    if (line.kind === "OK" && hold.isAt(line)) {
      hold.confirm(this.asked, line.seconds("valid_ms"));
      core.relieve(hold, now);
    } else if (line.kind === "OK" || line.code === "LOST" || line.code === "NOTHELD") {
      core.lose(hold, "evicted");
    } else {
      hold.checkAt = now + hold.ttl / 3; // the stores do not answer, or the daemon has no time: the deadline stays
      error = errorOf(line.code, line.text, decode(hold.name));
    }
    this.done(core, now, error);
  }

  /** Tells whoever asked. */
  protected done(core: Core, now: number, error?: RedlockError): void {
    const hold = this.hold;
    hold.checking = false;
    const said = error ?? (hold.reason ? new LockLost(decode(hold.name), hold.reason, hold.fence) : undefined);
    core.finish(this, hold, said);
    this.parent?.checked(core, said, now);
  }

  override overdue(core: Core): void {
    this.done(core, core.time, new Disconnected(core.why));
  }

  override sessionOver(core: Core): void {
    this.done(core, core.time);
  }
}

/** EXTEND. */
export class Extend extends Check {
  constructor(hold: Hold, private readonly ttl: number | undefined, deadline: number) {
    super(hold, deadline);
  }

  override line(now: number): string {
    const { hold, ttl } = this;
    if (ttl && ttl < hold.ttl) hold.until = Math.min(hold.until, now + Math.max(0, ttl * 0.99 - 0.003)); // whatever is answered, it counts from here
    return hold.extend(ttl);
  }

  override answer(core: Core, line: Line, now: number): void {
    if (line.kind === "OK" && this.ttl) this.hold.ttl = this.ttl;
    super.answer(core, line, now);
  }
}

/** Gives a hold back: UNLOCK, RELEASE, DONE or RETRY. It is not withdrawn with its caller, and has PATIENCE of its own. */
export class Free extends Request<Line> {
  constructor(readonly hold: Hold, private readonly extra: string, deadline: number) {
    super(deadline);
  }

  override get survives(): boolean {
    return true;
  }

  override line(): string {
    return this.hold.free(this.extra);
  }

  override answer(core: Core, line: Line, now: number): void {
    const hold = this.hold;
    let error: RedlockError | undefined;
    core.forget(hold);
    if (line.kind === "ERR") {
      const gone = line.code === "LOST" || line.code === "NOTHELD";
      if (!gone) {
        error = errorOf(line.code, line.text, decode(hold.name));
        if (this.extra.includes(" ")) core.freeQuietly(hold, now); // a keep or a delay that is too long; the daemon would renew what nobody knows of
      } else if (!(this.repeated && line.code === "NOTHELD")) {
        error = new LockLost(decode(hold.name), hold.reason || "evicted", hold.fence);
      }
    }
    core.finish(this, line, error);
  }

  override overdue(core: Core): void {
    if (core.resumable) {
      super.overdue(core); // the caller is told, and the lock is freed when the session is back
      core.park(this);
    } else this.sessionOver(core);
  }

  /** The end of the session has freed it, or will. */
  override sessionOver(core: Core): void {
    core.forget(this.hold);
    core.finish(this);
  }
}

/** Withdraws a request that waits. Its answer says nothing: that of the request does. */
export class Cancel extends Request {
  constructor(private readonly of: string, deadline: number) {
    super(deadline);
  }

  override line(): string {
    return `CANCEL ${this.of}`;
  }

  override answer(): void {
    this.finished = true;
  }

  override overdue(): void {
    this.finished = true;
  }
}

/** What a Take asks for. text is the names as they stand in the line; fields are the same in each repetition; wait is undefined for ever. */
export interface Terms {
  readonly verb: "LOCK" | "LOCKALL" | "LOCKANY" | "ACQUIRE" | "TAKE";
  readonly names: readonly string[];
  readonly text: string;
  readonly fields: string;
  readonly wait: number | undefined;
  readonly ttl: number | undefined;
}

/** LOCK, LOCKALL, LOCKANY, ACQUIRE or TAKE. Its result is what it got. */
export class Take extends Request<readonly Hold[]> {
  /** What the session may have by this request. */
  readonly keys: readonly Key[];
  private readonly until: number;
  holds: readonly Hold[] = [];
  withdrawn = false;
  private refusal: RedlockError | undefined; // why it waits for the next daemon

  constructor(readonly terms: Terms, readonly owner: string, now: number) {
    const until = terms.wait === undefined ? NEVER : now + terms.wait;
    super(until + PATIENCE);
    this.until = until;
    this.keys = terms.names.map((name) => keyFor(name, owner));
  }

  override get survives(): boolean {
    return true;
  }

  /** Whether it takes a job. A queue is no lock: what it gives has a key of its own. */
  get isJob(): boolean {
    return this.terms.verb === "TAKE";
  }

  override line(now: number): string {
    const { verb, text, fields, wait } = this.terms;
    const own = this.isJob ? "" : ` owner=${this.owner} count=1`;
    const left = this.repeated ? this.until - now : (wait ?? NEVER);
    const waits = left === NEVER ? " wait=forever" : left > 0 ? ` wait=${duration(left)}` : "";
    return `${verb} ${text}${waits}${fields}${own}`;
  }

  // --- answers ---

  override answer(core: Core, line: Line, now: number): void {
    if (line.kind === "OK") {
      this.holds = (this.rows?.length ? this.rows : [line]).map((row) => this.holdOf(core, row));
      this.rows = undefined;
      this.granted(core, now);
    } else if (line.code === "DRAINING" && this.terms.wait !== 0 && core.resumable && !this.withdrawn) {
      this.refusal = this.errorOf(line);
      this.deadline = this.until;
      core.park(this);
    } else {
      this.refused(core, line, now);
    }
  }

  private holdOf(core: Core, line: Line): Hold {
    const ttl = line.get("ttl_ms") === undefined ? (this.terms.ttl ?? core.lease) : line.integer("ttl_ms") / 1000;
    const valid = line.integer("valid_ms") / 1000;
    const hold = this.isJob ? new JobHold(line, ttl, core.session) : this.lockOf(line, ttl, core.session);
    hold.confirm(this.asked, valid);
    return hold;
  }

  private lockOf(line: Line, ttl: number, session: number): Hold {
    const name = line.need("name");
    const fence = line.integer("fence");
    if (line.get("permit") !== undefined) return new Permit(name, this.owner, fence, ttl, session, line.integer("permit"));
    return new Hold(name, this.owner, fence, ttl, session);
  }

  /** Records what was granted, before the next line, which may be its loss. */
  private granted(core: Core, now: number): void {
    const slow = now - this.asked > WAITED_LONG;
    if (slow) for (const hold of this.holds) hold.until = hold.checkAt = NEVER; // its deadline may have passed: only CHECK tells a fresh one
    core.has(this.holds);
    if (this.terms.verb === "LOCKANY") for (const key of this.keys) if (key !== this.holds[0]?.key) core.used.delete(key);
    if (this.withdrawn) this.giveBack(core, now);
    else if (slow) for (const hold of this.holds) core.submit(new Check(hold, now + PATIENCE, this), now);
    else core.finish(this, this.holds);
  }

  /** One of the grants was asked about again. When all were, the caller sees them; if one is not certain, none of them. */
  checked(core: Core, error: Error | undefined, now: number): void {
    if (this.finished) return;
    if (error) {
      this.giveBack(core, now);
      core.finish(this, undefined, error);
    } else if (!this.holds.some((hold) => hold.checking)) {
      core.finish(this, this.holds);
    }
  }

  /** Frees what was granted and nobody wants. */
  private giveBack(core: Core, now: number): void {
    for (const hold of this.holds) core.returnQuietly(hold, now);
  }

  private refused(core: Core, line: Line, now: number): void {
    if (this.repeated && this.terms.verb === "LOCKALL") this.giveUp(core, now); // it may have some of the names from before the cut
    else core.unused(this.keys);
    core.finish(this, undefined, this.errorOf(line));
  }

  private errorOf(line: Line): RedlockError {
    const { wait } = this.terms;
    const names = this.terms.names.map(decode).join(", ");
    if (line.kind === "ERR") return errorOf(line.code, line.text, names);
    const raw = line.get("holder");
    const holder = raw === undefined ? undefined : decode(raw);
    const span = line.get("trace");
    const trace = span === undefined ? undefined : decode(span);
    const who = holder ? `, held by ${holder}` : "";
    const name = decode(line.get("name") ?? "") || names;
    if (line.kind === "TIMEOUT" || wait !== 0) {
      const within = wait === undefined ? "" : ` within ${wait} s`;
      return new LockTimeout(`${names}: not granted${within}${who}`, name, holder, trace);
    }
    const retry = line.get("retry_ms") === undefined ? undefined : line.seconds("retry_ms");
    return new Busy(`${names} is busy${who}`, name, holder, retry, trace);
  }

  // --- when nobody wants it any more, and when the connection breaks ---

  /** The caller wants it no more: the wait is cancelled, or what was granted is given back. */
  override drop(core: Core, now: number): void {
    if (this.withdrawn) return;
    this.withdrawn = true;
    if (this.holds.length) {
      this.finished = true;
      this.giveBack(core, now);
    } else if (core.sent.has(this.tag)) {
      core.submit(new Cancel(this.tag, now + PATIENCE), now);
    } else if (!(this.tag && core.resumable) && core.unpark(this)) {
      core.unused(this.keys); // nobody has heard of it
    }
  }

  override again(core: Core, now: number): void {
    this.deadline = this.until + PATIENCE;
    if (this.withdrawn) this.giveUp(core, now);
    else super.again(core, now);
  }

  /** Gives up the place in the queue, or what was granted, of a request whose answer was lost. A job comes back by its row of RESUME. */
  private giveUp(core: Core, now: number): void {
    if (this.isJob) return;
    const verb = this.terms.verb === "ACQUIRE" ? "RELEASE" : "UNLOCK";
    for (const name of this.terms.names) {
      core.submit(new Quiet(`${verb} ${quote(name)} owner=${this.owner} count=0`, keyFor(name, this.owner), now + PATIENCE), now);
    }
  }

  override overdue(core: Core): void {
    core.finish(this, undefined, this.refusal ?? new Disconnected(core.why));
    this.withdrawn = true;
    if (core.resumable && this.tag) core.park(this);
    else core.unused(this.keys);
  }

  override sessionOver(): void {
    if (this.withdrawn) this.finished = true;
  }
}
