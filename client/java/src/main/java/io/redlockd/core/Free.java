// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.LockLostException;
import io.redlockd.RedlockException;

/** Gives a hold back: UNLOCK, RELEASE, DONE or RETRY. It is not withdrawn with its caller, and has five seconds of its own. */
public final class Free extends Request {
    private final Hold hold;
    private final String extra;

    Free(Hold hold, String extra, long deadline) {
        super(deadline);
        this.hold = hold;
        this.extra = extra;
    }

    @Override
    boolean survives() {
        return true;
    }

    @Override
    String line(Core core, long now) {
        return hold.free(extra);
    }

    @Override
    void answer(Core core, Line line, long now) {
        RedlockException error = null;
        core.forget(hold);
        if (line.kind.equals("ERR")) {
            if (!line.code.equals("LOST") && !line.code.equals("NOTHELD")) {
                error = Codes.error(line, hold.name());
                if (extra.contains(" ")) { // a keep or a delay that is too long; the daemon would renew what nobody knows of
                    core.freeQuietly(hold, now);
                }
            } else if (!(repeated && line.code.equals("NOTHELD"))) { // the first was carried out
                error = new LockLostException(hold.name(), hold.reason.isEmpty() ? "evicted" : hold.reason, hold.fence);
            }
        }
        core.finish(this, null, error);
    }

    @Override
    void overdue(Core core) {
        if (core.resumable()) { // the caller is told, and the lock is freed when the session is back
            super.overdue(core);
            core.park(this);
        } else {
            sessionOver(core);
        }
    }

    @Override
    void sessionOver(Core core) {
        core.forget(hold); // the end of the session has freed it, or will
        core.finish(this, null, null);
    }
}
