// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import java.util.List;

/** Any line of the protocol. Its result is the last line of the answer. */
public class Ask extends Request {
    final String text;

    /** A request that is not sent again when its answer was lost. */
    public Ask(String text, long deadline) {
        super(deadline);
        this.text = text;
    }

    /** The rows of the answer. */
    public final List<Line> rows() {
        return rows == null ? List.of() : rows;
    }

    /** The last line of the answer. */
    public final Line last() {
        return (Line) result();
    }

    @Override
    String line(Core core, long now) {
        return text;
    }

    @Override
    void answer(Core core, Line line, long now) {
        String verb = text.indexOf(' ') < 0 ? text : text.substring(0, text.indexOf(' '));
        core.finish(this, line, line.kind.equals("ERR") ? Codes.error(line, verb) : null);
    }

    /** A request that may be sent twice, as DEFER with an id may. */
    public static final class Repeatable extends Ask {
        /** A request that is sent again when its answer was lost. */
        public Repeatable(String text, long deadline) {
            super(text, deadline);
        }

        @Override
        boolean survives() {
            return true;
        }
    }
}
