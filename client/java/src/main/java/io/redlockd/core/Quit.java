// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** Ends the session. The daemon ends the connection after its answer, which is no loss of it. */
final class Quit extends Ask {
    Quit(long deadline) {
        super("QUIT", deadline);
    }

    @Override
    void answer(Core core, Line line, long now) {
        super.answer(core, line, now);
        core.close();
    }
}
