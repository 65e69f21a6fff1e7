// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Hold;
import io.redlockd.core.Words;
import io.redlockd.net.Engine;
import java.time.Duration;
import java.util.List;

/** A lock, several locks or a permit, held until {@link #close}: for try-with-resources. It is not bound to a thread, and not reentrant. */
public class HeldLock extends Held implements AutoCloseable {
    HeldLock(Engine engine, List<Hold> holds, LockOptions options) {
        super(engine, holds, options);
    }

    /**
     * Gives it back, once. An interrupted thread does not wait for the answer; the lock is given back in any case.
     *
     * @throws LockLostException it was lost before
     * @throws DisconnectedException the daemon did not answer within five seconds
     */
    @Override
    public void close() {
        give("");
    }

    /**
     * Gives it back, and leaves the name taken for a while.
     *
     * @param keep how long nobody gets it; zero: not at all
     * @param sync whether to wait until a quorum of stores has freed it
     * @throws LockLostException it was lost before
     */
    public void release(Duration keep, boolean sync) {
        give((keep.isZero() ? "" : " keep=" + Words.duration(keep.toNanos())) + (sync ? " sync=yes" : ""));
    }
}
