// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Words and fields of the protocol; see redlock-protocol(7), THE LINE. Inside the core all text is raw: each char is one byte, so that names that are no UTF-8
 * stay what they are. {@link #raw} and {@link #text} turn the text of users into that and back.
 */
public final class Words {
    private static final String HEX = "0123456789abcdef";

    private Words() {
    }

    /** Text of users as raw text. */
    public static String raw(String text) {
        return isAscii(text) ? text : new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
    }

    /** Raw text as users see it. */
    public static String text(String raw) {
        return isAscii(raw) ? raw : new String(bytes(raw), StandardCharsets.UTF_8);
    }

    /** Raw text as bytes. */
    public static byte[] bytes(String raw) {
        return raw.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** Bytes as raw text. */
    public static String raw(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    private static boolean isAscii(String text) {
        for (int at = 0; at < text.length(); at++) {
            if (text.charAt(at) > 0x7f) {
                return false;
            }
        }
        return true;
    }

    /** A word or a value as it stands in a request: as it is if it is plain, else in double quotes. */
    public static String quote(String raw) {
        for (int at = 0; at < raw.length(); at++) {
            if (!isPlain(raw.charAt(at))) {
                return quoted(raw);
            }
        }
        return raw.isEmpty() ? "\"\"" : raw;
    }

    /** The same, in quotes in any case: a payload with a '=' is no field. */
    public static String quoted(String raw) {
        StringBuilder out = new StringBuilder(raw.length() + 8).append('"');
        for (int at = 0; at < raw.length(); at++) {
            char c = raw.charAt(at);
            if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') {
                out.append("\\x").append(HEX.charAt(c >> 4)).append(HEX.charAt(c & 15));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private static boolean isPlain(char c) {
        return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '=' && c != '\\';
    }

    /** A duration of a request. Rounded up to a microsecond, so that a short one does not become 0. */
    public static String duration(long nanos) {
        if (nanos <= 0) {
            return "0";
        }
        long us = nanos / 1000 + (nanos % 1000 == 0 ? 0 : 1);
        return us % 1000 == 0 ? us / 1000 + "ms" : us + "us";
    }

    /** The fields of a reply by name, quotes removed. What is no field is skipped. */
    static Map<String, String> fields(String text) {
        Map<String, String> found = new HashMap<>();
        int at = 0;
        while (at < text.length()) {
            if (text.charAt(at) == ' ') {
                at++;
                continue;
            }
            int end = endOfToken(text, at);
            int equals = text.indexOf('=', at);
            if (equals > at && equals < end) {
                found.put(text.substring(at, equals), unquote(text.substring(equals + 1, end)));
            }
            at = end;
        }
        return found;
    }

    private static int endOfToken(String text, int from) {
        boolean inside = false;
        for (int at = from; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"') {
                inside = !inside;
            } else if (inside && c == '\\') {
                at++;
            } else if (c == ' ' && !inside) {
                return at;
            }
        }
        return text.length();
    }

    private static String unquote(String value) {
        if (!value.startsWith("\"")) {
            return value;
        }
        int last = value.length() > 1 && value.endsWith("\"") ? value.length() - 1 : value.length();
        StringBuilder out = new StringBuilder(last);
        for (int at = 1; at < last; at++) {
            char c = value.charAt(at);
            if (c != '\\' || at + 1 >= last) {
                out.append(c);
            } else if (value.charAt(at + 1) == 'x' && at + 3 < last) {
                out.append((char) Integer.parseInt(value, at + 2, at + 4, 16));
                at += 3;
            } else {
                at++;
                out.append(letter(value.charAt(at)));
            }
        }
        return out.toString();
    }

    private static char letter(char c) {
        return switch (c) {
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'b' -> '\b';
            case 'a' -> 7;
            default -> c;
        };
    }
}
