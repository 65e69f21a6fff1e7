// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** Times of the core: nanoseconds of the clock that the caller reads. */
public final class Time {
    public static final long MS = 1_000_000;
    public static final long SECOND = 1000 * MS;
    /** A moment that does not come, and a wait without end. */
    public static final long NEVER = Long.MAX_VALUE;
    /** How long an answer may take, in addition to the wait that the request asks for. */
    public static final long PATIENCE = 5 * SECOND;

    private Time() {
    }

    /** A moment so much later, both at least 0. */
    public static long plus(long moment, long nanos) {
        return moment > NEVER - nanos ? NEVER : moment + nanos;
    }
}
