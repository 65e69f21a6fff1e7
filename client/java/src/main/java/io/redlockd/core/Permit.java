// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** A permit of a semaphore. */
public final class Permit extends Hold {
    public final long permit;

    Permit(Key key, long fence, long ttl, int session, long permit) {
        super(key, fence, ttl, session);
        this.permit = permit;
    }

    @Override
    boolean isAt(Line line) {
        return super.isAt(line) && line.number("permit", permit) == permit;
    }

    @Override
    String check() {
        return super.check() + " permit=" + permit;
    }

    @Override
    String extend(String fields) {
        return super.extend(fields) + " permit=" + permit;
    }

    @Override
    String free(String fields) {
        return "RELEASE " + Words.quote(key.name()) + " owner=" + key.owner() + " permit=" + permit + " fence=" + fence + " count=0";
    }
}
