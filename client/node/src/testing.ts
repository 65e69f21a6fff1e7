// SPDX-License-Identifier: BSD-2-Clause
// For tests of what a program does when its lock is lost: a fake daemon that can do all that, or a real one in a private folder.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, connect } from "./client.js";
import { RedlockError } from "./errors.js";
import { Fake } from "./fake.js";
import type { Lock } from "./lock.js";
import { quote } from "./wire.js";

/** A daemon of a test. Connect to its address; close() ends it, as the end of an `await using` block does. */
export interface TestDaemon extends AsyncDisposable {
  readonly address: string;
  /** Takes a lock away from its holder, who is told so. */
  lose(name: string): Promise<void>;
  /** Somebody else has the lock until the function that is returned is called. */
  heldElsewhere(name: string): Promise<() => Promise<void>>;
  /** The daemon answers nothing for so many seconds; returns when it goes on. */
  freeze(seconds: number): Promise<void>;
  close(): Promise<void>;
}

/** What only a fake can do. */
export interface FakeDaemon extends TestDaemon {
  /** Warns the holder of a lock that its renewal is late. */
  risk(name: string): Promise<void>;
  /** From now on nothing is granted: NoQuorum. false ends that. */
  noQuorum(on?: boolean): Promise<void>;
}

/** Starts a fake inside this process. lease is in seconds: how long a lock is held while the daemon is frozen. */
export async function startFake(options: { lease?: number } = {}): Promise<FakeDaemon> {
  const fake = new Fake((options.lease ?? 10) * 1000);
  const address = await fake.start();
  const must = (had: boolean, name: string): void => {
    if (!had) throw new RedlockError(`nobody holds "${name}"`, "NOTFOUND");
  };
  return {
    address,
    lose: async (name) => must(fake.lose(name, "quorum"), name),
    risk: async (name) => must(fake.risk(name), name),
    heldElsewhere: async (name) => {
      const release = fake.elsewhere(name);
      if (!release) throw new RedlockError(`"${name}" is held`, "BUSY");
      return async () => release();
    },
    freeze: (seconds) => fake.freeze(seconds * 1000),
    noQuorum: async (on = true) => {
      fake.quorum = !on;
    },
    close: () => fake.stop(),
    [Symbol.asyncDispose]: () => fake.stop(),
  };
}

/**
 * Starts a redlockd that keeps locks in its memory, in a private folder. program is its path; without it $REDLOCKD, else redlockd in the PATH. lease is in
 * seconds.
 */
export async function startDaemon(options: { program?: string; lease?: number } = {}): Promise<TestDaemon> {
  const folder = mkdtempSync(join(tmpdir(), "redlockd-"));
  const address = join(folder, "sock");
  mkdirSync(join(folder, "run"), { mode: 0o700 });
  const lease = options.lease === undefined ? "" : `lease: ${Math.round(options.lease * 1000)}ms\n`;
  const listen = `listen:\n  unix: ${JSON.stringify(address)}\n  tcp: no\n`;
  const store = `store: memory\nruntime_dir: ${JSON.stringify(join(folder, "run"))}\nguard: trust-first-start\n`;
  writeFileSync(join(folder, "redlockd.yaml"), listen + store + lease);
  const child = spawn(options.program ?? (process.env["REDLOCKD"] || "redlockd"), ["--config", join(folder, "redlockd.yaml")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const stop = async (): Promise<void> => {
    process.removeListener("exit", kill);
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.ref();
      kill();
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await ready(child, address);
    const admin = await connect({ address, label: "test" });
    return daemonOf(child, address, admin, async () => {
      await admin.close();
      await stop();
    });
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits until the daemon listens, and lets go of its log. */
async function ready(child: ChildProcess, address: string): Promise<void> {
  let log = "";
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new RedlockError(`${address}: the daemon does not begin to listen: ${log}`)), 20000);
    const done = (act: () => void): void => {
      clearTimeout(timer);
      act();
    };
    child.once("error", (error) => done(() => reject(new RedlockError(`the daemon cannot be started: ${error.message}`))));
    child.once("exit", () => done(() => reject(new RedlockError(`${address}: the daemon has ended: ${log}`))));
    child.stderr?.on("data", (data: Buffer) => {
      log = (log + data.toString()).slice(-4000);
      if (/\bready\b/.test(log)) done(resolve);
    });
  });
  child.unref();
  (child.stderr as unknown as { unref(): void }).unref();
}

function daemonOf(child: ChildProcess, address: string, admin: Client, close: () => Promise<void>): TestDaemon {
  return {
    address,
    lose: async (name) => void (await admin.ask(`BREAK ${quote(name)}`)),
    heldElsewhere: async (name) => {
      const lock: Lock = await admin.lock(name, { wait: 0 });
      return () => lock.unlock();
    },
    freeze: async (seconds) => {
      child.kill("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      child.kill("SIGCONT");
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
