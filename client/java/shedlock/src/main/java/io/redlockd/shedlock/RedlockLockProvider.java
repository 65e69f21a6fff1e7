// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.shedlock;

import io.redlockd.BusyException;
import io.redlockd.HeldLock;
import io.redlockd.LockLostException;
import io.redlockd.LockOptions;
import io.redlockd.RedlockClient;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * A LockProvider of ShedLock. A lock ends with its process, and after lockAtMostFor at the latest. For the rest of lockAtLeastFor its name is left taken,
 * for at most max_keep of the daemon. Any thread may use it.
 */
public final class RedlockLockProvider implements ExtensibleLockProvider {
    private static final System.Logger LOG = System.getLogger("io.redlockd");

    private final RedlockClient client;
    private final String prefix;
    private final ScheduledThreadPoolExecutor timer;

    /**
     * A provider whose locks are named "shedlock/" and the name of the task.
     *
     * @param client stays yours to close
     */
    public RedlockLockProvider(RedlockClient client) {
        this(client, "shedlock/");
    }

    /**
     * A provider.
     *
     * @param client stays yours to close
     * @param prefix what the names of the locks begin with
     */
    public RedlockLockProvider(RedlockClient client, String prefix) {
        this.client = Objects.requireNonNull(client);
        this.prefix = Objects.requireNonNull(prefix);
        this.timer = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "redlockd-shedlock");
            thread.setDaemon(true);
            return thread;
        });
        timer.setRemoveOnCancelPolicy(true);
    }

    @Override
    public Optional<SimpleLock> lock(LockConfiguration configuration) {
        try {
            HeldLock held = client.hold(prefix + configuration.getName(), LockOptions.DEFAULT.waiting(Duration.ZERO));
            return Optional.of(new Locked(held, configuration));
        } catch (BusyException somebody) {
            return Optional.empty();
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            throw new LockException("interrupted", ended);
        }
    }

    private final class Locked extends AbstractSimpleLock {
        private final HeldLock held;
        private final ScheduledFuture<?> end;

        Locked(HeldLock held, LockConfiguration configuration) {
            super(configuration);
            this.held = held;
            this.end = timer.schedule(() -> give(Duration.ZERO), until(configuration.getLockAtMostUntil()).toNanos(), TimeUnit.NANOSECONDS);
        }

        @Override
        protected void doUnlock() {
            end.cancel(false);
            give(until(lockConfiguration.getLockAtLeastUntil()));
        }

        @Override
        protected Optional<SimpleLock> doExtend(LockConfiguration longer) {
            if (!end.cancel(false) || !held.isHeld()) {
                return Optional.empty();
            }
            return Optional.of(new Locked(held, longer));
        }

        private void give(Duration keep) {
            try {
                held.release(keep, false);
            } catch (LockLostException lost) {
                LOG.log(System.Logger.Level.WARNING, "a task ran on without its lock: " + lost.getMessage());
            }
        }
    }

    private static Duration until(Instant moment) {
        Duration left = Duration.between(ClockProvider.now(), moment);
        return left.isNegative() ? Duration.ZERO : left;
    }
}
