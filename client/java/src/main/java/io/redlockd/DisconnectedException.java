// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** There is no connection, it broke, or no answer came in time. The text names the address. */
public class DisconnectedException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /**
     * An exception.
     *
     * @param text what went wrong
     */
    public DisconnectedException(String text) {
        super(text, "");
    }
}
