// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Words;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * How something is taken: immutable, and each method returns a copy that differs in one point. {@link #DEFAULT} waits without end for the lease of the daemon.
 */
public final class LockOptions {
    /** Wait without end, for the lease of the daemon. */
    public static final LockOptions DEFAULT = new LockOptions(null, null, false, null, null, 0, null, null);

    private final Duration wait;
    private final Duration ttl;
    private final boolean shared;
    private final String note;
    private final String trace;
    private final int priority;
    private final Consumer<? super Held> onLost;
    private final Consumer<? super Held> onRisk;

    private LockOptions(Duration wait, Duration ttl, boolean shared, String note, String trace, int priority, Consumer<? super Held> onLost,
            Consumer<? super Held> onRisk) {
        this.wait = wait;
        this.ttl = ttl;
        this.shared = shared;
        this.note = note;
        this.trace = trace;
        this.priority = priority;
        this.onLost = onLost;
        this.onRisk = onRisk;
    }

    /**
     * How long to wait in the queue of the daemon.
     *
     * @param wait the longest wait; zero: not at all
     * @return the changed options
     */
    public LockOptions waiting(Duration wait) {
        return new LockOptions(Objects.requireNonNull(wait), ttl, shared, note, trace, priority, onLost, onRisk);
    }

    /**
     * The length of the lease, which the daemon renews. Nobody else gets the lock for so long if the daemon ends.
     *
     * @param ttl the length
     * @return the changed options
     */
    public LockOptions ttl(Duration ttl) {
        return new LockOptions(wait, Objects.requireNonNull(ttl), shared, note, trace, priority, onLost, onRisk);
    }

    /**
     * Readers hold a lock together.
     *
     * @return the changed options
     */
    public LockOptions shared() {
        return new LockOptions(wait, ttl, true, note, trace, priority, onLost, onRisk);
    }

    /**
     * A text that others see who ask about the lock.
     *
     * @param note at most 256 bytes
     * @return the changed options
     */
    public LockOptions note(String note) {
        return new LockOptions(wait, ttl, shared, Objects.requireNonNull(note), trace, priority, onLost, onRisk);
    }

    /**
     * The span that asks: whoever is refused the lock gets it in the exception.
     *
     * @param trace a traceparent of W3C Trace Context
     * @return the changed options
     */
    public LockOptions trace(String trace) {
        return new LockOptions(wait, ttl, shared, note, Objects.requireNonNull(trace), priority, onLost, onRisk);
    }

    /**
     * Who is granted first among those who wait; see redlock-protocol(7).
     *
     * @param priority the larger the sooner; 0 is usual
     * @return the changed options
     */
    public LockOptions priority(int priority) {
        return new LockOptions(wait, ttl, shared, note, trace, priority, onLost, onRisk);
    }

    /**
     * A function that is called when the lock is lost, in a thread of the client.
     *
     * @param function what is called, with the lock
     * @return the changed options
     */
    public LockOptions onLost(Consumer<? super Held> function) {
        return new LockOptions(wait, ttl, shared, note, trace, priority, Objects.requireNonNull(function), onRisk);
    }

    /**
     * A function that is called when a renewal failed or is late: the lock is held still, for the time that remains.
     *
     * @param function what is called, with the lock
     * @return the changed options
     */
    public LockOptions onRisk(Consumer<? super Held> function) {
        return new LockOptions(wait, ttl, shared, note, trace, priority, onLost, Objects.requireNonNull(function));
    }

    /** The longest wait; null: without end. */
    Duration longestWait() {
        return wait;
    }

    Duration lease() {
        return ttl;
    }

    Consumer<? super Held> onLost() {
        return onLost;
    }

    Consumer<? super Held> onRisk() {
        return onRisk;
    }

    /** With the functions of the client where there are none. */
    LockOptions or(Consumer<? super Held> lost, Consumer<? super Held> risk) {
        return onLost != null && onRisk != null || lost == null && risk == null ? this
                : new LockOptions(wait, ttl, shared, note, trace, priority, onLost != null ? onLost : lost, onRisk != null ? onRisk : risk);
    }

    /** The fields of a request, but for wait. */
    String fields() {
        if (this == DEFAULT) {
            return "";
        }
        return (ttl == null ? "" : " ttl=" + Words.duration(ttl.toNanos())) + (shared ? " mode=shared" : "")
                + (note == null ? "" : " note=" + Words.quote(Words.raw(note)))
                + (trace == null ? "" : " trace=" + Words.quote(Words.raw(trace))) + (priority == 0 ? "" : " priority=" + priority);
    }
}
