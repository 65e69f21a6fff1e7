// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A line of the protocol, taken apart: tag, words and fields, quotes removed. */
final class Line {
    final String tag;
    final List<String> words = new ArrayList<>();
    final Map<String, String> fields = new HashMap<>();

    Line(String text) {
        String own = "";
        int at = 0;
        while (at < text.length()) {
            if (text.charAt(at) == ' ') {
                at++;
                continue;
            }
            StringBuilder word = new StringBuilder();
            int equals = -1;
            boolean quoted = text.charAt(at) == '"';
            boolean inside = false;
            for (; at < text.length() && (inside || text.charAt(at) != ' '); at++) {
                char c = text.charAt(at);
                if (c == '"') {
                    inside = !inside;
                } else if (inside && c == '\\' && text.startsWith("x", at + 1)) {
                    word.append((char) Integer.parseInt(text, at + 2, at + 4, 16));
                    at += 3;
                } else if (inside && c == '\\') {
                    word.append(text.charAt(++at));
                } else {
                    equals = c == '=' && !inside && equals < 0 ? word.length() : equals;
                    word.append(c);
                }
            }
            if (own.isEmpty() && words.isEmpty() && word.length() > 0 && word.charAt(0) == '@') {
                own = word.toString();
            } else if (equals > 0 && !quoted) {
                fields.put(word.substring(0, equals), word.substring(equals + 1));
            } else {
                words.add(word.toString());
            }
        }
        tag = own;
    }

    String verb() {
        return words.isEmpty() ? "" : words.get(0);
    }

    List<String> names() {
        return words.subList(Math.min(1, words.size()), words.size());
    }

    String field(String name) {
        return fields.getOrDefault(name, "");
    }

    /** Milliseconds of a field; less than 0: for ever. */
    long millis(String field) {
        String value = fields.getOrDefault(field, "0");
        if (value.equals("forever")) {
            return -1;
        }
        if (value.endsWith("us")) {
            return (Long.parseLong(value.substring(0, value.length() - 2)) + 999) / 1000;
        }
        return Long.parseLong(value.replace("ms", ""));
    }

    /** A name of the user as it stands in lines: each char is a byte. */
    static String raw(String name) {
        return new String(name.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
    }

    static String quote(String name) {
        if (name.matches("[!#-&(-<>-\\[\\]-~]+")) {
            return name;
        }
        StringBuilder out = new StringBuilder("\"");
        for (char c : name.toCharArray()) {
            if (c < ' ' || c == '"' || c == '\\' || c == 0x7f) {
                out.append(String.format("\\x%02x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}
