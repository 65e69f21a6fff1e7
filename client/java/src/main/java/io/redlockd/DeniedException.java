// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** The daemon does not let this peer, or this user, do that. */
public class DeniedException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /**
     * An exception.
     *
     * @param text what went wrong
     * @param code the code of the daemon
     */
    public DeniedException(String text, String code) {
        super(text, code);
    }
}
