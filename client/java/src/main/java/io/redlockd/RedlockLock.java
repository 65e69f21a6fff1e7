// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Consumer;

/**
 * A lock over all hosts, as a {@link Lock}: who waits stands in the queue of the daemon. It belongs to the thread that took it, which may take it again and
 * unlocks it as often. All locks of one name of a client are the same lock. A thread that ends with a lock leaves it held until the client is closed.
 *
 * <p>Unlike a lock of one process it can be lost: {@link #onLost}, {@link #ensure}, {@link #remaining} and {@link #fence} are for that.
 */
public final class RedlockLock implements Lock {
    private final RedlockClient client;
    private final Seats seats;
    private final String name;
    private final boolean shared;
    private final LockOptions options;
    private final List<Consumer<? super Held>> onLost = new CopyOnWriteArrayList<>();

    RedlockLock(RedlockClient client, Seats seats, String name, boolean shared, LockOptions options) {
        this.client = client;
        this.seats = seats;
        this.name = name;
        this.shared = shared;
        this.options = shared ? options.shared() : options;
    }

    /**
     * Waits until the thread has the lock. An interrupt does not end the wait; lockInterruptibly and tryLock(time, unit) are for that.
     *
     * @throws DeadlockException it would wait for somebody who waits for this thread
     * @throws LockLostException the thread had it already, and has lost it: unlock it first
     * @throws RedlockException it cannot be had: no quorum, no connection, and so on
     */
    @Override
    public void lock() {
        if (!again()) {
            took(client.holdUninterruptibly(name, options));
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        if (!again()) {
            took(client.hold(name, options));
        }
    }

    /**
     * Takes the lock if it is free. Asks the daemon, but does not wait in its queue.
     *
     * @return false: somebody else has it
     * @throws RedlockException that is not known: no quorum, no connection, and so on
     */
    @Override
    public boolean tryLock() {
        try {
            if (!again()) {
                took(client.holdUninterruptibly(name, options.waiting(Duration.ZERO)));
            }
            return true;
        } catch (BusyException | DeadlockException somebody) {
            return false;
        }
    }

    /**
     * Waits in the queue of the daemon.
     *
     * @param time the longest wait
     * @param unit its unit
     * @return false: it was not free in time
     * @throws RedlockException that is not known: no quorum, no connection, and so on
     */
    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        try {
            if (!again()) {
                took(client.hold(name, options.waiting(Duration.ofNanos(Math.max(0, unit.toNanos(time))))));
            }
            return true;
        } catch (BusyException | LockTimeoutException somebody) {
            return false;
        }
    }

    private boolean again() {
        Seats.Seat seat = seats.mine(name);
        if (seat == null) {
            return false;
        }
        if (seat.held().isLost()) {
            throw new LockLostException(name, seat.held().reason(), seat.held().fence());
        }
        if (!shared && seat.isShared()) {
            throw new DeadlockException(name + ": this thread has the read lock, and would wait for itself");
        }
        seat.count(shared, 1);
        return true;
    }

    private void took(HeldLock held) {
        seats.take(name, held, shared);
        onLost.forEach(held::onLost);
    }

    /**
     * Unlocks it once. After the last time somebody else gets it.
     *
     * @throws IllegalMonitorStateException this thread does not have it
     * @throws LockLostException it was lost before
     */
    @Override
    public void unlock() {
        Seats.Seat seat = seats.mine(name);
        if (seat == null || seat.count(shared) == 0) {
            throw new IllegalMonitorStateException("the lock " + name + " is not held by this thread");
        }
        seat.count(shared, -1);
        if (seat.isEmpty()) {
            seats.leave(name);
            seat.held().close();
        }
    }

    /**
     * Not supported: a daemon that keeps locks knows no conditions.
     *
     * @return nothing
     * @throws UnsupportedOperationException always
     */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("a lock of redlockd has no conditions; a queue of jobs (defer, jobs) hands work from one process to another");
    }

    /**
     * The name of the lock.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * The fencing token of the grant that this thread has: pass it on with each write, so that the storage can refuse smaller ones.
     *
     * @return the token
     * @throws IllegalMonitorStateException this thread does not have the lock
     */
    public long fence() {
        return held().fence();
    }

    /**
     * For how long this thread may rely on the lock, by the local clock.
     *
     * @return the time that is left; zero: not at all
     */
    public Duration remaining() {
        Seats.Seat seat = seats.mine(name);
        return seat == null ? Duration.ZERO : seat.held().remaining();
    }

    /**
     * Asks the daemon, right before an effect that cannot be undone. If too little time is left, the lease is renewed first.
     *
     * @param effect how long the effect takes
     * @return for how long the lock may be relied on, which is longer than that
     * @throws LockLostException it is lost, or not certain for so long
     * @throws IllegalMonitorStateException this thread does not have the lock
     */
    public Duration ensure(Duration effect) {
        return held().ensure(effect);
    }

    /**
     * Has a function called when a lock is lost that was taken through this object, in a thread of the client.
     *
     * @param function what is called
     */
    public void onLost(Runnable function) {
        onLost((Consumer<Held>) held -> function.run());
    }

    /**
     * The same, for a function that wants to know what was lost.
     *
     * @param function what is called
     */
    public void onLost(Consumer<? super Held> function) {
        onLost.add(function);
        Seats.Seat seat = seats.mine(name);
        if (seat != null) {
            seat.held().onLost(function);
        }
    }

    /**
     * Whether this thread has the lock, and may rely on it at this moment.
     *
     * @return false also when it is lost
     */
    public boolean isHeldByCurrentThread() {
        return getHoldCount() > 0 && !remaining().isZero();
    }

    /**
     * How often this thread has to unlock it.
     *
     * @return 0: it does not have it
     */
    public int getHoldCount() {
        Seats.Seat seat = seats.mine(name);
        return seat == null ? 0 : seat.count(shared);
    }

    private HeldLock held() {
        Seats.Seat seat = seats.mine(name);
        if (seat == null) {
            throw new IllegalMonitorStateException("the lock " + name + " is not held by this thread");
        }
        return seat.held();
    }

    @Override
    public String toString() {
        Seats.Seat seat = seats.mine(name);
        return "RedlockLock " + name + (shared ? ", shared" : "") + (seat == null ? ", not held by this thread" : ", " + seat.held());
    }
}
