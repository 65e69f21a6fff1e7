// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Hold;
import io.redlockd.net.Engine;
import java.util.List;

/** A term of a leader: a lock that is held until {@link #close}. Its end by a loss is no error: the next term is campaigned for. */
public final class Term extends HeldLock {
    Term(Engine engine, List<Hold> holds, LockOptions options) {
        super(engine, holds, options);
    }

    /** Ends the term. */
    @Override
    public void close() {
        try {
            super.close();
        } catch (LockLostException over) {
            return;
        }
    }
}
