// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import io.redlockd.RedlockException;
import io.redlockd.core.Ask;
import io.redlockd.core.Core;
import io.redlockd.core.News;
import io.redlockd.core.Ready;
import io.redlockd.core.Request;
import io.redlockd.core.Settings;
import io.redlockd.core.Time;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One connection for all threads of a process. The core decides; this moves bytes, and tells the threads.
 *
 * <p>mutex guards the core and the connection, and is never held over a call that waits. One thread at a time has the reader's part: it selects, without the
 * mutex. A platform thread that waits for an answer takes that part if it is free, so that a request of a lone thread costs no change of threads; else it parks
 * until its request has finished or the part is free. Virtual threads only park. The keeper, a daemon thread, has the part whenever nobody else has had it for
 * 10 ms, and whenever virtual threads wait. A daemon thread of its own opens each connection, and another one calls the functions of users.
 */
public final class Engine {
    private static final System.Logger LOG = System.getLogger("io.redlockd");
    private static final int PIECE = 65536;
    /** For how long nobody may read before the keeper does: a loss is told that much later at most. */
    private static final long IDLE = 10 * Time.MS;
    /** When the keeper has found somebody else reading so often in a row, the reader calls it when it leaves. */
    private static final int PARKED = 3;

    /** Has the core submit a request, and returns it. */
    @FunctionalInterface
    public interface Begin<R> {
        /** Under the mutex. */
        R begin(Core core, long now);
    }

    private final ReentrantLock mutex = new ReentrantLock();
    private final Condition bell = mutex.newCondition();
    private final Core core;
    private final BootClock clock;
    private final Dialer dialer;
    private final long timeout;
    private final Selector selector;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(PIECE);
    private final Teller teller = new Teller();
    private final Thread hook;
    private Link link;
    /** Who has the reader's part, and when it looks up by itself. */
    private Thread reader;
    private long until;
    /** Those who wait for an answer and for the reader's part, and how many of them are virtual. */
    private final Set<Request> waiting = new LinkedHashSet<>();
    private int virtual;
    /** Whether a platform thread has found the keeper reading. */
    private boolean crowd;
    private Thread keeper;
    private Thread dialing;
    /** How often in a row the keeper has found somebody reading. */
    private int busy;
    private volatile boolean closed;

    /** An engine that has no connection yet. timeout: nanoseconds that an attempt to connect may take. */
    public Engine(Settings settings, Place place, TlsFiles files, BootClock clock, long timeout) {
        this.core = new Core(settings);
        this.clock = clock;
        this.timeout = timeout;
        this.dialer = new Dialer(place, files, Math.max(1, timeout / Time.MS));
        try {
            this.selector = Selector.open();
        } catch (IOException none) {
            throw new UncheckedIOException(none);
        }
        this.hook = settings.grace() > 0 ? new Thread(this::close, "redlockd-exit") : null;
        if (hook != null) { // a session with grace would outlive this process, and others would wait for its locks
            Runtime.getRuntime().addShutdownHook(hook);
        }
    }

    /** The time now, after a look at the other clock: if this one has stood still, nothing is relied on until the daemon was asked. */
    public long look() {
        if (clock.look()) {
            mutex.lock();
            try {
                doubt();
            } finally {
                mutex.unlock();
            }
        }
        return clock.now();
    }

    private void doubt() {
        core.doubt(clock.now());
        core.tick(clock.now());
        settle();
        selector.wakeup();
    }

    // --- requests, in the thread of the caller ---

    /** Has begin submit a request, and waits until it has finished; an interrupt does not end the wait. Throws its error. */
    public <R extends Request> R call(Begin<R> begin) {
        R request = start(begin);
        boolean interrupted = false;
        while (request != null && !await(request)) {
            interrupted = true;
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return checked(request);
    }

    /** The same, but an interrupt withdraws the request. */
    public <R extends Request> R callInterruptibly(Begin<R> begin) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        R request = start(begin);
        if (!await(request)) {
            if (drop(request)) {
                throw new InterruptedException();
            }
            Thread.currentThread().interrupt();
        }
        return checked(request);
    }

    /** Waits for a request that was started. An interrupt ends the wait, stays set, and leaves the request to go on. Throws its error. */
    public void finish(Request request) {
        if (await(request)) {
            checked(request);
        } else {
            Thread.currentThread().interrupt();
        }
    }

    private static <R extends Request> R checked(R request) {
        if (request != null && request.error() != null) {
            RedlockException error = request.error();
            error.setStackTrace(Thread.currentThread().getStackTrace()); // it was made by whoever read the answer
            throw error;
        }
        return request;
    }

    /** Has begin submit requests, sends them, and waits for nothing. */
    public <R> R start(Begin<R> begin) {
        mutex.lock();
        try {
            hire();
            long now = clock.now();
            core.tick(now);
            R made = begin.begin(core, now);
            settle();
            if (reader != null && reader != Thread.currentThread() && (core.wake() < until || link != null && link.unsent())) {
                selector.wakeup();
            }
            return made;
        } finally {
            mutex.unlock();
        }
    }

    /** The caller has left. False: the request has finished. */
    private boolean drop(Request request) {
        return start((core, now) -> {
            if (request.finished()) {
                return false;
            }
            core.drop(request, now);
            return true;
        });
    }

    /** Waits until a request has finished. False: the thread was interrupted, and is so no more. */
    private boolean await(Request request) {
        boolean reads = !VirtualThreads.isCurrent();
        while (!request.finished()) {
            mutex.lock();
            try {
                if (request.finished()) {
                    return true;
                }
                if (reader == null && reads) {
                    read(request);
                    if (!request.finished() && Thread.interrupted()) {
                        return false;
                    }
                    continue;
                }
                request.called = false;
                request.waiter = Thread.currentThread();
                waiting.add(request);
                virtual += reads ? 0 : 1;
                if (reader == null) {
                    ringKeeper();
                } else {
                    crowd |= reads;
                }
            } finally {
                mutex.unlock();
            }
            if (!park(request, reads)) {
                return false;
            }
        }
        return true;
    }

    /** Waits for an answer, or for the reader's part. False: interrupted. */
    private boolean park(Request request, boolean reads) {
        while (!request.finished() && !request.called) {
            LockSupport.park(this);
            if (Thread.interrupted()) {
                mutex.lock();
                try {
                    leave(request);
                    if (!request.finished() && reader == null) {
                        passOn(); // it may have been this thread's turn
                    }
                    if (!request.finished()) {
                        return false;
                    }
                    Thread.currentThread().interrupt();
                } finally {
                    mutex.unlock();
                }
                return true;
            }
        }
        if (!reads) {
            mutex.lock();
            try {
                leave(request);
            } finally {
                mutex.unlock();
            }
        }
        return true;
    }

    /** The thread of a request waits no more. */
    private void leave(Request request) {
        if (waiting.remove(request) && VirtualThreads.is(request.waiter)) {
            virtual--;
        }
    }

    // --- the reader's part; the mutex is held, but for the select ---

    /** Reads until the request has finished, or (null: the keeper) until the part is wanted elsewhere; also until this thread is interrupted. */
    private void read(Request request) {
        Thread me = Thread.currentThread();
        reader = me;
        try {
            while (reader == me && !closed) {
                core.tick(clock.now());
                settle();
                if (request != null ? request.finished() : isWantedElsewhere()) {
                    return;
                }
                until = core.wake();
                long pause = until == Time.NEVER ? 0 : Math.max(1, (until - clock.now() + Time.MS - 1) / Time.MS);
                boolean due = until <= clock.now();
                mutex.unlock();
                try {
                    select(pause, due);
                } finally {
                    mutex.lock();
                }
                if (request == null && clock.look()) {
                    doubt();
                }
                receive();
                settle();
                if (request != null && me.isInterrupted()) {
                    return;
                }
            }
        } finally {
            until = 0;
            reader = null;
            passOn();
        }
    }

    private boolean isWantedElsewhere() {
        return crowd && virtual == 0 || isDialDue();
    }

    private boolean isDialDue() {
        return dialing == null && core.dialAt() <= clock.now();
    }

    private void select(long millis, boolean due) {
        try {
            if (due) {
                selector.selectNow();
            } else {
                selector.select(millis);
            }
            selector.selectedKeys().clear();
        } catch (IOException broken) {
            LOG.log(System.Logger.Level.WARNING, "select", broken);
        } catch (ClosedSelectorException closing) {
            return;
        }
    }

    /** The part is free: for the last of those who wait, who is likely to wait longest, else for the keeper. */
    private void passOn() {
        Request last = null;
        for (Request request : waiting) {
            last = VirtualThreads.is(request.waiter) ? last : request;
        }
        if (last != null) {
            waiting.remove(last);
            last.called = true;
            LockSupport.unpark(last.waiter);
        } else if (virtual > 0 || busy >= PARKED) {
            ringKeeper();
        }
    }

    private void receive() {
        while (link != null && core.online()) {
            int count;
            try {
                count = link.read(buffer.clear());
            } catch (IOException broken) {
                core.disconnected(textOf(broken), clock.now());
                return;
            }
            if (count < 0) {
                core.disconnected("the daemon closed the connection", clock.now());
            } else if (count > 0) {
                core.receive(buffer.flip(), clock.now());
            }
            if (count <= 0 || count < PIECE / 2 && link instanceof PlainLink) {
                return;
            }
        }
    }

    /** What follows from what the core was told: closes, sends, and tells. */
    private void settle() {
        if (link != null && !core.online()) {
            dropLink();
        } else if (link != null) {
            flush();
        }
        for (Request request : core.takeDone()) {
            leave(request);
            if (request.waiter != null) {
                LockSupport.unpark(request.waiter);
            }
        }
        for (News news : core.takeNews()) {
            if (news.kind() == News.Kind.DOWN) {
                LOG.log(System.Logger.Level.DEBUG, news.detail());
            } else if (news.hold() != null) {
                news.hold().tell(news);
            }
        }
        if (core.dialAt() < Time.NEVER && dialing == null) {
            ringKeeper();
        }
    }

    private void flush() {
        byte[] bytes = core.takeOutput();
        if (bytes == null && !link.unsent()) {
            return;
        }
        boolean before = link.unsent();
        try {
            link.write(bytes == null ? new byte[0] : bytes);
        } catch (IOException broken) {
            core.disconnected(textOf(broken), clock.now());
            settle();
            return;
        }
        if (before != link.unsent()) {
            watch();
        }
    }

    /** Selects the connection that is there now. */
    private void watch() {
        try {
            link.channel().register(selector, SelectionKey.OP_READ | (link.unsent() ? SelectionKey.OP_WRITE : 0));
        } catch (IOException gone) {
            core.disconnected(textOf(gone), clock.now());
        }
    }

    private void dropLink() {
        link.close();
        link = null;
        selector.wakeup(); // a key that was cancelled is closed by the next select
    }

    private static String textOf(IOException error) {
        return error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
    }

    /** Has the thread for functions of users call one, without the mutex. */
    public void later(Runnable task) {
        teller.call(task);
    }

    // --- the keeper ---

    private void hire() {
        if (keeper == null && !closed) {
            keeper = new Thread(this::keep, "redlockd");
            keeper.setDaemon(true);
            keeper.start();
        }
    }

    private void ringKeeper() {
        busy = 0;
        bell.signal();
        if (reader != null && reader == keeper) {
            selector.wakeup();
        }
    }

    private void keep() {
        mutex.lock();
        try {
            while (!closed) {
                if (clock.look()) {
                    doubt();
                }
                if (isDialDue()) {
                    core.dialing();
                    dialing = new Thread(this::dial, "redlockd-dial");
                    dialing.setDaemon(true);
                    dialing.start();
                }
                if (reader == null) {
                    busy = 0;
                    crowd = false;
                    read(null);
                } else {
                    busy++;
                }
                rest();
            }
        } finally {
            mutex.unlock();
        }
    }

    /** Waits until it is time for another turn. */
    private void rest() {
        if (closed || isDialDue() || reader == null && virtual > 0) {
            return;
        }
        long nanos = busy < PARKED ? IDLE : Time.SECOND;
        if (dialing == null && core.dialAt() < Time.NEVER) {
            nanos = Math.min(nanos, Math.max(0, core.dialAt() - clock.now()));
        }
        try {
            bell.awaitNanos(nanos);
        } catch (InterruptedException mistake) {
            LOG.log(System.Logger.Level.DEBUG, "the keeper was interrupted", mistake);
        }
    }

    private void dial() {
        Link made = null;
        String why = "";
        try {
            made = dialer.dial();
        } catch (IOException | RuntimeException wrong) {
            why = wrong instanceof IOException error ? textOf(error) : wrong.toString();
        }
        mutex.lock();
        try {
            dialing = null;
            if (closed || !core.isWanted()) {
                core.notWanted();
                if (made != null) {
                    made.close();
                }
            } else if (made == null) {
                core.notConnected(why, clock.now());
            } else {
                link = made;
                watch();
                core.connected(clock.now());
            }
            settle();
            ringKeeper();
            selector.wakeup();
        } finally {
            mutex.unlock();
        }
    }

    // --- begin and end ---

    /** Waits until the session is there. */
    public void open() throws InterruptedException {
        callInterruptibly((core, now) -> core.submit(new Ready(now + timeout + Time.PATIENCE), now));
    }

    /** Whether close() was called. */
    public boolean isClosed() {
        return closed;
    }

    /** Ends the session, and waits a second at most until the daemon has read that. */
    public void close() {
        if (closed) {
            return;
        }
        Ask quit = start((core, now) -> core.quit(now));
        boolean interrupted = false;
        while (quit != null && !await(quit)) {
            interrupted = true;
        }
        mutex.lock();
        try {
            closed = true;
            core.close();
            settle();
            if (dialing != null) {
                dialing.interrupt();
            }
            bell.signalAll();
            selector.wakeup();
        } finally {
            mutex.unlock();
        }
        end();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void end() {
        teller.end();
        try {
            selector.close();
        } catch (IOException gone) {
            LOG.log(System.Logger.Level.DEBUG, "close", gone);
        }
        if (hook != null && Thread.currentThread() != hook) {
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException exiting) { // the hook runs, and finds this closed
                return;
            }
        }
    }
}
