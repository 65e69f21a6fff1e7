// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.DisconnectedException;
import io.redlockd.RedlockException;
import java.util.ArrayList;
import java.util.List;

/**
 * A request, from its call to its answer. It knows the line that it sends, what its answers mean, and what becomes of it when the connection breaks. It has no
 * clock and no socket: the core sends its line, and hands it the answer.
 */
public abstract class Request {
    /** Says that the caller may be told. result and error are written before. */
    private volatile boolean finished;
    private Object result;
    private RedlockException error;
    /** Belongs to the front end: the thread that waits, and whether it is called before the request has finished. */
    public volatile Thread waiter;
    public volatile boolean called;

    String tag = "";
    /** When the line was sent last. */
    long asked;
    /** When the answer is overdue. */
    long deadline;
    /** Whether it was sent over an earlier connection as well. */
    boolean repeated;
    /** The rows of the answer that have come; null: none. */
    List<Line> rows;

    Request(long deadline) {
        this.deadline = deadline;
    }

    /** Whether the caller may be told. */
    public final boolean finished() {
        return finished;
    }

    /** Its result, once it has finished. */
    public final Object result() {
        return result;
    }

    /** Why it failed, once it has finished; null: it did not. */
    public final RedlockException error() {
        return error;
    }

    final void finish(Object made, RedlockException wrong) {
        result = made;
        error = wrong;
        finished = true;
    }

    /** Whether it is sent again in the resumed session when its answer was lost. */
    boolean survives() {
        return false;
    }

    /** What is sent, without tag and line end. */
    abstract String line(Core core, long now);

    /** Takes in the answer. */
    abstract void answer(Core core, Line line, long now);

    /** Takes in a row of the answer. */
    void row(Line line) {
        if (rows == null) {
            rows = new ArrayList<>();
        }
        rows.add(line);
    }

    /** Sends it over the next connection: once more, if it was sent before. */
    void again(Core core, long now) {
        repeated = !tag.isEmpty();
        core.send(this, now);
    }

    /** No answer came in time, or the session is over. The core knows why. */
    void overdue(Core core) {
        core.finish(this, null, new DisconnectedException(core.why()));
    }

    /** The session was not resumed, and another one begins. A request that survives is sent in that. */
    void sessionOver(Core core) {
    }
}
