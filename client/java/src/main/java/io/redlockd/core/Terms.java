// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import java.util.List;

/** What a {@link Take} asks for, in raw text. fields are those that are the same in each repetition; maxWait may be {@link Time#NEVER}. ttl 0: the default. */
public record Terms(String verb, List<String> names, String fields, long maxWait, long ttl) {
    /** The same with another wait. */
    public Terms waiting(long nanos) {
        return new Terms(verb, names, fields, nanos, ttl);
    }

    /** Whether it takes a job. A queue is no lock: what it gives has a key of its own. */
    boolean isJob() {
        return verb.equals("TAKE");
    }

    /** The names as they stand in a line. */
    String words() {
        if (names.size() == 1) {
            return Words.quote(names.get(0));
        }
        StringBuilder out = new StringBuilder();
        for (String name : names) {
            out.append(out.isEmpty() ? "" : " ").append(Words.quote(name));
        }
        return out.toString();
    }

    /** The names for people. */
    public String text() {
        return Words.text(String.join(", ", names));
    }
}
