// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.BusyException;
import io.redlockd.DeadlockException;
import io.redlockd.DeniedException;
import io.redlockd.DrainingException;
import io.redlockd.LockTimeoutException;
import io.redlockd.NoQuorumException;
import io.redlockd.RedlockException;
import java.time.Duration;

/** Answers as exceptions. */
public final class Codes {
    private Codes() {
    }

    /** The exception for an answer ERR. A code of a later version is a plain RedlockException. */
    static RedlockException error(Line line, String about) {
        return error(line.code, about + ": " + line.code + " " + Words.text(line.text));
    }

    static RedlockException error(String code, String text) {
        return switch (code) {
            case "QUORUM", "UNAVAILABLE" -> new NoQuorumException(text, code);
            case "DEADLOCK" -> new DeadlockException(text);
            case "DENIED", "AUTH" -> new DeniedException(text, code);
            case "DRAINING" -> new DrainingException(text);
            default -> new RedlockException(text, code);
        };
    }

    /** The exception for BUSY or TIMEOUT of something that was to be taken. */
    static RedlockException refusal(Line line, Terms terms) {
        String names = terms.text();
        String name = line.get("name") == null ? names : Words.text(line.get("name"));
        String holder = line.get("holder") == null ? null : Words.text(line.get("holder"));
        String trace = line.get("trace") == null ? null : Words.text(line.get("trace"));
        String who = holder == null ? "" : ", held by " + holder;
        if (line.kind.equals("TIMEOUT") || terms.maxWait() != 0) {
            String within = terms.maxWait() == Time.NEVER ? "" : " within " + terms.maxWait() / Time.MS + " ms";
            return new LockTimeoutException(names + ": not granted" + within + who, name, holder, trace);
        }
        return new BusyException(names + " is busy" + who, name, holder, retry(line), trace);
    }

    /** retry_ms, or null. */
    public static Duration retry(Line line) {
        long ms = line.number("retry_ms", -1);
        return ms < 0 ? null : Duration.ofMillis(ms);
    }
}
