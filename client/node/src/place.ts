// SPDX-License-Identifier: BSD-2-Clause
// Where the daemon is and who we are: what the environment says, by the same variables as libredlock(3).
import { existsSync, readFileSync } from "node:fs";
import * as net from "node:net";
import * as tls from "node:tls";

const SYSTEM_SOCKET = "/run/redlockd/redlockd.sock";
const PORT = 7420;
const TLS_PORT = 7422;
/** Bytes that are read at once, at most. */
const PIECE = 65536;

/** Files in PEM. What is missing comes from REDLOCK_TLS_CA, REDLOCK_TLS_CERT, REDLOCK_TLS_KEY and REDLOCK_TLS_NAME. */
export interface TlsOptions {
  /** The authorities of the daemon. Without it those of Node.js count. */
  caFile?: string;
  /** What is shown to a daemon that asks for a certificate. */
  certFile?: string;
  keyFile?: string;
  /** The name in the certificate of the daemon, if that is not the host of the address. */
  serverName?: string;
}

/** An address, taken apart: a path, or host and port, inside TLS or not. */
export interface Place {
  readonly path: string;
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** A variable, unless this program has more rights than its caller, who could then choose which daemon it believes. */
function environment(name: string): string | undefined {
  if (process.geteuid && (process.getuid?.() !== process.geteuid() || process.getgid?.() !== process.getegid?.())) return undefined;
  return process.env[name] || undefined;
}

/** The address that stands for "the daemon of this host". */
export function defaultAddress(): string {
  const given = environment("REDLOCK_ADDR");
  if (given) return given;
  const runtime = environment("XDG_RUNTIME_DIR");
  const paths = runtime ? [SYSTEM_SOCKET, `${runtime}/redlockd/redlockd.sock`] : [SYSTEM_SOCKET];
  return paths.find((path) => existsSync(path)) ?? `127.0.0.1:${PORT}`;
}

/** User and secret: $REDLOCK_USER, and the first line of $REDLOCK_SECRET_FILE, or $REDLOCK_SECRET. */
export function credentials(): { user?: string; secret?: string } {
  const user = environment("REDLOCK_USER");
  if (!user) return {};
  const file = environment("REDLOCK_SECRET_FILE");
  const secret = file ? (readFileSync(file, "utf8").split("\n", 1)[0] as string).replace(/\r$/, "") : environment("REDLOCK_SECRET");
  if (!secret) throw new TypeError("REDLOCK_USER is set, but neither REDLOCK_SECRET_FILE nor REDLOCK_SECRET has a secret");
  return { user, secret };
}

function hostAndPort(rest: string, port: number): { host: string; port: number } {
  const colon = rest.endsWith("]") ? -1 : rest.lastIndexOf(":");
  let host = colon < 0 ? rest : rest.slice(0, colon);
  const digits = colon < 0 ? "" : rest.slice(colon + 1);
  if (host.startsWith("[") && host.endsWith("]")) host = host.slice(1, -1);
  else if (host.includes(":") || host.includes("[")) throw new TypeError(`"${rest}": an IPv6 address must be in brackets: [::1]:${PORT}`);
  if (colon >= 0 && digits && !(/^[0-9]{1,5}$/.test(digits) && Number(digits) > 0 && Number(digits) < 65536)) {
    throw new TypeError(`"${rest}": a port is a number from 1 to 65535`);
  }
  return { host: host || "127.0.0.1", port: Number(digits || port) };
}

/** Takes an address apart: the path of a Unix socket, host:port, [v6]:port or tls://host:port. TypeError says what is wrong. */
export function placeOf(address: string): Place {
  if (address.startsWith("tls://")) {
    const rest = address.slice("tls://".length);
    if (!rest || rest.includes("/")) throw new TypeError(`"${address}": an address inside TLS is tls://host:port`);
    return { path: "", ...hostAndPort(rest, TLS_PORT), tls: true };
  }
  const path = address.startsWith("unix:") ? address.slice("unix:".length) : address;
  if (path.includes("/") || path !== address) {
    if (!path) throw new TypeError(`"${address}": an address is host:port, or the path of a Unix socket, with a '/'`);
    return { path, host: "", port: 0, tls: false };
  }
  if (!address) throw new TypeError("an address is host:port, or the path of a Unix socket, with a '/'");
  return { path: "", ...hostAndPort(address, PORT), tls: false };
}

/**
 * Begins to connect. "connect", or "secureConnect" inside TLS, comes when that has worked. What arrives is handed to read(), or comes as "data" inside TLS and
 * in runtimes that know no `onread`: with that nothing is allocated for each piece.
 */
export function dial(place: Place, options: TlsOptions, read: (data: Buffer) => void): net.Socket {
  const callback = (size: number, buffer: Uint8Array): boolean => {
    read((buffer as Buffer).subarray(0, size));
    return true;
  };
  const onread = { buffer: Buffer.allocUnsafe(PIECE), callback };
  if (place.path) return net.connect({ path: place.path, onread });
  // By keepalive even a client that waits for ever notices that the host of the daemon is gone.
  const to = { host: place.host, port: place.port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30000 };
  return place.tls ? tls.connect({ ...to, ...secured(place, options) }) : net.connect({ ...to, onread });
}

function secured(place: Place, options: TlsOptions): tls.ConnectionOptions {
  const ca = options.caFile ?? environment("REDLOCK_TLS_CA");
  const cert = options.certFile ?? environment("REDLOCK_TLS_CERT");
  const key = options.keyFile ?? environment("REDLOCK_TLS_KEY");
  const name = options.serverName ?? environment("REDLOCK_TLS_NAME") ?? place.host;
  return {
    minVersion: "TLSv1.2",
    rejectUnauthorized: true,
    checkServerIdentity: (_host, certificate) => tls.checkServerIdentity(name, certificate),
    ...(net.isIP(name) ? {} : { servername: name }),
    ...(ca ? { ca: readFileSync(ca) } : {}),
    ...(cert ? { cert: readFileSync(cert), key: readFileSync(key ?? cert) } : {}),
  };
}
