// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.spring;

import io.redlockd.RedlockClient;
import io.redlockd.RedlockLock;
import java.time.Duration;
import java.util.Objects;
import org.springframework.integration.support.locks.LockRegistry;
import org.springframework.integration.support.locks.RenewableLockRegistry;

/**
 * A LockRegistry of Spring Integration. Its locks are those of {@link RedlockClient#lock}: reentrant by thread, and renewed by the daemon. unlock() throws
 * LockLostException if the lock was lost before. Any thread may use it.
 */
public final class RedlockLockRegistry implements LockRegistry, RenewableLockRegistry {
    private final RedlockClient client;
    private final String prefix;

    /**
     * A registry whose locks are named "spring/" and the key.
     *
     * @param client stays yours to close
     */
    public RedlockLockRegistry(RedlockClient client) {
        this(client, "spring/");
    }

    /**
     * A registry.
     *
     * @param client stays yours to close
     * @param prefix what the names of the locks begin with
     */
    public RedlockLockRegistry(RedlockClient client, String prefix) {
        this.client = Objects.requireNonNull(client);
        this.prefix = Objects.requireNonNull(prefix);
    }

    @Override
    public RedlockLock obtain(Object key) {
        return client.lock(prefix + Objects.requireNonNull(key));
    }

    /**
     * Asks the daemon whether this thread has the lock still. That is rarely needed: the daemon renews it by itself.
     *
     * @param key the key of the lock
     * @throws IllegalStateException this thread does not have it
     */
    @Override
    public void renewLock(Object key) {
        RedlockLock lock = obtain(key);
        if (lock.getHoldCount() == 0) {
            throw new IllegalStateException("the lock " + lock.name() + " is not held by this thread");
        }
        lock.ensure(Duration.ZERO);
    }
}
