// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.time.Duration;
import java.util.Optional;

/** So many permits, over all hosts together. All who use a name give the same limit. Any number of threads may use one object. */
public final class RedlockSemaphore {
    private final RedlockClient client;
    private final String name;
    private final int limit;
    private final LockOptions options;

    RedlockSemaphore(RedlockClient client, String name, int limit, LockOptions options) {
        this.client = client;
        this.name = name;
        this.limit = limit;
        this.options = options;
    }

    /**
     * Waits for a permit, as long as the options say, by default without end.
     *
     * @return the permit, held until it is closed
     * @throws InterruptedException the thread was interrupted, and waits no more
     * @throws LockTimeoutException none was free in time
     */
    public HeldLock acquire() throws InterruptedException {
        return client.permit(name, limit, options);
    }

    /**
     * Waits for a permit.
     *
     * @param wait the longest wait
     * @return the permit, held until it is closed
     * @throws InterruptedException the thread was interrupted, and waits no more
     * @throws LockTimeoutException none was free in time
     */
    public HeldLock acquire(Duration wait) throws InterruptedException {
        return client.permit(name, limit, options.waiting(wait));
    }

    /**
     * Takes a permit if one is free.
     *
     * @return the permit, held until it is closed, or nothing
     * @throws InterruptedException the thread was interrupted
     */
    public Optional<HeldLock> tryAcquire() throws InterruptedException {
        try {
            return Optional.of(acquire(Duration.ZERO));
        } catch (BusyException none) {
            return Optional.empty();
        }
    }
}
