// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/** Is closed for a while. */
final class Gate {
    private volatile long opens = System.nanoTime();

    void close(Duration time) {
        opens = System.nanoTime() + time.toNanos();
    }

    /** Waits until it is open. */
    void await() {
        for (long left = opens - System.nanoTime(); left > 0; left = opens - System.nanoTime()) {
            LockSupport.parkNanos(this, left);
        }
    }
}
