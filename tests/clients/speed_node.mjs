// SPDX-License-Identifier: BSD-2-Clause
// One cell of speed.py: node speed_node.mjs SIDE CALLERS SECONDS PACKAGE PATH … prints how many locks a second are taken and released. Without callers it takes
// and releases one as it is told, and prints when.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [side, callers, seconds, where, ...paths] = process.argv.slice(2);

async function redlockd() {
  const { connect } = createRequire(import.meta.url)(where);
  const client = await connect(paths[0]);
  return { take: (name) => client.lock(name), give: (lock) => lock.unlock(), end: () => client.close() };
}

async function nodeRedlock() {
  const require = createRequire(where + "/");
  const Redis = require("ioredis");
  const { default: Redlock } = require("redlock");
  const servers = paths.map((path) => new Redis({ path }));
  const redlock = new Redlock(servers);
  const end = () => servers.forEach((server) => server.disconnect());
  return { take: (name) => redlock.acquire([name], 10000), give: (lock) => lock.release(), end };
}

const { take, give, end } = await (side === "redlockd" ? redlockd() : nodeRedlock());
const clock = () => Number(process.hrtime.bigint()) / 1e9;

async function handOver() {
  let lock;
  for await (const word of createInterface({ input: process.stdin })) {
    const at = clock();
    if (word === "lock") lock = await take("over");
    else await give(lock);
    console.log(word === "lock" ? clock() : at);
  }
}

async function pair(name) {
  await give(await take(name));
}

if (callers === "0") {
  await handOver();
  await end();
  process.exit();
}
await pair("warm");
let pairs = 0;
const begun = performance.now();
const until = begun + Number(seconds) * 1000;
async function work(number) {
  while (performance.now() < until) {
    await pair("bench/" + number);
    pairs++;
  }
}
await Promise.all(Array.from({ length: Number(callers) }, (_, number) => work(number)));
console.log(pairs / ((performance.now() - begun) / 1000));
await end();
