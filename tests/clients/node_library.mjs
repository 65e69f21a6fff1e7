// SPDX-License-Identifier: BSD-2-Clause
// What is particular to the client for Node.js; test_node.py runs it: node --test node_library.mjs, with the package in $CLIENT_NODE and the daemon in
// $REDLOCKD.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

const require = createRequire(import.meta.url);
const part = (name) => require(join(process.env.CLIENT_NODE, "dist", name));
const { connect, Busy, Deadlock, Disconnected, LockLost, LockTimeout, NoQuorum } = part("index.js");
const { startDaemon, startFake } = part("testing.js");

function heard(client, event) {
  return new Promise((resolve) => client.once(event, resolve));
}

async function roles(client, name) {
  return (await client.ask(`SHOW ${name}`)).rows.map((row) => row.role);
}

async function until(condition, what) {
  for (let i = 0; i < 500; i++) {
    if (await condition()) return;
    await sleep(20);
  }
  assert.fail(what);
}

/** Runs a program, and returns its exit code; null: it was still running after so many milliseconds. */
function runs(program, ms) {
  const env = { ...process.env, INDEX: join(process.env.CLIENT_NODE, "dist", "index.js") };
  const child = spawn(process.execPath, ["-e", program], { env, stdio: "inherit" });
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), ms);
    child.once("exit", (code) => {
      clearTimeout(timer);
      resolve(code);
    });
  });
}

describe("with a daemon", () => {
  let daemon;
  let client;
  before(async () => {
    daemon = await startDaemon({ lease: 3 });
    client = await connect(daemon.address);
  });
  after(async () => {
    await client.close();
    await daemon.close();
  });

  test("a loss aborts the signal, and unlock() says so", async () => {
    const lock = await client.lock("a");
    const lost = heard(client, "lost");
    await daemon.lose("a");
    assert.equal(await lost, lock);
    assert.ok(lock.signal.aborted);
    assert.ok(lock.signal.reason instanceof LockLost);
    assert.deepEqual([lock.remaining, lock.held, lock.lost, lock.reason], [0, false, true, "broken"]);
    await assert.rejects(lock.unlock(), { name: "LockLost", lockName: "a", reason: "broken", fence: lock.fence });
    await lock.unlock();
  });

  test("using() returns what the function returns, and unlocks", async () => {
    assert.equal(await client.using("b", { wait: 5 }, (signal, lock) => lock.held && !signal.aborted && "result"), "result");
    assert.deepEqual(await client.using(["b1", "b2"], async (_, lock) => Object.keys(lock.fences)), ["b1", "b2"]);
    assert.deepEqual(await roles(client, "b"), []);
  });

  test("using() rejects with LockLost when the function stops for the signal, or does not notice", async () => {
    const stops = (signal) => sleep(20000, undefined, { signal });
    for (const body of [stops, async (_, lock) => until(() => lock.lost, "it is lost")]) {
      await assert.rejects(
        client.using("c", async (signal, lock) => {
          await daemon.lose("c");
          await body(signal, lock);
        }),
        LockLost,
      );
      await until(async () => !(await roles(client, "c")).length, "it is free");
    }
  });

  test("an error of the function comes first", async () => {
    const own = new RangeError("own");
    const body = async (signal) => {
      await daemon.lose("d");
      await until(() => signal.aborted, "it is lost");
      throw own;
    };
    await assert.rejects(client.using("d", body), own);
  });

  test("the end of a block throws what the block has not been told", async () => {
    const lose = async (name, act = () => undefined) => {
      const lock = await client.lock(name);
      await act(lock);
      await daemon.lose(name);
      await until(() => lock.lost, "it is lost");
      return lock;
    };
    await assert.rejects(async () => (await lose("e"))[Symbol.asyncDispose](), LockLost);
    await (await lose("e1", (lock) => lock.signal))[Symbol.asyncDispose]();
    const asked = await lose("e2");
    await assert.rejects(asked.ensure(), LockLost);
    await asked[Symbol.asyncDispose]();
  });

  test("tryLock() is null when somebody else has it, and waits if it is told to", async () => {
    const lock = await client.lock("f");
    assert.equal(await client.tryLock("f"), null);
    const second = client.tryLock("f", { wait: 5 });
    await lock.unlock();
    await (await second).unlock();
    assert.equal(await client.tryLock("f").then((one) => one.unlock()), undefined);
  });

  test("Busy and LockTimeout say who has it", async () => {
    const lock = await client.lock("g");
    await assert.rejects(client.lock("g", { wait: 0 }), (error) => error instanceof Busy && error.code === "BUSY" && /pid=/.test(error.holder));
    await assert.rejects(client.lock("g", { wait: 0.05 }), (error) => error instanceof LockTimeout && /not granted within 0.05 s, held by/.test(error.message));
    await lock.unlock();
  });

  test("a wait that is aborted leaves no place", async () => {
    const lock = await client.lock("h");
    await assert.rejects(client.lock("h", { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    await until(async () => (await roles(client, "h")).join() === "holder", "nobody waits");
    await assert.rejects(client.lock("h", { signal: AbortSignal.abort() }), { name: "AbortError" });
    await lock.unlock();
  });

  test("a cycle of those who say what they hold is a Deadlock", async () => {
    const [one, other] = await Promise.all([client.lock("i1"), client.lock("i2")]);
    const outcomes = await Promise.allSettled([
      client.lock("i2", { wait: 15, holding: one }).finally(() => one.unlock()),
      client.lock("i1", { wait: 15, holding: other }).finally(() => other.unlock()),
    ]);
    const refused = outcomes.filter((outcome) => outcome.reason instanceof Deadlock);
    assert.equal(refused.length, 1);
    const granted = outcomes.find((outcome) => outcome.value);
    await granted.value.unlock();
  });

  test("who holds a name and asks for it again waits", async () => {
    const lock = await client.lock("j");
    await assert.rejects(client.lock("j", { wait: 0, holding: lock }), Busy);
    await lock.unlock();
  });

  test("jobs are done at the end of the body, and tried again after an error or when the loop is left", async () => {
    await client.defer("q", Buffer.from([0, 255]), { id: "one" });
    const seen = [];
    const take = async (body) => {
      for await (const job of client.jobs("q", { wait: 0 })) {
        seen.push([job.id, [...job.payload], job.attempt]);
        if (body() === "leave") break;
      }
    };
    await assert.rejects(
      take(() => {
        throw new RangeError();
      }),
      RangeError,
    );
    await take(() => "leave");
    await take(() => "end");
    await take(() => "never");
    assert.deepEqual(seen, [1, 2, 3].map((attempt) => ["one", [0, 255], attempt]));
  });

  test("a leader that is deposed campaigns again", async () => {
    const terms = [];
    for await (const term of client.lead("k")) {
      terms.push(term.fence);
      if (terms.length === 2) break;
      await daemon.lose("k");
      await until(() => term.signal.aborted, "the term is over");
    }
    assert.ok(terms[1] > terms[0]);
    await until(async () => !(await roles(client, "k")).length, "nobody leads");
  });

  test("freeze() makes a lock end at its deadline, and the client is of use afterwards", async () => {
    const lock = await client.lock("l", { ttl: 1 });
    const frozen = daemon.freeze(2);
    await until(() => lock.lost, "it is lost");
    assert.equal(lock.reason, "expired");
    await frozen;
    await assert.rejects(lock.unlock(), LockLost);
    await (await client.lock("l", { wait: 10 })).unlock();
  });

  test("somebody else has it until that is over", async () => {
    const release = await daemon.heldElsewhere("m");
    assert.equal(await client.tryLock("m"), null);
    const waits = client.lock("m", { wait: 5 });
    await release();
    await (await waits).unlock();
  });

  test("a process without lock and wait exits, one that holds or waits goes on", async () => {
    const program = (rest) => `require(process.env.INDEX).connect(${JSON.stringify(daemon.address)}).then(async (client) => { ${rest} });`;
    assert.equal(await runs(program(""), 10000), 0);
    assert.equal(await runs(program('await (await client.lock("n1")).unlock();'), 10000), 0);
    assert.equal(await runs(program('await client.lock("n2");'), 1500), null);
    const lock = await client.lock("n3");
    assert.equal(await runs(program('await client.lock("n3");'), 1500), null);
    await lock.unlock();
  });

  test("what is no name or no number is refused at once", async () => {
    await assert.rejects(client.lock(5), TypeError);
    await assert.rejects(client.lock("x", { wait: "5s" }), TypeError);
    await assert.rejects(client.lock("x", { ttl: -1 }), TypeError);
    await assert.rejects(connect("::1"), TypeError);
  });

  test("after close() all is lost, and requests are refused", async () => {
    const other = await connect({ address: daemon.address, user: undefined });
    const lock = await other.lock("o");
    await other.close();
    assert.deepEqual([lock.lost, lock.reason], [true, "closed"]);
    await assert.rejects(other.lock("o"), (error) => error instanceof Disconnected && error.message.includes(daemon.address));
    await (await client.lock("o", { wait: 5 })).unlock();
  });
});

describe("with a fake", () => {
  let fake;
  let client;
  before(async () => {
    fake = await startFake({ lease: 2 });
    client = await connect(fake.address);
  });
  after(async () => {
    await client.close();
    await fake.close();
  });

  test("lose() and risk()", async () => {
    const lock = await client.lock("a");
    const [risk, safe] = [heard(client, "risk"), heard(client, "safe")];
    await fake.risk("a");
    assert.equal(await risk, lock);
    assert.equal(await safe, lock);
    await fake.lose("a");
    await until(() => lock.signal.aborted, "it is lost");
    assert.equal(lock.reason, "quorum");
    await assert.rejects(lock.unlock(), LockLost);
    await assert.rejects(fake.lose("a"), { code: "NOTFOUND" });
  });

  test("once() of a name, and of an event", async () => {
    const runs = [];
    const body = (signal) => runs.push(signal.aborted);
    assert.equal(await client.onceStatus("of/once"), null);
    const { host, began, status, next } = await client.once("of/once", { every: 3600 }, body);
    assert.equal(await client.once("of/once", { every: 3600 }, body), null);
    assert.deepEqual(runs, [false]);
    const last = await client.onceStatus("of/once");
    assert.deepEqual([last.host, last.began, last.status], [host, began, status]);
    assert.ok(Math.abs(Date.now() - began) < 10000 && status === 0 && last.next > 3500 && next <= 3600);
    await assert.rejects(client.once("of/once", { every: "1h" }, body), TypeError);
    const lock = await client.lock("of/event");
    const lost = new Promise((resolve) => assert.equal(client.once("lost", resolve), client));
    await fake.lose("of/event");
    assert.equal(await lost, lock);
    await assert.rejects(lock.unlock(), LockLost);
  });

  test("noQuorum() and heldElsewhere()", async () => {
    await fake.noQuorum();
    await assert.rejects(client.lock("b"), NoQuorum);
    await fake.noQuorum(false);
    const release = await fake.heldElsewhere("b");
    await assert.rejects(client.lock("b", { wait: 0 }), { name: "Busy", holder: "elsewhere" });
    const waits = client.lock("b", { wait: 5 });
    await release();
    await (await waits).unlock();
  });

  test("freeze()", async () => {
    const lock = await client.lock("c");
    await fake.freeze(2.5);
    assert.equal(lock.reason, "expired");
    await assert.rejects(lock.unlock(), LockLost);
    await (await client.lock("c", { wait: 5 })).unlock();
  });

  test("locks, permits, readers, rates and jobs", async () => {
    const both = await client.locks(["d1", "d2"]);
    assert.equal(await client.tryLock("d2"), null);
    const one = await client.anyLock(["d1", "d3"]);
    assert.equal(one.name, "d3");
    const permits = [await client.semaphore("s", 2), await client.semaphore("s", 2)];
    assert.deepEqual(permits.map((permit) => permit.permit), [0, 1]);
    await assert.rejects(client.semaphore("s", 2, { wait: 0.05 }), LockTimeout);
    const readers = [await client.lock("r", { shared: true }), await client.lock("r", { shared: true })];
    await assert.rejects(client.lock("r", { wait: 0 }), Busy);
    await Promise.all([both, one, ...permits, ...readers].map((lock) => lock.unlock()));
    assert.equal((await client.rate("x", { limit: 1, per: 60 })).left, 0);
    await assert.rejects(client.rate("x", { limit: 1, per: 60 }), Busy);
    await client.defer("q", "it's", { id: "one" });
    const job = await client.job("q");
    await job.retry();
    for await (const again of client.jobs("q", { wait: 0 })) assert.deepEqual([String(again.payload), again.attempt], ["it's", 2]);
    await assert.rejects(client.lock("w", { signal: AbortSignal.timeout(20), holding: await client.lock("w") }), { name: "TimeoutError" });
  });
});

describe("without I/O", () => {
  const { Core } = part("core.js");
  const { termsOf } = part("terms.js");
  const settings = { address: "here", label: undefined, grace: 30, heartbeat: 0, user: undefined, secret: undefined };

  function sent(core) {
    return core.takeOutput().split("\n").filter(Boolean);
  }

  function answer(core, request, now, ...lines) {
    core.receive(lines.map((line) => `${request.split(" ")[0]} ${line}\n`).join(""), now);
  }

  function begun(chance) {
    const core = new Core(settings, chance);
    core.submit(new (part("requests.js").Ready)(10), 0);
    core.dial();
    core.connected(0);
    answer(core, sent(core).at(-1), 0, "OK session=17 secret=s lease_ms=10000");
    core.takeEvents();
    return core;
  }

  function hold(core, now, name = "x", owner = "t1") {
    const request = core.take(termsOf("LOCK", [name], { wait: 5 }), owner, now);
    answer(core, sent(core).at(-1), now, `OK name=${name} fence=7 valid_ms=9900 ttl_ms=10000 count=1`);
    return request.result[0];
  }

  test("nothing is left behind by locks and their release", () => {
    const core = begun();
    for (let at = 0; at < 5; at++) {
      const request = core.free(hold(core, at), at + 0.5);
      answer(core, sent(core).at(-1), at + 0.6, "OK name=x count=0");
      assert.ok(request.finished);
    }
    assert.deepEqual([core.holds.size, core.used.size, core.sent.size, core.later.length, core.alive, core.busy], [0, 0, 0, 0, 0, false]);
  });

  test("a connection that ends after QUIT is no loss of it", () => {
    const core = begun();
    const held = hold(core, 1);
    const quit = core.quit(2);
    answer(core, sent(core).at(-1), 2, "OK");
    core.disconnected("the daemon closed the connection", 2);
    assert.deepEqual([quit.error, held.reason, core.state], [undefined, "closed", "closed"]);
  });

  test("what is alive is counted, whatever becomes of it", () => {
    const core = begun();
    const [one, two, three] = ["x", "y", "z"].map((name) => hold(core, 1, name));
    assert.equal(core.alive, 3);
    core.lose(one, "quorum");
    core.free(two, 2);
    assert.equal(core.alive, 1);
    core.free(one, 2);
    core.returnQuietly(three, 2);
    core.returnQuietly(three, 2);
    assert.equal(core.alive, 0);
    hold(core, 3, "w");
    core.close();
    assert.deepEqual([core.alive, core.busy], [0, false]);
  });

  test("fifty locks are checked at one moment", () => {
    const core = begun();
    for (let n = 0; n < 50; n++) hold(core, n * 0.001, `n${n}`);
    core.tick(3.4);
    assert.equal(sent(core).filter((line) => line.includes(" CHECK ")).length, 50);
    assert.ok(core.wake > 3.5);
  });

  test("after a suspend nothing is relied on until a later CHECK is answered", () => {
    const core = begun();
    const one = hold(core, 1);
    assert.equal(one.left(2), 8.9);
    const early = core.check(one, 2);
    const [asked] = sent(core);
    core.suspended(2.5);
    assert.equal(one.left(2.5), 0);
    answer(core, asked, 2.6, "OK name=x fence=7 valid_ms=9000 count=1");
    assert.deepEqual([early.finished, one.left(2.6)], [true, 0]);
    core.tick(2.6);
    const [again] = sent(core);
    assert.match(again, /CHECK x owner=t1$/);
    answer(core, again, 2.7, "OK name=x fence=7 valid_ms=9000 count=1");
    assert.ok(Math.abs(one.left(2.7) - 8.9) < 1e-9);
  });

  test("pauses double up to half a second and end with the grace", () => {
    const core = begun();
    core.disconnected("cut", 10);
    const pauses = [];
    let now = 10;
    assert.equal(core.dialAt, 10);
    while (core.dialAt < Infinity) {
      pauses.push(core.dialAt - now);
      now = core.dialAt;
      core.dial();
      core.notConnected("refused", now);
    }
    assert.ok(Math.max(...pauses) <= 0.5 && pauses[1] < 0.011);
    assert.ok(Math.abs(now - 40) < 0.6);
    assert.equal(core.state, "off");
  });

  test("while an attempt to connect is under way nothing else is due", () => {
    const core = begun();
    core.disconnected("cut", 10);
    core.dial();
    core.tick(10);
    assert.ok(core.wake > 10);
  });

  test("addresses", () => {
    const { placeOf } = part("place.js");
    assert.deepEqual(placeOf("host"), { path: "", host: "host", port: 7420, tls: false });
    assert.deepEqual(placeOf(":99"), { path: "", host: "127.0.0.1", port: 99, tls: false });
    assert.deepEqual(placeOf("[::1]:8"), { path: "", host: "::1", port: 8, tls: false });
    assert.deepEqual(placeOf("tls://h"), { path: "", host: "h", port: 7422, tls: true });
    assert.deepEqual(["unix:/a/b", "unix:b", "./b"].map((address) => placeOf(address).path), ["/a/b", "b", "./b"]);
    for (const wrong of ["", "unix:", "::1", "a:b", "a:0", "a:70000", "tls://", "tls:///x", "[::1"]) assert.throws(() => placeOf(wrong), TypeError, wrong);
  });

  test("durations", () => {
    const { duration } = part("wire.js");
    assert.deepEqual([0, 5, 0.1, 0.0001, 1e-9, 1.0005].map(duration), ["0", "5000ms", "100ms", "100us", "1us", "1000500us"]);
  });
});

test("a connection waits while the daemon accepts others", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "redlock-clients-")), "sock");
  const program = `require("node:net").createServer((s) => s.on("data", (d) => s.write(String(d).split(" ")[0] + " OK session=1 secret=s\\n")))
    .listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log("ready"))`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  child.kill("SIGSTOP");
  const clients = Array.from({ length: 6 }, () => connect(path));
  await sleep(200);
  child.kill("SIGCONT");
  for (const client of await Promise.all(clients)) await client.close();
  child.kill("SIGKILL");
  rmSync(dirname(path), { recursive: true });
});

test("nothing that prints a client prints a secret", async () => {
  const fake = await startFake();
  const client = await connect({ address: fake.address, user: "ann", secret: "tr0ub4dor" });
  const lock = await client.lock("x");
  const { engine } = client;
  for (const printed of [inspect(client, { depth: 9 }), inspect(lock), inspect(engine, { depth: 9, showHidden: true }), JSON.stringify(engine.core.settings)]) {
    assert.ok(!printed.includes("tr0ub4dor"), printed);
  }
  assert.match(inspect(lock), /^Lock \{ "x", held, fence \d+ \}$/);
  await client.close();
  await fake.close();
});
