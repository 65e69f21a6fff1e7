// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** The daemon is stopping and grants nothing new. */
public class DrainingException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /**
     * An exception.
     *
     * @param text what went wrong
     */
    public DrainingException(String text) {
        super(text, "DRAINING");
    }
}
