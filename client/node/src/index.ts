// SPDX-License-Identifier: BSD-2-Clause
// Locks of redlockd. The names that are exported are the interface; README.md explains them.
export { Client, ClientEvents, ConnectOptions, connect } from "./client.js";
export { Busy, Deadlock, Denied, Disconnected, Draining, LockLost, LockTimeout, NoQuorum, RedlockError } from "./errors.js";
export { Held, Job, Lock, UnlockOptions } from "./lock.js";
export { Outcome } from "./once.js";
export { TlsOptions } from "./place.js";
export { Answer, DeferOptions, JobOptions, LockOptions, PermitOptions, Rate, RateOptions, WaitOptions } from "./terms.js";
