// SPDX-License-Identifier: BSD-2-Clause
// Three instances of a program, each with a client of its own, and one schedule: each fire is run once. Prints how often each second's fire was run.
import cron from "node-cron";
import { connect } from "redlockd";
import { runCoordinator } from "redlockd/node-cron";
import { startFake } from "redlockd/testing";

const fake = await startFake();
const runs = new Map();
let skipped = 0;
const clients = await Promise.all([1, 2, 3].map(() => connect(fake.address)));
const tasks = clients.map((client) => {
  const task = cron.schedule(
    "* * * * * *",
    async ({ date }) => {
      const second = Math.round(date.getTime() / 1000);
      runs.set(second, (runs.get(second) ?? 0) + 1);
    },
    { name: "each-second", distributed: true, runCoordinator: runCoordinator(client) },
  );
  task.on("execution:skipped", () => skipped++);
  return task;
});
await new Promise((resolve) => setTimeout(resolve, 3500));
await Promise.all(tasks.map((task) => task.destroy()));
await Promise.all(clients.map((client) => client.close()));
await fake.close();
console.log(runs.size >= 2 && [...runs.values()].every((count) => count === 1), skipped >= 4);
process.exit(0);
