// SPDX-License-Identifier: BSD-2-Clause
// One cell of speed.py: node speed_node.mjs SIDE CALLERS SECONDS PACKAGE PATH … prints how many locks a second are taken and released.
import { createRequire } from "node:module";

const [side, callers, seconds, where, ...paths] = process.argv.slice(2);

async function redlockd() {
  const { connect } = createRequire(import.meta.url)(where);
  const client = await connect(paths[0]);
  const pair = async (name) => {
    const lock = await client.lock(name);
    await lock.unlock();
  };
  return { pair, end: () => client.close() };
}

async function nodeRedlock() {
  const require = createRequire(where + "/");
  const Redis = require("ioredis");
  const { default: Redlock } = require("redlock");
  const servers = paths.map((path) => new Redis({ path }));
  const redlock = new Redlock(servers);
  const pair = async (name) => {
    const lock = await redlock.acquire([name], 10000);
    await lock.release();
  };
  return { pair, end: () => servers.forEach((server) => server.disconnect()) };
}

const { pair, end } = await (side === "redlockd" ? redlockd() : nodeRedlock());
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
