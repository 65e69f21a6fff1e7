// SPDX-License-Identifier: BSD-2-Clause
// The same for `import`. There is one copy of the code, so `instanceof LockLost` is true whichever way the package was loaded.
export type * from "./index.js";
export {
  Busy, Client, Deadlock, Denied, Disconnected, Draining, Held, Job, Lock, LockLost, LockTimeout, NoQuorum, RedlockError, connect,
} from "./index.js";
