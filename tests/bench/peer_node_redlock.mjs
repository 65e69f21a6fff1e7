// SPDX-License-Identifier: BSD-2-Clause
// node-redlock with ioredis, driven as build/drive is: node peer_node_redlock.mjs PATH CLIENTS. Each client has a connection and a name of its own.
import Redis from 'ioredis';
import Redlock from 'redlock';
import readline from 'node:readline';

const [path, count] = [process.argv[2], Number(process.argv[3])];
const connections = Array.from({ length: count }, () => new Redis({ path }));
let going = false, n = 0, took = [], begun = 0, working = [];

async function work(number) {
  const redlock = new Redlock([connections[number]], { retryCount: -1 });
  while (going) {
    const asked = process.hrtime.bigint();
    const lock = await redlock.acquire([`bench/${number}`], 10000);
    took.push(Number(process.hrtime.bigint() - asked) / 1000);
    await lock.release();
    n++;
  }
}

function figures() {
  const sorted = took.sort((a, b) => a - b), at = (share) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  const us = Math.round(Number(process.hrtime.bigint() - begun) / 1000);
  return `figures n=${n} us=${us} p50_us=${at(0.5)} p99_us=${at(0.99)}`;
}

const commands = {
  connect: () => console.log(`connected n=${count}`),
  go: () => { going = true; working = connections.map((_, i) => work(i)); },
  begin: () => { n = 0; took = []; begun = process.hrtime.bigint(); },
  end: () => console.log(figures()),
  rest: async () => { going = false; await Promise.all(working); console.log('resting'); },
};

console.log('ready');
for await (const line of readline.createInterface({ input: process.stdin }))
  await commands[line.trim()]?.();
process.exit(0);
