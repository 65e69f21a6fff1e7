// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.time.Duration;

/** Somebody else has it, and the request did not wait. */
public class BusyException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /** What was asked for. */
    private final String name;
    /** Who has it, or null. */
    private final String holder;
    /** When to ask again, or null. */
    private final Duration retryAfter;
    /** What it gave as its trace, or null. */
    private final String trace;

    /**
     * An exception.
     *
     * @param text what went wrong
     * @param name what was asked for
     * @param holder who has it, or null
     * @param retryAfter when to ask again, or null
     * @param trace what the holder gave as its trace, or null
     */
    public BusyException(String text, String name, String holder, Duration retryAfter, String trace) {
        super(text, "BUSY");
        this.name = name;
        this.holder = holder;
        this.retryAfter = retryAfter;
        this.trace = trace;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String holder() {
        return holder;
    }

    @Override
    public Duration retryAfter() {
        return retryAfter;
    }

    @Override
    public String trace() {
        return trace;
    }
}
