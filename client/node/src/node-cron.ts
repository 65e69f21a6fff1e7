// SPDX-License-Identifier: BSD-2-Clause
// For node-cron: of several instances of a program, one runs each scheduled fire.
//
//     cron.schedule("0 * * * *", work, { name: "hourly", distributed: true, runCoordinator: runCoordinator(client) });
//
// It needs node-cron 4.6 or later. Nothing of it is imported here: the interface is the whole contract.
import type { Client } from "./client.js";
import { type Lock, unlessLost } from "./lock.js";

/** The interface of node-cron. */
export interface RunCoordinator {
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  onComplete(key: string): Promise<void>;
}

/** Of runCoordinator(). */
export interface CoordinatorOptions {
  /** Stands before the names of the locks; "cron/" by default. */
  prefix?: string;
  /**
   * For how many seconds after the end of a run no other instance begins the same fire; 60 by default. It must be longer than the clocks of hosts are apart,
   * and at most max_keep of the daemon.
   */
  keep?: number;
}

/**
 * Who gets the lock of a fire runs it. The lock is held during the run, and renewed, so the run may take longer than the lease of node-cron. When the program
 * dies meanwhile, the lock is free. When the lock is lost meanwhile, the client emits "lost".
 */
export function runCoordinator(client: Client, options: CoordinatorOptions = {}): RunCoordinator {
  const { prefix = "cron/", keep = 60 } = options;
  const running = new Map<string, Lock>();
  return {
    async shouldRun(key) {
      const lock = await client.tryLock(prefix + key);
      if (lock) running.set(key, lock);
      return lock !== null;
    },
    async onComplete(key) {
      const lock = running.get(key);
      running.delete(key);
      await lock?.unlock({ keep }).catch(unlessLost);
    },
  };
}
