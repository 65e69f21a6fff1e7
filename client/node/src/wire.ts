// SPDX-License-Identifier: BSD-2-Clause
// Lines of the protocol: text to bytes, and bytes to lines. See redlock-protocol(7), THE LINE. Nothing here knows what a line means.
//
// Inside the client a text is a string with one character for each byte, so names of any bytes compare as they are. encode() and decode() turn texts of users
// into that and back.

/** The longest line that the daemon sends, LF included: a reply with the payload of a job. */
const LINE_MOST = 139264;

// Printable ASCII without blank, quotes, '=' and backslash.
const PLAIN = /^[!#-&(-<>-[\]-~]+$/;
const SPECIAL = /[\x00-\x1f"\\\x7f]/g;
const ASCII = /^[\x00-\x7f]*$/;
const FIELD = /([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)/g;
const ESCAPE = /\\(x[0-9a-fA-F]{2}|[\s\S])/g;
const LETTERS: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\x07" };
const KEYS = new Map<string, string>();

/** The peer sent what no redlockd sends. */
export class ProtocolError extends Error {}

/** A text of a user, a character for each byte. */
export function encode(text: string | Uint8Array): string {
  if (typeof text !== "string") return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString("latin1");
  return ASCII.test(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** The text for users. */
export function decode(raw: string): string {
  return ASCII.test(raw) ? raw : Buffer.from(raw, "latin1").toString("utf8");
}

/** A word or a value as it stands in a request: as it is if it is plain, else in double quotes. */
export function quote(raw: string): string {
  return PLAIN.test(raw) ? raw : quoted(raw);
}

/** The same, in quotes in any case: such a word is never taken for a field. */
export function quoted(raw: string): string {
  return `"${raw.replace(SPECIAL, (found) => `\\x${found.charCodeAt(0).toString(16).padStart(2, "0")}`)}"`;
}

/** A value of a line without its quotes. */
export function unquote(value: string): string {
  if (value[0] !== '"') return value;
  return value.slice(1, -1).replace(ESCAPE, (_, letter: string) =>
    letter.length === 3 ? String.fromCharCode(parseInt(letter.slice(1), 16)) : (LETTERS[letter] ?? letter));
}

/** A duration of a request, in seconds. Rounded up to a microsecond, so that a short one does not become 0. */
export function duration(seconds: number): string {
  const us = Math.ceil(Number((seconds * 1e6).toFixed(3)));
  if (!(us > 0)) return "0";
  return us % 1000 ? `${us}us` : `${us / 1000}ms`;
}

/** One line of the daemon. kind is its first word; code that of an error or a push; text what follows. */
export class Line {
  readonly kind: string;
  readonly code: string = "";
  private readonly rest: string; // from the blank before the first field on
  private map: Map<string, string> | undefined;

  constructor(line: string) {
    let end = line.indexOf(" ");
    if (end < 0) end = line.length;
    this.kind = line.slice(0, end);
    if (this.kind === "ERR" || this.kind === "!") {
      let next = line.indexOf(" ", end + 1);
      if (next < 0) next = line.length;
      this.code = line.slice(end + 1, next);
      end = next;
    }
    this.rest = line.slice(end);
  }

  /** What follows, for people. */
  get text(): string {
    return decode(this.rest.slice(1));
  }

  /** A field by its name, without its quotes; undefined if there is none. */
  get(name: string): string | undefined {
    if (this.map) return this.map.get(name);
    if (this.rest.includes('"')) return this.fields().get(name);
    let key = KEYS.get(name);
    if (!key) {
      key = ` ${name}=`;
      KEYS.set(name, key);
    }
    const found = this.rest.indexOf(key);
    if (found < 0) return undefined;
    const begin = found + key.length;
    const end = this.rest.indexOf(" ", begin);
    return end < 0 ? this.rest.slice(begin) : this.rest.slice(begin, end);
  }

  /** The fields by name. What is no field is skipped. */
  fields(): Map<string, string> {
    if (!this.map) {
      this.map = new Map();
      for (const [, name, value] of this.rest.matchAll(FIELD)) this.map.set(name as string, unquote(value as string));
    }
    return this.map;
  }

  /** A field that must be there. */
  need(name: string): string {
    const value = this.get(name);
    if (value === undefined) throw new ProtocolError(`${this.kind} without ${name}`);
    return value;
  }

  /** A whole number that must be there. */
  integer(name: string): number {
    const value = Number(this.need(name));
    if (!Number.isSafeInteger(value)) throw new ProtocolError(`${name} is no number`);
    return value;
  }

  /** A whole number; otherwise, if there is none. */
  number(name: string, otherwise = 0): number {
    const value = this.get(name);
    const found = value === undefined ? otherwise : Number(value);
    return Number.isSafeInteger(found) ? found : otherwise;
  }

  /** A duration in seconds, which the daemon tells in milliseconds. */
  seconds(name: string): number {
    return this.number(name) / 1000;
  }
}

/** Puts lines together from the pieces in which they arrive. */
export class Reader {
  private rest = "";

  /** The lines that are complete now, without their ends. */
  feed(data: string): string[] {
    const text = this.rest ? this.rest + data : data;
    const lines: string[] = [];
    let begin = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", begin)) {
      lines.push(text.slice(begin, end > begin && text.charCodeAt(end - 1) === 13 ? end - 1 : end));
      begin = end + 1;
    }
    this.rest = begin ? text.slice(begin) : text;
    if (this.rest.length > LINE_MOST) throw new ProtocolError("a line without an end");
    return lines;
  }
}
