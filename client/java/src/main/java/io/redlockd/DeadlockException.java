// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** The request would wait for somebody who waits for this thread. What is held stays held. */
public class DeadlockException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /**
     * An exception.
     *
     * @param text what went wrong
     */
    public DeadlockException(String text) {
        super(text, "DEADLOCK");
    }
}
