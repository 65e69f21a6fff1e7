// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.nio.file.Files;
import java.nio.file.Path;

/** An address, taken apart: a path, or host and port, inside TLS or not. text is as it was given. */
public record Place(String text, String path, String host, int port, boolean tls) {
    private static final String SYSTEM_SOCKET = "/run/redlockd/redlockd.sock";
    private static final int PORT = 7420;
    private static final int TLS_PORT = 7422;

    /** A variable of the environment, or null if it is not there or empty. */
    public static String environment(String name) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? null : value;
    }

    /** The address that stands for "the daemon of this host". */
    public static String byDefault() {
        String given = environment("REDLOCK_ADDR");
        if (given != null) {
            return given;
        }
        String runtime = environment("XDG_RUNTIME_DIR");
        if (Files.exists(Path.of(SYSTEM_SOCKET))) {
            return SYSTEM_SOCKET;
        }
        if (runtime != null && Files.exists(Path.of(runtime, "redlockd", "redlockd.sock"))) {
            return runtime + "/redlockd/redlockd.sock";
        }
        return "127.0.0.1:" + PORT;
    }

    /** Takes an address apart: the path of a Unix socket, host:port, [v6]:port or tls://host:port. IllegalArgumentException says what is wrong. */
    public static Place of(String address) {
        if (address.startsWith("tls://")) {
            String rest = address.substring("tls://".length());
            if (rest.isEmpty() || rest.contains("/")) {
                throw new IllegalArgumentException(address + ": an address inside TLS is tls://host:port");
            }
            return ofHost(address, rest, TLS_PORT, true);
        }
        boolean named = address.startsWith("unix:");
        String path = named ? address.substring("unix:".length()) : address;
        if (path.isEmpty()) {
            throw new IllegalArgumentException("an address is host:port, or the path of a Unix socket, with a '/'");
        }
        return named || path.contains("/") ? new Place(address, path, null, 0, false) : ofHost(address, address, PORT, false);
    }

    private static Place ofHost(String address, String rest, int otherwise, boolean tls) {
        int colon = rest.endsWith("]") ? -1 : rest.lastIndexOf(':');
        String host = colon < 0 ? rest : rest.substring(0, colon);
        String digits = colon < 0 ? "" : rest.substring(colon + 1);
        if (host.startsWith("[") && host.endsWith("]")) {
            host = host.substring(1, host.length() - 1);
        } else if (host.contains(":") || host.contains("[")) {
            throw new IllegalArgumentException(address + ": an IPv6 address must be in brackets: [::1]:" + PORT);
        }
        int port = digits.isEmpty() ? otherwise : digits.matches("[0-9]{1,5}") ? Integer.parseInt(digits) : 0;
        if (port < 1 || port > 65535) {
            throw new IllegalArgumentException(address + ": a port is a number from 1 to 65535");
        }
        return new Place(address, null, host.isEmpty() ? "127.0.0.1" : host, port, tls);
    }
}
