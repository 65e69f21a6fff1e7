// SPDX-License-Identifier: BSD-2-Clause
// What the types must say; test_node.py compiles it with tsd's assertions.
import { expectAssignable, expectError, expectType } from "tsd";
import { Busy, Client, Job, Lock, LockLost, Outcome, Rate, RedlockError, connect } from "redlockd";
import { RunCoordinator, runCoordinator } from "redlockd/node-cron";
import { FakeDaemon, TestDaemon, startDaemon, startFake } from "redlockd/testing";

expectType<Promise<Client>>(connect());
expectType<Promise<Client>>(connect("/run/redlockd/redlockd.sock"));
expectError(connect({ adress: "x" }));

const client = await connect({ grace: 10, tls: { caFile: "ca.pem" } });
expectAssignable<AsyncDisposable>(client);
expectType<Promise<Lock>>(client.lock("x", { wait: 5, ttl: 10, shared: true, priority: 1, signal: AbortSignal.timeout(1) }));
expectType<Promise<Lock | null>>(client.tryLock("x"));
expectType<Promise<number>>(client.using("x", { wait: 5 }, async (signal, lock) => (signal.aborted ? 0 : lock.fence)));
expectType<Promise<string>>(client.using(["x", "y"], () => "z"));
expectType<Promise<Outcome | null>>(client.once("x", { every: 60 }, async (signal) => signal.aborted));
expectType<Promise<Outcome | null>>(client.onceStatus("x"));
expectError(client.lock("x", { wait: "5s" }));
expectError(client.semaphore("x"));
expectError(client.semaphore("x", 2, { shared: true }));
expectType<Promise<Rate>>(client.rate("x", { limit: 1, per: 60 }));
expectError(client.rate("x", { limit: 1 }));

const lock = await client.lock("x");
expectAssignable<AsyncDisposable>(lock);
expectType<number>(lock.fence);
expectType<AbortSignal>(lock.signal);
expectType<Promise<number>>(lock.ensure(0.2));
expectType<Promise<void>>(lock.unlock({ keep: 60 }));
expectType<number | undefined>(lock.permit);
expectType<Promise<Lock>>(client.lock("y", { holding: lock }));
expectError((lock.fence = 5));
for await (const job of client.jobs("q")) expectType<Job>(job);
for await (const term of client.lead("q")) expectType<Lock>(term);
client.on("drain", (seconds) => expectType<number>(seconds));
client.on("reconnect", () => undefined);
expectError(client.on("lost", (held: string) => held));

expectAssignable<RedlockError>(new LockLost("x", "quorum"));
expectType<string | undefined>(new Busy("x", "x").holder);
expectType<RunCoordinator>(runCoordinator(client, { keep: 60 }));
expectType<Promise<FakeDaemon>>(startFake({ lease: 1 }));
expectType<Promise<TestDaemon>>(startDaemon({ program: "redlockd" }));
