// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** Gives something back for which nobody waits. Its key is free for another hold once it is answered. */
final class Quiet extends Request {
    final Key key;
    private final String text;

    Quiet(String text, Key key, long deadline) {
        super(deadline);
        this.text = text;
        this.key = key;
    }

    @Override
    boolean survives() {
        return true;
    }

    @Override
    String line(Core core, long now) {
        return text;
    }

    @Override
    void answer(Core core, Line line, long now) {
        core.unused(key);
        finish(null, null);
    }

    @Override
    void again(Core core, long now) {
        deadline = now + Time.PATIENCE;
        super.again(core, now);
    }

    @Override
    void overdue(Core core) {
        deadline = Time.NEVER;
        if (core.resumable()) {
            core.park(this);
        } else {
            finish(null, null);
        }
    }

    @Override
    void sessionOver(Core core) {
        finish(null, null);
    }
}
