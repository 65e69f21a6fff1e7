// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.DisconnectedException;
import io.redlockd.RedlockException;

/** CHECK, for the keeper, for a caller, or for a grant that waited (its parent). */
public class Check extends Request {
    final Hold hold;
    private final Take parent;

    Check(Hold hold, Take parent, long deadline) {
        super(deadline);
        this.hold = hold;
        this.parent = parent;
        hold.checking = true;
    }

    @Override
    final boolean survives() {
        return true;
    }

    @Override
    String line(Core core, long now) {
        return hold.check();
    }

    @Override
    void answer(Core core, Line line, long now) {
        RedlockException error = null;
        if (line.kind.equals("OK") && hold.isAt(line)) {
            hold.confirm(asked, line.nanos("valid_ms"));
            core.relieve(hold, now);
        } else if (line.kind.equals("OK") || line.code.equals("LOST") || line.code.equals("NOTHELD")) {
            core.lose(hold, "evicted");
        } else {
            hold.checkAt = now + hold.ttl / 3; // the stores do not answer, or the daemon has no time: the deadline stays
            error = Codes.error(line, hold.name());
        }
        done(core, now, error);
    }

    /** Tells whoever asked. */
    private void done(Core core, long now, RedlockException error) {
        hold.checking = false;
        RedlockException wrong = error == null && !hold.reason.isEmpty() ? hold.lost() : error;
        core.finish(this, hold, wrong);
        if (parent != null) {
            parent.checked(core, wrong, now);
        }
    }

    @Override
    void overdue(Core core) {
        done(core, core.time(), new DisconnectedException(core.why()));
    }

    @Override
    void sessionOver(Core core) {
        done(core, core.time(), null);
    }
}
