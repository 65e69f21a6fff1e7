// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.util.concurrent.locks.ReadWriteLock;

/**
 * A lock for many readers or one writer, over all hosts. The write lock is the same as {@link RedlockClient#lock} of that name. A thread that has the write
 * lock may take the read lock as well, and then has both until both are unlocked; the other way round is a {@link DeadlockException}.
 */
public final class RedlockReadWriteLock implements ReadWriteLock {
    private final RedlockLock reading;
    private final RedlockLock writing;

    RedlockReadWriteLock(RedlockLock reading, RedlockLock writing) {
        this.reading = reading;
        this.writing = writing;
    }

    @Override
    public RedlockLock readLock() {
        return reading;
    }

    @Override
    public RedlockLock writeLock() {
        return writing;
    }
}
