// SPDX-License-Identifier: BSD-2-Clause
// A daemon for tests, inside the process: it keeps locks, and does on demand what a real one does when things go wrong. It knows the requests that this package
// sends, and no more. It speaks over TCP on 127.0.0.1.
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { decode, encode, quote, quoted, unquote } from "./wire.js";

const WORD = /(?:[^\s"]|"(?:[^"\\]|\\.)*")+/g;
const UNITS: Record<string, number> = { us: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 36e5 };

/** A session: what it holds ends with it. */
interface Session {
  readonly socket: Socket | undefined;
  readonly lost: Set<string>; // name and owner of what was lost and not given back yet
}

interface Grant {
  readonly name: string;
  readonly owner: string;
  readonly fence: number;
  readonly session: Session;
  readonly shared: boolean;
  readonly slot: number | undefined;
}

/** A request that takes something. */
interface Wish {
  readonly tag: string;
  readonly verb: string;
  readonly names: readonly string[];
  readonly owner: string;
  readonly session: Session;
  readonly shared: boolean;
  readonly limit: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

interface DeferredJob {
  readonly id: string;
  readonly queue: string;
  readonly payload: string;
  due: number;
  attempt: number;
  taken: Session | undefined;
}

type Fields = Map<string, string>;

function milliseconds(text: string | undefined): number {
  if (text === undefined) return 0;
  if (text === "forever") return Infinity;
  const found = /^([0-9.]+)([a-z]*)$/.exec(text);
  return found ? Number(found[1]) * (UNITS[found[2] as string] ?? 1) : 0;
}

/** See the top of this file. */
export class Fake {
  quorum = true;
  private fences = Date.now() * 1000;
  private grants: Grant[] = [];
  private wishes: Wish[] = [];
  private jobs: DeferredJob[] = [];
  private rates = new Map<string, number[]>();
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;
  private frozen: Promise<void> | undefined;

  constructor(private readonly lease: number) {
    this.server = createServer((socket) => this.accept(socket));
  }

  /** Begins to listen. Returns the address. */
  async start(): Promise<string> {
    await new Promise<void>((resolve, reject) => this.server.once("error", reject).listen(0, "127.0.0.1", resolve));
    this.server.unref();
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    for (const wish of this.wishes) clearTimeout(wish.timer);
    await new Promise((resolve) => this.server.close(resolve));
  }

  // --- what goes wrong ---

  /** Takes a lock, or a permit, away from those who have it. Whether somebody had. */
  lose(name: string, reason: string): boolean {
    const gone = this.grants.filter((grant) => grant.name === encode(name));
    for (const grant of gone) {
      grant.session.lost.add(`${grant.owner} ${grant.name}`);
      this.push(grant, `LOST ${this.about(grant)} reason=${reason}`);
    }
    this.grants = this.grants.filter((grant) => !gone.includes(grant));
    this.serve();
    return gone.length > 0;
  }

  /** Warns those who have it. Whether somebody has. */
  risk(name: string): boolean {
    const at = this.grants.filter((grant) => grant.name === encode(name));
    for (const grant of at) this.push(grant, `RISK ${this.about(grant)} left_ms=${Math.round(this.lease * 0.75)}`);
    return at.length > 0;
  }

  /** Somebody else takes it. Returns what gives it back; undefined: it is held. */
  elsewhere(name: string): (() => void) | undefined {
    const session: Session = { socket: undefined, lost: new Set() };
    const wish: Wish = { tag: "", verb: "LOCK", names: [encode(name)], owner: "e", session, shared: false, limit: undefined, timer: undefined };
    if (!this.grant(wish)) return undefined;
    return () => this.end(session);
  }

  /** Answers nothing for so many milliseconds, as if the process were stopped. */
  async freeze(ms: number): Promise<void> {
    const before = this.frozen;
    const frozen = (async () => {
      await before;
      await new Promise((resolve) => setTimeout(resolve, ms));
    })();
    this.frozen = frozen;
    await frozen;
    if (this.frozen === frozen) this.frozen = undefined;
  }

  // --- connections ---

  private accept(socket: Socket): void {
    const session: Session = { socket, lost: new Set() };
    let rest = "";
    this.sockets.add(socket);
    socket.unref();
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.sockets.delete(socket);
      this.end(session);
    });
    socket.on("data", async (data) => {
      const lines = (rest + data.toString("latin1")).split("\n");
      rest = lines.pop() as string;
      while (this.frozen) await this.frozen;
      for (const line of lines) if (line.trim()) this.request(session, line);
    });
  }

  private end(session: Session): void {
    for (const wish of this.wishes) if (wish.session === session) clearTimeout(wish.timer);
    this.wishes = this.wishes.filter((wish) => wish.session !== session);
    this.grants = this.grants.filter((grant) => grant.session !== session);
    for (const job of this.jobs) if (job.taken === session) job.taken = undefined;
    this.serve();
  }

  private push(grant: Grant, text: string): void {
    grant.session.socket?.write(`! ${text}\n`, "latin1");
  }

  private about(grant: Grant): string {
    return `name=${quote(grant.name)} fence=${grant.fence} owner=${grant.owner}${grant.slot === undefined ? "" : ` permit=${grant.slot}`}`;
  }

  // --- requests ---

  private request(session: Session, line: string): void {
    const fields: Fields = new Map();
    const words: string[] = [];
    for (const [token] of line.matchAll(WORD)) {
      const equals = token.startsWith('"') ? -1 : token.indexOf("=");
      if (equals > 0) fields.set(token.slice(0, equals), unquote(token.slice(equals + 1)));
      else words.push(unquote(token));
    }
    const tag = words[0]?.startsWith("@") ? `${words.shift()} ` : "";
    const verb = (words.shift() ?? "").toUpperCase();
    const said = this.answer(session, tag, verb, words, fields);
    if (said !== undefined) session.socket?.write(`${tag}${said}\n`, "latin1");
    if (verb === "QUIT") session.socket?.end();
  }

  /** The answer; undefined: it comes later. */
  private answer(session: Session, tag: string, verb: string, words: string[], fields: Fields): string | undefined {
    const name = words[0] ?? "";
    switch (verb) {
      case "HELLO":
        return `OK proto=1 server=fake session=1 secret=none store=memory nodes=1 quorum=1 lease_ms=${this.lease}`;
      case "RESUME":
        return "ERR NOTFOUND a session of the fake ends with its connection";
      case "AUTH":
      case "PING":
      case "QUIT":
      case "SUBSCRIBE":
        return "OK";
      case "LOCK":
      case "LOCKALL":
      case "LOCKANY":
      case "ACQUIRE":
      case "TAKE":
        return this.wish(session, tag, verb, words, fields);
      case "CANCEL":
        return this.cancel(session, name);
      case "CHECK":
      case "EXTEND":
      case "UNLOCK":
      case "RELEASE":
        return this.held(session, verb, name, fields);
      case "RATE":
        return this.rate(name, fields);
      case "DEFER":
        return this.defer(name, words[1] ?? "", fields);
      case "DONE":
      case "RETRY":
        return this.over(session, verb, name, fields);
      case "DROP":
        return this.drop(name, words[1] ?? "");
      case "LIST":
        return this.list(tag, name, fields);
      default:
        return `ERR UNKNOWN the fake has no request '${verb}'`;
    }
  }

  private wish(session: Session, tag: string, verb: string, names: string[], fields: Fields): string | undefined {
    if (!this.quorum) return "ERR QUORUM 0 of 1 stores can be used";
    const limit = fields.has("limit") ? Number(fields.get("limit")) : undefined;
    const owner = fields.get("owner") ?? "";
    const wish: Wish = { tag, verb, names, owner, session, shared: fields.get("mode") === "shared", limit, timer: undefined };
    if (!this.wishes.some((other) => other.names.some((name) => names.includes(name)))) {
      const said = this.grant(wish);
      if (said) return said;
    }
    const wait = milliseconds(fields.get("wait"));
    const about = verb === "TAKE" ? `queue=${quote(names[0] as string)}` : `name=${quote(this.taken(names))} holder=${quoted(this.holder(names, session))}`;
    if (wait === 0) return `BUSY ${about}`;
    this.wishes.push(wish);
    if (wait < Infinity) {
      wish.timer = setTimeout(() => {
        this.wishes = this.wishes.filter((other) => other !== wish);
        session.socket?.write(`${tag}TIMEOUT ${about} waited_ms=${Math.round(wait)}\n`, "latin1");
      }, wait);
    }
    return undefined;
  }

  private taken(names: readonly string[]): string {
    return names.find((name) => this.grants.some((grant) => grant.name === name)) ?? (names[0] as string);
  }

  private holder(names: readonly string[], session: Session): string {
    const grant = this.grants.find((one) => names.includes(one.name));
    return !grant?.session.socket ? "elsewhere" : grant.session === session ? "this session" : "another session";
  }

  /** What the owner of a wish is answered, if it can be granted now. */
  private grant(wish: Wish): string | undefined {
    if (wish.verb === "TAKE") return this.takeJob(wish);
    const free = wish.names.filter((name) => this.slot(wish, name) !== undefined);
    const names = wish.verb === "LOCKANY" ? free.slice(0, 1) : wish.names;
    if (!names.length || (wish.verb !== "LOCKANY" && free.length < names.length)) return undefined;
    const rows = names.map((name) => {
      const grant: Grant = { name, owner: wish.owner, fence: ++this.fences, session: wish.session, shared: wish.shared,
        slot: wish.limit === undefined ? undefined : this.slot(wish, name) };
      this.grants.push(grant);
      wish.session.lost.delete(`${wish.owner} ${name}`);
      const permit = grant.slot === undefined ? "" : ` permit=${grant.slot}`;
      return `name=${quote(name)}${permit} fence=${grant.fence} valid_ms=${this.valid()} ttl_ms=${this.lease} count=1`;
    });
    return wish.verb === "LOCKALL" ? [...rows.map((row) => `* ${row}`), `OK n=${rows.length}`].join(`\n${wish.tag}`) : `OK ${rows[0]}`;
  }

  /** The slot of a name that is free for this wish; 0 of a lock. */
  private slot(wish: Wish, name: string): number | undefined {
    const there = this.grants.filter((grant) => grant.name === name);
    if (wish.limit === undefined) return there.every((grant) => wish.shared && grant.shared) ? 0 : undefined;
    for (let slot = 0; slot < wish.limit; slot++) if (!there.some((grant) => grant.slot === slot)) return slot;
    return undefined;
  }

  private valid(): number {
    return Math.max(1, Math.floor(this.lease * 0.99) - 2);
  }

  /** Grants what has become free, first come first served. */
  private serve(): void {
    const passed = new Set<string>();
    for (const wish of [...this.wishes]) {
      const said = this.quorum && !wish.names.some((name) => passed.has(name)) ? this.grant(wish) : undefined;
      if (said) {
        clearTimeout(wish.timer);
        this.wishes = this.wishes.filter((other) => other !== wish);
        wish.session.socket?.write(`${wish.tag}${said}\n`, "latin1");
      } else for (const name of wish.names) passed.add(name);
    }
  }

  private cancel(session: Session, tag: string): string {
    const wish = this.wishes.find((one) => one.session === session && one.tag === `${tag} `);
    if (!wish) return "ERR NOTFOUND no request waits with this tag";
    clearTimeout(wish.timer);
    this.wishes = this.wishes.filter((other) => other !== wish);
    session.socket?.write(`${wish.tag}ERR CANCELLED the waiting request was withdrawn\n`, "latin1");
    this.serve();
    return "OK";
  }

  private held(session: Session, verb: string, name: string, fields: Fields): string {
    const job = fields.get("job");
    if (job !== undefined) return this.jobs.some((one) => one.id === job && one.taken === session) ? `OK valid_ms=${this.valid()}` : "ERR NOTHELD the job";
    const owner = fields.get("owner") ?? "";
    const grant = this.grants.find((one) => one.session === session && one.name === name && one.owner === owner);
    const releases = verb === "UNLOCK" || verb === "RELEASE";
    if (!grant) {
      if (releases ? session.lost.delete(`${owner} ${name}`) : session.lost.has(`${owner} ${name}`)) return `ERR LOST ${decode(name)} was lost`;
      return releases ? `OK name=${quote(name)} count=0` : `ERR NOTHELD ${decode(name)}`;
    }
    if (verb === "EXTEND" && !this.quorum) return "ERR QUORUM 0 of 1 stores can be used";
    if (!releases) return `OK ${this.about(grant)} valid_ms=${this.valid()} count=1`;
    this.grants = this.grants.filter((other) => other !== grant);
    this.serve();
    return `OK name=${quote(name)} count=0`;
  }

  private rate(name: string, fields: Fields): string {
    const per = milliseconds(fields.get("per"));
    const limit = Number(fields.get("limit"));
    const uses = (this.rates.get(name) ?? []).filter((at) => at > Date.now() - per);
    const cost = Number(fields.get("cost") ?? 1);
    if (uses.length + cost > limit) return `BUSY retry_ms=${Math.max(1, (uses[0] ?? Date.now()) + per - Date.now())} left=${limit - uses.length}`;
    for (let n = 0; n < cost; n++) uses.push(Date.now());
    this.rates.set(name, uses);
    return `OK left=${limit - uses.length} reset_ms=${per}`;
  }

  // --- jobs ---

  private defer(queue: string, payload: string, fields: Fields): string {
    const id = fields.get("id") ?? String(++this.fences);
    const delay = milliseconds(fields.get("delay"));
    if (!this.jobs.some((job) => job.queue === queue && job.id === id)) {
      this.jobs.push({ id, queue, payload, due: Date.now() + delay, attempt: 1, taken: undefined });
      setTimeout(() => this.serve(), delay).unref();
    }
    return `OK queue=${quote(queue)} job=${quote(id)} due_ms=${delay}`;
  }

  private takeJob(wish: Wish): string | undefined {
    const job = this.jobs.find((one) => one.queue === wish.names[0] && !one.taken && one.due <= Date.now());
    if (!job) return undefined;
    job.taken = wish.session;
    const lease = `valid_ms=${this.valid()} ttl_ms=${this.lease}`;
    return `OK queue=${quote(job.queue)} job=${quote(job.id)} attempt=${job.attempt} ${lease} payload=${quoted(job.payload)}`;
  }

  /** The jobs of a queue that are due, now or later. */
  private list(tag: string, what: string, fields: Fields): string {
    if (what !== "jobs") return "ERR UNKNOWN the fake lists jobs alone";
    const jobs = this.jobs.filter((job) => job.queue === fields.get("prefix") && !job.taken);
    const rows = jobs.map((job) => `* queue=${quote(job.queue)} job=${quote(job.id)} state=due due_ms=${Math.max(0, job.due - Date.now())} failed=0`
      + ` payload=${quoted(job.payload)}`);
    return [...rows, `OK n=${rows.length} more=0`].join(`\n${tag}`);
  }

  private drop(queue: string, id: string): string {
    const before = this.jobs.length;
    this.jobs = this.jobs.filter((job) => job.queue !== queue || job.id !== id || job.taken);
    return this.jobs.length < before ? `OK queue=${quote(queue)}` : "ERR NOTFOUND there is no such job that nobody has";
  }

  private over(session: Session, verb: string, id: string, fields: Fields): string {
    const job = this.jobs.find((one) => one.id === id && one.queue === fields.get("queue") && one.taken === session);
    if (!job) return "ERR NOTHELD the job";
    job.taken = undefined;
    if (verb === "DONE") this.jobs = this.jobs.filter((other) => other !== job);
    else {
      job.attempt += fields.get("failed") === "no" ? 0 : 1;
      job.due = Date.now() + milliseconds(fields.get("delay"));
      setTimeout(() => this.serve(), milliseconds(fields.get("delay"))).unref();
    }
    return `OK queue=${quote(job.queue)} job=${quote(id)}`;
  }
}
