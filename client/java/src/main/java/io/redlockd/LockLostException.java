// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

/** The lock cannot be relied on any more. */
public class LockLostException extends RedlockException {
    private static final long serialVersionUID = 1L;

    /** What was lost. */
    private final String name;
    /** Why. */
    private final String reason;
    /** The fencing token of the grant. */
    private final long fence;

    /**
     * An exception.
     *
     * @param name what was lost
     * @param reason why; see {@link #reason}
     * @param fence the fencing token of the grant
     */
    public LockLostException(String name, String reason, long fence) {
        super(reason.equals("short") ? "the lock " + name + " is not certain for so long" : "the lock " + name + " is lost: " + reason, "LOST");
        this.name = name;
        this.reason = reason;
        this.fence = fence;
    }

    @Override
    public String name() {
        return name;
    }

    /**
     * Why it is lost: the reason of the daemon (quorum, expired, evicted, broken, idle), or one of the client. "expired": no answer came before the deadline;
     * "disconnected": the connection broke without grace; "closed": the client was closed; "released": it was given back; "short", only from
     * ensure(): it is held, but not for so long.
     *
     * @return the reason
     */
    public String reason() {
        return reason;
    }

    /**
     * The fencing token of the grant that was lost.
     *
     * @return the token
     */
    public long fence() {
        return fence;
    }
}
