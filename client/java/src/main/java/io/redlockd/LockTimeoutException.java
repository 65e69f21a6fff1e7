// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** The request waited, and its time ran out. */
public class LockTimeoutException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /** What was asked for. */
    private final String name;
    /** Who has it, or null. */
    private final String holder;

    /**
     * An exception.
     *
     * @param text what went wrong
     * @param name what was asked for
     * @param holder who has it, or null
     */
    public LockTimeoutException(String text, String name, String holder) {
        super(text, "TIMEOUT");
        this.name = name;
        this.holder = holder;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String holder() {
        return holder;
    }
}
