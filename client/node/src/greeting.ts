// SPDX-License-Identifier: BSD-2-Clause
// The requests that come before all others of a connection: AUTH, then RESUME or HELLO.
import type { Core } from "./core.js";
import { Denied, type RedlockError, errorOf } from "./errors.js";
import { Ask } from "./requests.js";
import type { Line } from "./wire.js";

/** One of them. */
export abstract class Greeting extends Ask {
  override answer(core: Core, line: Line, now: number): void {
    this.finished = true;
    if (line.kind === "OK") this.accepted(core, line, now);
    else this.declined(core, line, now);
  }

  override overdue(): void {
    this.finished = true;
  }

  /** It was answered OK. */
  protected abstract accepted(core: Core, line: Line, now: number): void;

  /** It was answered ERR. */
  protected declined(core: Core, line: Line, _now: number): void {
    core.refused(this.errorOf(core, line));
  }

  private errorOf(core: Core, line: Line): RedlockError {
    return errorOf(line.code, line.text, core.settings.address);
  }
}

/** Says who we are, where the daemon has users. */
export class Auth extends Greeting {
  protected override accepted(core: Core, _line: Line, now: number): void {
    core.greet(now);
  }

  protected override declined(core: Core, line: Line, now: number): void {
    const { address, user } = core.settings;
    // LIMIT: many sessions of this user come at once. A later attempt is verified.
    if (line.code === "LIMIT") core.disconnected(`AUTH: ${line.code} ${line.text}`, now);
    else core.refused(new Denied(`${address}: the daemon does not accept the user "${user}": ${line.text}`, line.code));
  }
}

/** Begins a session. */
export class Hello extends Greeting {
  protected override accepted(core: Core, line: Line, now: number): void {
    core.begun(line, now);
  }

  protected override declined(core: Core, line: Line, now: number): void {
    if ((line.code === "LIMIT" || line.code === "ARG") && core.session > 1 && core.grace) {
      core.grace = 0; // max_grace of the daemon has become smaller since the session before
      core.greet(now);
    } else super.declined(core, line, now);
  }
}

/** Takes the session over from the connection that broke. */
export class Resume extends Greeting {
  protected override accepted(core: Core, line: Line, now: number): void {
    core.resumed(this.rows ?? [], line, this.asked, now);
  }

  protected override declined(core: Core, line: Line, now: number): void {
    if (["NOTFOUND", "UNKNOWN", "ARG"].includes(line.code)) core.gone(now);
    else core.disconnected(`RESUME: ${line.code} ${line.text}`, now);
  }
}
