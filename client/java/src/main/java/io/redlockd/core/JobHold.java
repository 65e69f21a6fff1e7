// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** A job, with the lock that was granted with it. */
public final class JobHold extends Hold {
    public final String job;
    public final int attempt;
    public final String payload;
    public final String lock;

    JobHold(Line line, long ttl, int session) {
        super(new Key(line.must("queue"), Key.JOB + line.must("job")), line.number("fence", 0), ttl, session);
        job = line.must("job");
        attempt = (int) line.number("attempt", 1);
        payload = line.get("payload") == null ? "" : line.get("payload");
        lock = line.get("name") == null ? "" : line.get("name");
    }

    @Override
    boolean isAt(Line line) {
        return true;
    }

    @Override
    String check() {
        return "CHECK " + Words.quote(key.name()) + " job=" + Words.quote(job);
    }

    /** The request that ends it: DONE, or RETRY with its fields. */
    @Override
    String free(String words) {
        String verb = words.isEmpty() ? "DONE" : words;
        int blank = verb.indexOf(' ');
        String fields = blank < 0 ? "" : verb.substring(blank);
        return (blank < 0 ? verb : verb.substring(0, blank)) + " " + Words.quote(job) + " queue=" + Words.quote(key.name()) + fields;
    }

    @Override
    String freeUnseen() {
        return free("RETRY failed=no");
    }
}
