// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** Withdraws a request that waits. Its answer says nothing: that of the request does. */
final class Cancel extends Request {
    private final String of;

    Cancel(String of, long deadline) {
        super(deadline);
        this.of = of;
    }

    @Override
    String line(Core core, long now) {
        return "CANCEL " + of;
    }

    @Override
    void answer(Core core, Line line, long now) {
        finish(null, null);
    }

    @Override
    void overdue(Core core) {
        finish(null, null);
    }
}
