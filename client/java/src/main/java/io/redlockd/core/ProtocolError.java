// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** The peer sent what no redlockd sends. */
public final class ProtocolError extends RuntimeException {
    private static final long serialVersionUID = 1L;

    ProtocolError(String text) {
        super(text);
    }

    ProtocolError(String text, Throwable cause) {
        super(text, cause);
    }
}
