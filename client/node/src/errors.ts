// SPDX-License-Identifier: BSD-2-Clause
// What can go wrong, as classes. Each text names the lock, or the address of the daemon, and no secret.

/** The daemon refused a request. code is the word of ERROR CODES in redlock-protocol(7), or "" if the daemon said nothing. */
export class RedlockError extends Error {
  readonly code: string;

  constructor(text: string, code = "", options?: ErrorOptions) {
    super(text, options);
    this.code = code;
  }
}

/** Somebody else has it, and the request did not wait. holder says who, if that is known, and trace its traceparent; retryAfter is in seconds. */
export class Busy extends RedlockError {
  readonly lockName: string;
  readonly holder: string | undefined;
  readonly retryAfter: number | undefined;
  readonly trace: string | undefined;

  constructor(text: string, lockName: string, holder?: string, retryAfter?: number, trace?: string) {
    super(text, "BUSY");
    this.lockName = lockName;
    this.holder = holder;
    this.retryAfter = retryAfter;
    this.trace = trace;
  }
}

/** The request waited, and its time ran out. */
export class LockTimeout extends RedlockError {
  readonly lockName: string;
  readonly holder: string | undefined;
  readonly trace: string | undefined;

  constructor(text: string, lockName: string, holder?: string, trace?: string) {
    super(text, "TIMEOUT");
    this.lockName = lockName;
    this.holder = holder;
    this.trace = trace;
  }
}

/**
 * The lock cannot be relied on any more. reason is that of the daemon (quorum, expired, evicted, broken, idle), or one of the client: "expired", no answer
 * came before the deadline; "disconnected", the connection broke without grace; "closed", the client was closed; "short", only from ensure(): it is held, but
 * not for so long.
 */
export class LockLost extends RedlockError {
  readonly lockName: string;
  readonly reason: string;
  readonly fence: number;

  constructor(lockName: string, reason: string, fence = 0) {
    super(reason === "short" ? `the lock "${lockName}" is not certain for so long` : `the lock "${lockName}" is lost: ${reason}`, "LOST");
    this.lockName = lockName;
    this.reason = reason;
    this.fence = fence;
  }
}

/** Too few stores can be used, or none. */
export class NoQuorum extends RedlockError {}

/** The request would wait for somebody who waits for its caller; see `holding`. What is held stays held. */
export class Deadlock extends RedlockError {}

/** The daemon does not let this peer, or this user, do that. */
export class Denied extends RedlockError {}

/** The daemon is stopping and grants nothing new. */
export class Draining extends RedlockError {}

/** There is no connection, it broke, or no answer came in time. The text names the address. */
export class Disconnected extends RedlockError {}

// The names stay what they are when a bundler shortens those of the classes.
const KINDS = { RedlockError, Busy, LockTimeout, LockLost, NoQuorum, Deadlock, Denied, Draining, Disconnected };
for (const [name, kind] of Object.entries(KINDS)) Object.defineProperty(kind.prototype, "name", { value: name, configurable: true, writable: true });

const BY_CODE = new Map<string, typeof RedlockError>([
  ["QUORUM", NoQuorum],
  ["UNAVAILABLE", NoQuorum],
  ["DEADLOCK", Deadlock],
  ["DENIED", Denied],
  ["AUTH", Denied],
  ["DRAINING", Draining],
]);

/** The error for an answer ERR. A code of a later version is a plain RedlockError. */
export function errorOf(code: string, text: string, about: string): RedlockError {
  return new (BY_CODE.get(code) ?? RedlockError)(`${about}: ${code} ${text}`, code);
}
