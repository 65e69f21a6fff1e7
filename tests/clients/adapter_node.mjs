// SPDX-License-Identifier: BSD-2-Clause
// The adapter of client/node: JSON lines in, JSON lines out (README.md). The last argument is the built package.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

const { connect } = createRequire(import.meta.url)(resolve(process.argv.at(-1)));

const clients = new Map();
const locks = new Map();
const calls = new Map(); // an AbortController for each call
const OPTIONS = ["wait", "ttl", "shared", "note", "trace", "priority"];

function say(row) {
  process.stdout.write(JSON.stringify(row) + "\n");
}

function event(kind, handle, held) {
  say({ event: kind, lock: handle, name: held.name, reason: held.reason });
}

/** Says when a lock is lost, by its signal. */
function watch(handle, held) {
  locks.set(handle, held);
  const weak = new WeakRef(held);
  const told = () => {
    const one = weak.deref();
    if (one && locks.get(handle) === one) event("lost", handle, one);
  };
  if (held.signal.aborted) told();
  else held.signal.addEventListener("abort", told, { once: true });
}

function state(held) {
  return { held: held.held, lost: held.lost, reason: held.reason, remaining: held.remaining, fence: held.fence };
}

function got(handle, held) {
  watch(handle, held);
  return { name: held.name, fence: held.fence, fences: held.fences, permit: held.permit ?? null, remaining: held.remaining };
}

function clientOf(a) {
  return clients.get(a.client ?? "c");
}

function chosen(a, keys) {
  return Object.fromEntries(keys.filter((key) => key in a).map((key) => [key, a[key]]));
}

function options(a, signal) {
  return { signal, ...chosen(a, OPTIONS) };
}

function popped(a) {
  const held = locks.get(a.lock);
  locks.delete(a.lock);
  return held;
}

/** What can be asked; a is the row. */
const DO = {
  async connect(a) {
    const client = await connect(chosen(a, ["address", "label", "grace", "heartbeat", "user", "secret", "timeout"]));
    client.on("risk", (held) => event("risk", [...locks].find(([, one]) => one === held)?.[0] ?? null, held));
    clients.set(a.client ?? "c", client);
  },
  lock: async (a, signal) => got(a.lock, await clientOf(a).lock(a.name, options(a, signal))),
  locks: async (a, signal) => got(a.lock, await clientOf(a).locks(a.names, options(a, signal))),
  any: async (a, signal) => got(a.lock, await clientOf(a).anyLock(a.names, options(a, signal))),
  semaphore: async (a, signal) => got(a.lock, await clientOf(a).semaphore(a.name, a.limit, options(a, signal))),
  unlock: (a) => popped(a).unlock({ keep: a.keep, sync: a.sync }),
  ensure: async (a) => ({ remaining: await locks.get(a.lock).ensure(a.seconds ?? 0) }),
  extend: async (a) => ({ remaining: await locks.get(a.lock).extend(a.ttl) }),
  state: async (a) => state(locks.get(a.lock)),
  async rate(a, signal) {
    const { left, reset } = await clientOf(a).rate(a.name, { limit: a.limit, per: a.per, cost: a.cost, wait: a.wait ?? 0, signal });
    return { left, reset };
  },
  defer: async (a) => ({ id: await clientOf(a).defer(a.queue, a.payload, { delay: a.delay, lock: a.with, id: a.job }) }),
  async take(a, signal) {
    const job = await clientOf(a).job(a.queue, options(a, signal));
    watch(a.lock, job);
    return { id: job.id, payload: job.payload.toString(), attempt: job.attempt, fence: job.fence };
  },
  async once(a) {
    const body = async (signal) => {
      await delay(1000 * (a.lasts ?? 0), undefined, { signal });
      if (a.fails) throw Object.assign(new Error("what a function of once throws"), { name: "Failed" });
    };
    return { ran: (await clientOf(a).once(a.name, { every: a.every }, body)) !== null };
  },
  async status(a) {
    const last = await clientOf(a).onceStatus(a.name);
    return last ? { ran: true, ...last, began: last.began.toISOString().replace(".000Z", "Z") } : { ran: false };
  },
  done: (a) => popped(a).done(),
  retry: (a) => popped(a).retry({ delay: a.delay, failed: a.failed }),
  /** Lets the last reference to a lock go. The keeper says so when it next asks about it. */
  async drop(a) {
    let warned = false;
    const hear = (warning) => (warned ||= warning.code === "REDLOCK_FORGOTTEN");
    process.on("warning", hear);
    locks.delete(a.lock);
    for (let i = 0; i < 90 && !warned; i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      globalThis.gc();
    }
    process.off("warning", hear);
    return { warned };
  },
  async abort(a) {
    calls.get(a.call)?.abort();
  },
  async close(a) {
    await clientOf(a).close();
    clients.delete(a.client ?? "c");
  },
  async reset() {
    locks.clear();
    await Promise.all([...clients.values()].map((client) => client.close()));
    clients.clear();
    calls.clear();
  },
};

/** A caller that leaves: what it called goes on or not, as the library has it. */
function leaves(signal) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => setTimeout(reject, 50, signal.reason), { once: true }));
}

async function run(a) {
  const controller = new AbortController();
  calls.set(a.id, controller);
  const row = { id: a.id };
  try {
    row.ok = (await Promise.race([DO[a.do](a, controller.signal), leaves(controller.signal)])) ?? null;
  } catch (error) {
    row.error = error === controller.signal.reason && controller.signal.aborted ? "Aborted" : error.name;
    row.text = error.message;
    if (error.code !== undefined) row.code = error.code;
    if (error.lockName !== undefined) row.name = error.lockName;
    if (error.reason !== undefined) row.reason = error.reason;
    if ("holder" in error) row.holder = error.holder ?? null;
    if ("trace" in error) row.trace = error.trace ?? null;
    if ("retryAfter" in error) row.retry_after = error.retryAfter ?? null;
  }
  calls.delete(a.id);
  say(row);
}

say({ id: "hello", can: ["preload", "doubt", "once-ends", ...(globalThis.gc ? ["finaliser"] : [])] });
for await (const line of createInterface({ input: process.stdin })) void run(JSON.parse(line));
