// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Extend;
import io.redlockd.core.Free;
import io.redlockd.core.Hold;
import io.redlockd.core.News;
import io.redlockd.core.Permit;
import io.redlockd.core.Request;
import io.redlockd.net.Engine;
import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Consumer;

/**
 * What this client holds and may lose: a lock, several locks, a permit or a job. Any thread may use it and give it back. One that is forgotten is not given
 * back: it stays held until its client is closed, and a warning is logged.
 */
public abstract class Held {
    private static final System.Logger LOG = System.getLogger("io.redlockd");
    private static final Cleaner CLEANER = Cleaner.create();

    private final Engine engine;
    private final List<Hold> holds;
    private final Ear ear;
    private volatile boolean released;

    /** Hears of the holds, for this object and its functions. Kept by this object alone, so that it hears while somebody refers to that. */
    private final class Ear implements Hold.Listener {
        private final List<Runnable> onLost = new ArrayList<>(0);
        private final List<Runnable> onRisk = new ArrayList<>(0);
        private boolean told;

        @Override
        public void hear(News news) {
            if (news.kind() == News.Kind.LOST) {
                lost();
            } else if (news.kind() == News.Kind.RISK) {
                synchronized (this) {
                    onRisk.forEach(engine::later);
                }
            }
        }

        synchronized void lost() {
            if (!told) {
                told = true;
                onLost.forEach(engine::later);
            }
        }

        synchronized void addLost(Runnable function) {
            onLost.add(function);
            if (told) {
                engine.later(function);
            }
        }

        synchronized void addRisk(Runnable function) {
            onRisk.add(function);
        }
    }

    Held(Engine engine, List<Hold> holds, LockOptions options) {
        this.engine = engine;
        this.holds = holds;
        this.ear = new Ear();
        if (options.onLost() != null) {
            ear.addLost(() -> options.onLost().accept(this));
        }
        if (options.onRisk() != null) {
            ear.addRisk(() -> options.onRisk().accept(this));
        }
        WeakReference<Hold.Listener> weak = new WeakReference<>(ear);
        for (Hold hold : holds) {
            hold.attach(weak);
            if (!hold.reason().isEmpty()) { // it was lost meanwhile
                ear.lost();
            }
        }
        CLEANER.register(this, new Forgotten(engine, holds));
    }

    /** Warns of what nobody refers to any more. */
    private record Forgotten(Engine engine, List<Hold> holds) implements Runnable {
        @Override
        public void run() {
            for (Hold hold : holds) {
                if (hold.alive() && !engine.isClosed()) {
                    LOG.log(System.Logger.Level.WARNING, "the lock " + hold.name() + " was not released: it stays held until its client is closed");
                }
            }
        }
    }

    /**
     * The name of the lock, the semaphore or the queue.
     *
     * @return the name; of several locks all names, with commas
     */
    public final String name() {
        return holds.size() == 1 ? holds.get(0).name() : String.join(", ", fences().keySet());
    }

    /**
     * The fencing token of this grant: pass it on with each write, so that the storage can refuse smaller ones.
     *
     * @return the token; of several locks that of the first; of a job without a lock 0
     */
    public final long fence() {
        return holds.get(0).fence;
    }

    /**
     * The fencing tokens by name.
     *
     * @return one for each lock
     */
    public final Map<String, Long> fences() {
        Map<String, Long> found = new LinkedHashMap<>();
        holds.forEach(hold -> found.put(hold.name(), hold.fence));
        return found;
    }

    /**
     * The slot of a permit, from 0 on.
     *
     * @return the slot; empty if this is no permit
     */
    public final OptionalInt permit() {
        return holds.get(0) instanceof Permit permit ? OptionalInt.of((int) permit.permit) : OptionalInt.empty();
    }

    /**
     * For how long this may be relied on, by the local clock. Asks nobody.
     *
     * @return the time that is left; zero: not at all
     */
    public final Duration remaining() {
        return Duration.ofNanos(left());
    }

    private long left() {
        if (released) {
            return 0;
        }
        long now = engine.look();
        long least = Long.MAX_VALUE;
        for (Hold hold : holds) {
            least = Math.min(least, hold.left(now));
        }
        return least;
    }

    /**
     * Whether this is held and may be relied on at this moment. Asks nobody.
     *
     * @return false: it is lost, was given back, or its time is over
     */
    public final boolean isHeld() {
        return left() > 0;
    }

    /**
     * Whether this was lost.
     *
     * @return true from the loss on
     */
    public final boolean isLost() {
        return !reason().isEmpty();
    }

    /**
     * Why it was lost; see {@link LockLostException#reason}.
     *
     * @return the reason, or "" if it was not lost
     */
    public final String reason() {
        for (Hold hold : holds) {
            if (!hold.reason().isEmpty()) {
                return hold.reason();
            }
        }
        return "";
    }

    /**
     * Asks the daemon, right before an effect that cannot be undone. If too little time is left, the lease is renewed first.
     *
     * @param effect how long the effect takes
     * @return for how long this may be relied on, which is longer than that
     * @throws LockLostException it is lost, or not certain for so long
     * @throws DisconnectedException the daemon does not answer
     */
    public final Duration ensure(Duration effect) {
        if (released) {
            throw new LockLostException(name(), "released", fence());
        }
        for (Hold hold : holds) {
            engine.call((core, now) -> core.check(hold, now));
        }
        if (left() <= effect.toNanos() && !(this instanceof Job)) {
            extend(Duration.ZERO);
        }
        long left = left();
        if (left <= effect.toNanos()) {
            throw new LockLostException(name(), isLost() ? reason() : "short", fence());
        }
        return Duration.ofNanos(left);
    }

    /**
     * Renews the lease now. That is rarely needed: the daemon renews it by itself.
     *
     * @param ttl the new length of the lease; zero: as it is
     * @return for how long this may be relied on
     * @throws LockLostException it is lost
     * @throws RedlockException it could not be renewed; what is left of the lease stays
     */
    public final Duration extend(Duration ttl) {
        for (Hold hold : holds) {
            Engine.Begin<Extend> begin = (core, now) -> core.extend(hold, ttl.toNanos(), now);
            engine.call(begin);
        }
        return remaining();
    }

    /**
     * Has a function called when this is lost, in a thread of the client; at once if that has happened already. It should be quick, and may end the work that
     * relies on the lock.
     *
     * @param function what is called
     */
    public final void onLost(Runnable function) {
        ear.addLost(function);
    }

    /**
     * The same, for a function that wants to know what was lost.
     *
     * @param function what is called, with this
     */
    public final void onLost(Consumer<? super Held> function) {
        ear.addLost(() -> function.accept(this));
    }

    /** Whether it was given back. */
    final boolean isReleased() {
        return released;
    }

    /**
     * Gives all back, once. LockLostException: it was lost before. An interrupted thread does not wait for the answers; the requests go out in any case.
     */
    final void give(String extra) {
        if (released) {
            return;
        }
        released = true;
        RedlockException wrong = null;
        List<Request> requests = new ArrayList<>(1);
        LockLostException lost = engine.start((core, now) -> {
            LockLostException before = null;
            for (Hold hold : holds) {
                before = before == null && !hold.reason().isEmpty() ? hold.lost() : before;
                Free request = core.free(hold, extra, now);
                if (request != null) {
                    requests.add(request);
                }
            }
            return before;
        });
        for (Request request : requests) {
            try {
                engine.finish(request);
            } catch (RedlockException failed) {
                wrong = wrong == null ? failed : wrong;
            }
        }
        if (lost != null) {
            throw lost;
        }
        if (wrong != null) {
            throw wrong;
        }
    }

    @Override
    public String toString() {
        String state = isLost() ? "lost, " + reason() : released ? "given back" : "held, fence " + fence();
        return getClass().getSimpleName() + " " + name() + ", " + state;
    }
}
