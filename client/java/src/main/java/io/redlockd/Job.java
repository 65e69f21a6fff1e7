// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Hold;
import io.redlockd.core.JobHold;
import io.redlockd.core.Words;
import io.redlockd.net.Engine;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/**
 * A job that was taken from a queue, with its lock. Call {@link #done} when it is done. {@code try (job) { ...; job.done(); }} gives it back if that was not
 * reached, to be tried again.
 */
public final class Job extends Held implements AutoCloseable {
    private final JobHold job;

    Job(Engine engine, List<Hold> holds, LockOptions options) {
        super(engine, holds, options);
        job = (JobHold) holds.get(0);
    }

    /**
     * The id of the job.
     *
     * @return the id
     */
    public String id() {
        return Words.text(job.job);
    }

    /**
     * What was deferred.
     *
     * @return the bytes
     */
    public byte[] payload() {
        return Words.bytes(job.payload);
    }

    /**
     * What was deferred, as text in UTF-8.
     *
     * @return the text
     */
    public String text() {
        return new String(payload(), StandardCharsets.UTF_8);
    }

    /**
     * How often the job was taken, this time included.
     *
     * @return 1 for the first
     */
    public int attempt() {
        return job.attempt;
    }

    /**
     * The lock that was granted with the job.
     *
     * @return its name, or "" if there is none
     */
    public String lockName() {
        return Words.text(job.lock);
    }

    /**
     * Whether done or retry was called.
     *
     * @return true from then on
     */
    public boolean isEnded() {
        return isReleased();
    }

    /**
     * The job is done and gone.
     *
     * @throws LockLostException the job was lost before
     */
    public void done() {
        end("DONE");
    }

    /**
     * Gives the job back.
     *
     * @param delay when it is due again
     * @throws LockLostException the job was lost before
     */
    public void retry(Duration delay) {
        retry(delay, true);
    }

    /**
     * Gives the job back.
     *
     * @param delay when it is due again
     * @param failed whether the attempt is counted
     * @throws LockLostException the job was lost before
     */
    public void retry(Duration delay, boolean failed) {
        end("RETRY" + (delay.isZero() ? "" : " delay=" + Words.duration(delay.toNanos())) + (failed ? "" : " failed=no"));
    }

    private void end(String words) {
        if (isReleased()) {
            throw new IllegalStateException("the job " + id() + " has ended already");
        }
        give(words);
    }

    /** Gives the job back, to be tried again, unless it has ended. */
    @Override
    public void close() {
        give("RETRY");
    }
}
