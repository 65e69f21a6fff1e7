// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.DeniedException;
import java.util.List;

/** A request that comes before all others of a connection. */
abstract class Greeting extends Request {
    private final String text;

    Greeting(String text, long deadline) {
        super(deadline);
        this.text = text;
    }

    /** It was answered OK. */
    abstract void accepted(Core core, Line line, long now);

    /** It was answered ERR. */
    abstract void declined(Core core, Line line, long now);

    @Override
    final String line(Core core, long now) {
        return text;
    }

    @Override
    final void answer(Core core, Line line, long now) {
        finish(null, null);
        if (line.kind.equals("OK")) {
            accepted(core, line, now);
        } else {
            declined(core, line, now);
        }
    }

    @Override
    final void overdue(Core core) {
        finish(null, null);
    }

    /** AUTH. */
    static final class Auth extends Greeting {
        Auth(Settings settings, long deadline) {
            super("AUTH " + Words.quote(settings.user()) + " " + Words.quote(settings.secret()), deadline);
        }

        @Override
        void accepted(Core core, Line line, long now) {
            core.greet(now);
        }

        @Override
        void declined(Core core, Line line, long now) {
            if (line.code.equals("LIMIT")) { // many sessions of this user come at once: a later attempt is verified
                core.disconnected("AUTH: " + line.code + " " + Words.text(line.text), now);
                return;
            }
            String text = core.settings.address() + ": the daemon does not accept the user " + Words.text(core.settings.user()) + ": " + Words.text(line.text);
            core.refused(new DeniedException(text, line.code));
        }
    }

    /** HELLO. */
    static final class Hello extends Greeting {
        Hello(Settings settings, long grace, long deadline) {
            super("HELLO 1" + field("name", settings.label() == null ? null : Words.quote(settings.label()))
                    + field("heartbeat", settings.heartbeat() > 0 ? Words.duration(settings.heartbeat()) : null)
                    + field("grace", grace > 0 ? Words.duration(grace) : null), deadline);
        }

        private static String field(String name, String value) {
            return value == null ? "" : " " + name + "=" + value;
        }

        @Override
        void accepted(Core core, Line line, long now) {
            core.begun(line, now);
        }

        @Override
        void declined(Core core, Line line, long now) {
            if (!core.humbler(line, now)) {
                core.refused(Codes.error(line, core.settings.address()));
            }
        }
    }

    /** RESUME. */
    static final class Resume extends Greeting {
        Resume(String id, String secret, long deadline) {
            super("RESUME " + id + " " + secret, deadline);
        }

        @Override
        void accepted(Core core, Line line, long now) {
            core.resumed(rows == null ? List.of() : rows, line, asked, now);
        }

        @Override
        void declined(Core core, Line line, long now) {
            switch (line.code) {
                case "NOTFOUND", "UNKNOWN", "ARG" -> core.gone(now);
                default -> core.disconnected("RESUME: " + line.code + " " + Words.text(line.text), now);
            }
        }
    }
}
