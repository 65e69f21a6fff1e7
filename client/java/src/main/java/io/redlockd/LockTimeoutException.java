// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** The request waited, and its time ran out. */
public class LockTimeoutException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /** What was asked for. */
    private final String name;
    /** Who has it, or null. */
    private final String holder;
    /** What it gave as its trace, or null. */
    private final String trace;

    /**
     * An exception.
     *
     * @param text what went wrong
     * @param name what was asked for
     * @param holder who has it, or null
     * @param trace what the holder gave as its trace, or null
     */
    public LockTimeoutException(String text, String name, String holder, String trace) {
        super(text, "TIMEOUT");
        this.name = name;
        this.holder = holder;
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
    public String trace() {
        return trace;
    }
}
