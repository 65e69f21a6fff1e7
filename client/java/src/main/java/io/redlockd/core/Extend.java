// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** EXTEND. */
public final class Extend extends Check {
    private final long ttl;

    /** ttl in nanoseconds; 0: as it is. */
    public Extend(Hold hold, long ttl, long deadline) {
        super(hold, null, deadline);
        this.ttl = ttl;
    }

    @Override
    String line(Core core, long now) {
        if (ttl > 0 && ttl < hold.ttl) { // whatever is answered, the shorter lease counts from here
            hold.until = Math.min(hold.until, now + Math.max(0, ttl / 100 * 99 - 3 * Time.MS));
            core.wakeBy(hold.until);
        }
        return hold.extend(ttl > 0 ? " ttl=" + Words.duration(ttl) : "");
    }

    @Override
    void answer(Core core, Line line, long now) {
        if (line.kind.equals("OK") && ttl > 0) {
            hold.ttl = ttl;
        }
        super.answer(core, line, now);
    }
}
