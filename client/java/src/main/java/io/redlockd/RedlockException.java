// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.time.Duration;

/**
 * The daemon refused a request, or something else went wrong with it. The subclasses say what; a code that this library does not know is a plain
 * RedlockException. Each text names the lock, or the address of the daemon, and never a secret.
 */
public class RedlockException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The code of the daemon. */
    private final String code;

    /**
     * An exception.
     *
     * @param text what went wrong
     * @param code the word of ERROR CODES in redlock-protocol(7), or "" if the daemon said nothing
     */
    public RedlockException(String text, String code) {
        super(text);
        this.code = code;
    }

    /**
     * The word of ERROR CODES in redlock-protocol(7).
     *
     * @return the code, or "" if the daemon said nothing
     */
    public String code() {
        return code;
    }

    /**
     * The lock, semaphore or rate limit that this is about.
     *
     * @return its name, or "" if there is none
     */
    public String name() {
        return "";
    }

    /**
     * Who has it.
     *
     * @return what the daemon says of the holder, or null if that is not known
     */
    public String holder() {
        return null;
    }

    /**
     * By what a span of the holder is found.
     *
     * @return the traceparent that the holder gave, or null
     */
    public String trace() {
        return null;
    }

    /**
     * When to ask again.
     *
     * @return the time from now, or null if that is not known
     */
    public Duration retryAfter() {
        return null;
    }
}
