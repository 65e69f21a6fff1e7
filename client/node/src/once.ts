// SPDX-License-Identifier: BSD-2-Clause
// The records of once() and of `redlock once`: the result of the last run is a job of the queue once/NAME, which nobody takes. It is due when the next run may
// begin, by the clock of its home.
import { hostname } from "node:os";
import { now } from "./clock.js";
import type { Answer } from "./terms.js";
import { quote } from "./wire.js";

/** The result of a run of once(), or of `redlock once`. */
export interface Outcome {
  /** Where it ran. */
  readonly host: string;
  readonly began: Date;
  /** How many seconds it lasted. */
  readonly took: number;
  /** 0 if it went well, else 1, or the exit status of a command. */
  readonly status: number;
  /** In how many seconds it may begin again. */
  readonly next: number;
}

const MOST = 8; // one, and what runs left that broke off between two requests
const RECORD = /^host=(\S+) began=(\S+) took_ms=(-?\d+) status=(-?\d+)/;

/** The records of a name, and a run that begins when they are read. */
export class Runs {
  readonly queue: string;
  /** The result of the last run; undefined: none is known. */
  readonly last: Outcome | undefined;
  private readonly old: string[] = [];
  private readonly begun = now();
  private readonly began = new Date(Math.floor(Date.now() / 1000) * 1000);

  static question(name: string): string {
    return `LIST jobs prefix=${quote(`once/${name}`)} limit=${MOST}`;
  }

  constructor(name: string, answer: Answer) {
    this.queue = `once/${name}`;
    for (const { job, payload, due_ms: due } of answer.rows) {
      const found = RECORD.exec(payload ?? "");
      if (!found) continue;
      const [, host, began, took, status] = found as unknown as [string, string, string, string, string];
      const one = { host, began: new Date(began), took: Number(took) / 1000, status: Number(status), next: Number(due ?? 0) / 1000 };
      if (!this.last || one.next > this.last.next) this.last = one;
      this.old.push(job as string);
    }
  }

  /** The result of the run that ends now. */
  ends(status: number, every: number): Outcome {
    const took = now() - this.begun;
    return { host: hostname().slice(0, 64) || "?", began: this.began, took, status, next: Math.max(every - took, 0) };
  }

  /** What is kept of it. */
  static record({ host, began, took, status }: Outcome): string {
    return `host=${host} began=${began.toISOString().replace(".000Z", "Z")} took_ms=${Math.trunc(took * 1000)} status=${status}`;
  }

  /** The requests that drop the records before it. */
  drops(): string[] {
    return this.old.map((job) => `DROP ${quote(this.queue)} ${quote(job)}`);
  }
}
