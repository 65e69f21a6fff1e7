// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import java.util.Map;

/** One line of the daemon, without its tag. kind is its first word; code that of an error or a push; text what follows. */
public final class Line {
    public final String kind;
    public final String code;
    public final String text;
    private Map<String, String> fields;

    Line(String line) {
        int blank = line.indexOf(' ');
        kind = blank < 0 ? line : line.substring(0, blank);
        String rest = blank < 0 ? "" : line.substring(blank + 1);
        if (kind.equals("ERR") || kind.equals("!")) {
            blank = rest.indexOf(' ');
            code = blank < 0 ? rest : rest.substring(0, blank);
            text = blank < 0 ? "" : rest.substring(blank + 1);
        } else {
            code = "";
            text = rest;
        }
    }

    /** The fields by name, quotes removed. */
    public Map<String, String> fields() {
        if (fields == null) {
            fields = Words.fields(text);
        }
        return fields;
    }

    /** A field, or null. */
    public String get(String field) {
        return fields().get(field);
    }

    /** A field that must be there. */
    String must(String field) {
        String value = get(field);
        if (value == null) {
            throw new ProtocolError("no " + field + " in: " + kind + " " + text);
        }
        return value;
    }

    /** A whole number that must be there. */
    long mustNumber(String field) {
        try {
            return Long.parseLong(must(field));
        } catch (NumberFormatException wrong) {
            throw new ProtocolError(field + " is no number in: " + kind + " " + text, wrong);
        }
    }

    /** A whole number by the name of its field; otherwise, if there is none. */
    public long number(String field, long otherwise) {
        String value = get(field);
        try {
            return value == null ? otherwise : Long.parseLong(value);
        } catch (NumberFormatException wrong) {
            return otherwise;
        }
    }

    /** Nanoseconds: a duration, which the daemon tells in milliseconds. */
    public long nanos(String field) {
        return number(field, 0) * Time.MS;
    }

    @Override
    public String toString() {
        return kind + " " + code + " " + text;
    }
}
