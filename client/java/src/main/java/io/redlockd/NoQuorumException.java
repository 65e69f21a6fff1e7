// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** Too few stores can be used, or none. */
public class NoQuorumException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /**
     * An exception.
     *
     * @param text what went wrong
     * @param code the code of the daemon
     */
    public NoQuorumException(String text, String code) {
        super(text, code);
    }
}
