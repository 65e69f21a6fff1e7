// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

/** A lock that somebody else holds until this is closed. */
public interface Elsewhere extends AutoCloseable {
    @Override
    void close();
}
