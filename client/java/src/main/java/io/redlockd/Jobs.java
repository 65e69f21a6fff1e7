// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Consumer;

/**
 * The jobs of a queue, one after the other, until none came for a while. Each iterator takes jobs of its own. A job that has not ended when the next one is
 * asked for is done. One whose loop is left by an exception stays taken until it is closed: use {@link #forEach}, or {@code try (job)}.
 */
public final class Jobs implements Iterable<Job> {
    private final RedlockClient client;
    private final String queue;
    private final LockOptions options;

    Jobs(RedlockClient client, String queue, LockOptions options) {
        this.client = client;
        this.queue = queue;
        this.options = options;
    }

    /**
     * Calls a function for each job. It is done when the function returns, and tried again if that throws. An interrupt ends the loop.
     *
     * @param function what to do with a job
     */
    @Override
    public void forEach(Consumer<? super Job> function) {
        for (Job job : this) {
            try (job) {
                function.accept(job);
                if (!job.isEnded()) {
                    job.done();
                }
            }
        }
    }

    @Override
    public Iterator<Job> iterator() {
        return new Iterator<>() {
            private Job last;
            private Job next;

            @Override
            public boolean hasNext() {
                if (next == null) {
                    if (last != null && !last.isEnded()) {
                        last.done();
                    }
                    last = null;
                    next = take();
                }
                return next != null;
            }

            @Override
            public Job next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                last = next;
                next = null;
                return last;
            }
        };
    }

    /** The next job; null: there was none in time, or the thread was interrupted. */
    private Job take() {
        try {
            return client.job(queue, options);
        } catch (BusyException | LockTimeoutException none) {
            return null;
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            return null;
        }
    }
}
