// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.LockLostException;
import java.lang.ref.WeakReference;

/**
 * A lock that the daemon has granted; {@link Permit} and {@link JobHold} are the other kinds. It may be relied on until {@code until}, and not after a loss;
 * {@code reason} is "" until then. The core writes all fields under the mutex of its user; what {@link #left} reads may be read by any thread.
 */
public class Hold {
    final Key key;
    public final long fence;
    final int session;
    volatile long ttl;
    volatile long until;
    volatile String reason = "";
    volatile boolean freed;
    /** When the clock was seen to have stood still: nothing is relied on until a CHECK was sent after this and answered. */
    volatile long doubt = Time.NEVER;
    long asked = Long.MIN_VALUE;
    long checkAt = Time.NEVER;
    /** The deadline when the caller was warned. */
    long riskUntil = Time.NEVER;
    boolean checking;
    /** The object of the front end, which hears what happens. */
    private volatile WeakReference<Listener> listener;

    /** Hears of a hold, under the mutex of the core's user. */
    public interface Listener {
        /** News of one of its holds. */
        void hear(News news);
    }

    Hold(Key key, long fence, long ttl, int session) {
        this.key = key;
        this.fence = fence;
        this.ttl = ttl;
        this.session = session;
    }

    /** The name, as users know it. */
    public final String name() {
        return Words.text(key.name());
    }

    /** Why it is lost, or "". */
    public final String reason() {
        return reason;
    }

    /** Whether the session has it, as far as the client knows. */
    public final boolean alive() {
        return reason.isEmpty() && !freed;
    }

    /** For how many nanoseconds it may be relied on, at least 0. */
    public final long left(long now) {
        return alive() && doubt == Time.NEVER ? Math.max(0, until - now) : 0;
    }

    /** Who hears of it from now on. A weak reference: what nobody refers to any more is warned about. */
    public final void attach(WeakReference<Listener> to) {
        listener = to;
    }

    /** The exception that says that it is lost. */
    public final LockLostException lost() {
        return new LockLostException(name(), reason.isEmpty() ? "released" : reason, fence);
    }

    public final void tell(News news) {
        WeakReference<Listener> to = listener;
        Listener told = to == null ? null : to.get();
        if (told != null) {
            told.hear(news);
        }
    }

    /** Takes in an answer OK to a request that was sent at that time. An answer to an earlier one than the last says nothing new. */
    final void confirm(long sent, long valid) {
        if (sent >= asked) {
            asked = sent;
            until = sent + valid;
            checkAt = sent + Math.min(ttl / 3, valid / 2);
            if (sent >= doubt) {
                doubt = Time.NEVER;
            }
        }
    }

    /** When the caller is to be warned, because no answer has moved the deadline on. */
    final long riskAt() {
        return riskUntil == Time.NEVER && until != Time.NEVER && until - asked > ttl / 3 ? until - ttl / 6 : Time.NEVER;
    }

    /** Whether a row or a push with the same name and owner is about this grant. */
    boolean isAt(Line line) {
        return String.valueOf(fence).equals(line.get("fence"));
    }

    /** The request that asks whether it is still held. */
    String check() {
        return "CHECK " + Words.quote(key.name()) + " owner=" + key.owner();
    }

    /** The request that renews the lease now. */
    String extend(String fields) {
        return "EXTEND " + Words.quote(key.name()) + " owner=" + key.owner() + fields;
    }

    /** The request that gives it back. It may be repeated. */
    String free(String fields) {
        return "UNLOCK " + Words.quote(key.name()) + " owner=" + key.owner() + " fence=" + fence + " count=0" + fields;
    }

    /** The request that gives back what nobody has seen. */
    String freeUnseen() {
        return free("");
    }
}
