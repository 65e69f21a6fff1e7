// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** What tells a hold apart from all else that the session has. Of a job name is the queue, and owner "job:" and the id. */
record Key(String name, String owner) {
    static final String JOB = "job:";

    /** The key of what a row or a push is about. */
    static Key of(Line line) {
        String job = line.get("job");
        return job != null ? new Key(orEmpty(line.get("queue")), JOB + job) : new Key(orEmpty(line.get("name")), orEmpty(line.get("owner")));
    }

    private static String orEmpty(String value) {
        return value == null ? "" : value;
    }
}
