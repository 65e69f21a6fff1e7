// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

/** The fake. */
class FakeTest extends ServerTests {
    FakeTest() {
        super(RedlockExtension.fake());
    }
}
