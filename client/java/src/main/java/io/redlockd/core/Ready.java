// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** Is finished when the session is there. Nothing is sent. */
public final class Ready extends Request {
    /** Waits until then at the longest. */
    public Ready(long deadline) {
        super(deadline);
    }

    @Override
    String line(Core core, long now) {
        throw new IllegalStateException();
    }

    @Override
    void answer(Core core, Line line, long now) {
        throw new IllegalStateException();
    }

    @Override
    void again(Core core, long now) {
        core.finish(this, null, null);
    }
}
