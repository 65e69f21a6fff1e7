// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

/** The daemon that REDLOCKD names. */
class DaemonTest extends ServerTests {
    DaemonTest() {
        super(RedlockExtension.daemon());
    }
}
