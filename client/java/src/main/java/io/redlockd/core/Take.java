// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.DisconnectedException;
import io.redlockd.RedlockException;
import java.util.ArrayList;
import java.util.List;

/** LOCK, LOCKALL, LOCKANY, ACQUIRE or TAKE. Its result is a list of holds. */
public final class Take extends Request {
    /** A grant that took longer than this is asked about again before the caller sees it. */
    private static final long WAITED_LONG = 100 * Time.MS;

    final Terms terms;
    final List<Key> keys;
    private final String owner;
    private final long until;
    List<Hold> holds = List.of();
    boolean withdrawn;
    /** Why it waits for the next daemon. */
    private RedlockException refusal;

    Take(Terms terms, String owner, List<Key> keys, long now) {
        super(Time.plus(Time.plus(now, terms.maxWait()), Time.PATIENCE));
        this.terms = terms;
        this.owner = owner;
        this.keys = keys;
        this.until = Time.plus(now, terms.maxWait());
    }

    /** What was granted, once it has finished. */
    public List<Hold> holds() {
        return holds;
    }

    @Override
    boolean survives() {
        return true;
    }

    @Override
    String line(Core core, long now) {
        StringBuilder out = new StringBuilder(96).append(terms.verb()).append(' ').append(terms.words());
        if (terms.maxWait() == Time.NEVER) {
            out.append(" wait=forever");
        } else {
            long left = repeated ? until - now : terms.maxWait();
            if (left > 0) {
                out.append(" wait=").append(Words.duration(left));
            }
        }
        out.append(terms.fields());
        return terms.isJob() ? out.toString() : out.append(" owner=").append(owner).append(" count=1").toString();
    }

    // --- answers ---

    @Override
    void answer(Core core, Line line, long now) {
        if (line.kind.equals("OK")) {
            List<Hold> granted = new ArrayList<>(1);
            for (Line row : rows == null ? List.of(line) : rows) {
                granted.add(holdOf(core, row));
            }
            holds = granted;
            rows = null;
            granted(core, now);
        } else if (line.code.equals("DRAINING") && terms.maxWait() != 0 && core.resumable() && !withdrawn) {
            refusal = errorOf(line);
            deadline = until;
            core.park(this);
        } else {
            refused(core, line, now);
        }
    }

    private Hold holdOf(Core core, Line line) {
        long ttl = line.get("ttl_ms") != null ? line.nanos("ttl_ms") : terms.ttl() > 0 ? terms.ttl() : core.lease();
        Hold hold;
        if (terms.isJob()) {
            hold = new JobHold(line, ttl, core.session());
        } else {
            Key key = new Key(line.must("name"), owner);
            long fence = line.mustNumber("fence");
            hold = line.get("permit") == null ? new Hold(key, fence, ttl, core.session())
                    : new Permit(key, fence, ttl, core.session(), line.mustNumber("permit"));
        }
        hold.confirm(asked, line.mustNumber("valid_ms") * Time.MS);
        return hold;
    }

    /** Records what was granted, before the next line, which may be its loss. */
    private void granted(Core core, long now) {
        boolean slow = now - asked > WAITED_LONG;
        for (Hold hold : holds) {
            if (slow) { // its deadline may have passed: only CHECK tells a fresh one
                hold.until = Time.NEVER;
                hold.checkAt = Time.NEVER;
            }
            core.has(hold);
        }
        if (terms.verb().equals("LOCKANY")) {
            for (Key key : keys) {
                if (!key.equals(holds.get(0).key)) {
                    core.unused(key);
                }
            }
        }
        if (withdrawn) {
            giveBack(core, now);
        } else if (slow) {
            for (Hold hold : holds) {
                core.submit(new Check(hold, this, now + Time.PATIENCE), now);
            }
        } else {
            core.finish(this, holds, null);
        }
    }

    /** One of the grants was asked about again. When all were, the caller sees them; if one is not certain, none of them. */
    void checked(Core core, RedlockException error, long now) {
        if (finished()) {
            return;
        }
        if (error != null) {
            giveBack(core, now);
            core.finish(this, null, error);
        } else if (holds.stream().noneMatch(hold -> hold.checking)) {
            core.finish(this, holds, null);
        }
    }

    /** Frees what was granted and nobody wants. */
    void giveBack(Core core, long now) {
        for (Hold hold : holds) {
            core.returnQuietly(hold, now);
        }
    }

    private void refused(Core core, Line line, long now) {
        if (repeated && terms.verb().equals("LOCKALL")) { // it may have some of the names from before the cut
            giveUp(core, now);
        } else {
            keys.forEach(core::unused);
        }
        core.finish(this, null, errorOf(line));
    }

    private RedlockException errorOf(Line line) {
        return line.kind.equals("ERR") ? Codes.error(line, terms.text()) : Codes.refusal(line, terms);
    }

    // --- when nobody wants it any more, and when the connection breaks ---

    @Override
    void again(Core core, long now) {
        deadline = Time.plus(until, Time.PATIENCE);
        if (withdrawn) {
            giveUp(core, now);
        } else {
            super.again(core, now);
        }
    }

    /** Gives up the place in the queue, or what was granted, of a request whose answer was lost. A job comes back by its row of RESUME. */
    private void giveUp(Core core, long now) {
        String verb = terms.verb().equals("ACQUIRE") ? "RELEASE " : "UNLOCK ";
        for (Key key : keys) {
            core.submit(new Quiet(verb + Words.quote(key.name()) + " owner=" + key.owner() + " count=0", key, now + Time.PATIENCE), now);
        }
    }

    @Override
    void overdue(Core core) {
        core.finish(this, null, refusal != null ? refusal : new DisconnectedException(core.why()));
        withdrawn = true;
        if (core.resumable() && !tag.isEmpty()) {
            core.park(this);
        } else {
            keys.forEach(core::unused);
        }
    }

    @Override
    void sessionOver(Core core) {
        if (withdrawn && !finished()) {
            finish(null, null);
        }
    }
}
