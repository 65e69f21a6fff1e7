// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Ask;
import io.redlockd.core.Codes;
import io.redlockd.core.Hold;
import io.redlockd.core.Line;
import io.redlockd.core.Settings;
import io.redlockd.core.Take;
import io.redlockd.core.Terms;
import io.redlockd.core.Time;
import io.redlockd.core.Words;
import io.redlockd.net.BootClock;
import io.redlockd.net.Engine;
import io.redlockd.net.Place;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * A session of redlockd. One client is enough for a process: all its threads, virtual ones too, may use it at once, over one connection.
 *
 * <p>Durations of a wait: zero does not wait. All that goes wrong is a {@link RedlockException}; methods that wait also throw InterruptedException, and leave
 * no lock and no place in a queue behind then.
 */
public final class RedlockClient implements AutoCloseable {
    private final Engine engine;
    private final Seats seats = new Seats();
    private final Consumer<? super Held> onLost;
    private final Consumer<? super Held> onRisk;
    private final String address;

    RedlockClient(Settings settings, Place place, ClientBuilder builder, BootClock clock) {
        this.engine = new Engine(settings, place, builder.tls(), clock, builder.timeout().toNanos());
        this.onLost = builder.onLost();
        this.onRisk = builder.onRisk();
        this.address = settings.address();
    }

    /**
     * Connects to the daemon that REDLOCK_ADDR names, else to that of this host.
     *
     * @return the client
     * @throws DisconnectedException there is no daemon; the text names the address
     */
    public static RedlockClient connect() {
        return builder().connect();
    }

    /**
     * Connects to a daemon.
     *
     * @param address the path of a Unix socket, host:port, [v6]:port or tls://host:port
     * @return the client
     * @throws DisconnectedException there is no daemon; the text names the address
     */
    public static RedlockClient connect(String address) {
        return builder().address(address).connect();
    }

    /**
     * For a client with grace, a label, TLS files and so on.
     *
     * @return a builder
     */
    public static ClientBuilder builder() {
        return new ClientBuilder();
    }

    /** Waits until the session is there. */
    void open() {
        try {
            engine.open();
        } catch (InterruptedException ended) {
            engine.close();
            Thread.currentThread().interrupt();
            throw new DisconnectedException(address + ": interrupted while connecting");
        } catch (RuntimeException wrong) {
            engine.close();
            throw wrong;
        }
    }

    // --- locks ---

    /**
     * A lock for threads, as java.util.concurrent has it.
     *
     * @param name 1 to 512 bytes in UTF-8
     * @return the lock, not taken yet
     */
    public RedlockLock lock(String name) {
        return lock(name, LockOptions.DEFAULT);
    }

    /**
     * A lock for threads.
     *
     * @param name 1 to 512 bytes in UTF-8
     * @param options its lease, note and priority; its methods say how long to wait
     * @return the lock, not taken yet
     */
    public RedlockLock lock(String name, LockOptions options) {
        return new RedlockLock(this, seats, name, false, options);
    }

    /**
     * A lock for many readers or one writer.
     *
     * @param name 1 to 512 bytes in UTF-8
     * @return the locks, not taken yet
     */
    public RedlockReadWriteLock readWriteLock(String name) {
        LockOptions options = LockOptions.DEFAULT;
        return new RedlockReadWriteLock(new RedlockLock(this, seats, name, true, options), new RedlockLock(this, seats, name, false, options));
    }

    /**
     * Takes a lock, for try-with-resources: {@code try (var held = client.hold("x", Duration.ofSeconds(5))) { ... }}. It is bound to no thread, and not
     * reentrant.
     *
     * @param name 1 to 512 bytes in UTF-8
     * @param wait the longest wait
     * @return the lock, held until it is closed
     * @throws InterruptedException the thread was interrupted, and waits no more
     * @throws BusyException somebody else has it, and wait is zero
     * @throws LockTimeoutException it was not free in time
     */
    public HeldLock hold(String name, Duration wait) throws InterruptedException {
        return hold(name, LockOptions.DEFAULT.waiting(wait));
    }

    /**
     * Takes a lock.
     *
     * @param name 1 to 512 bytes in UTF-8
     * @param options how it is taken
     * @return the lock, held until it is closed
     * @throws InterruptedException the thread was interrupted, and waits no more
     * @throws BusyException somebody else has it, and the wait is zero
     * @throws LockTimeoutException it was not free in time
     */
    public HeldLock hold(String name, LockOptions options) throws InterruptedException {
        return held(terms("LOCK", List.of(Words.raw(name)), "", options), options);
    }

    /** The same for Lock.lock(), which an interrupt does not end. */
    HeldLock holdUninterruptibly(String name, LockOptions options) {
        Terms wanted = terms("LOCK", List.of(Words.raw(name)), "", options);
        String who = who();
        Engine.Begin<Take> begin = (core, now) -> core.take(wanted, who, now);
        return new HeldLock(engine, engine.call(begin).holds(), options.or(onLost, onRisk));
    }

    /**
     * Takes all of these locks, or none.
     *
     * @param names their names
     * @param options how they are taken
     * @return the locks, held until they are closed; the loss of one is a loss
     * @throws InterruptedException the thread was interrupted, and waits no more
     * @throws BusyException somebody else has one, and the wait is zero
     * @throws LockTimeoutException they were not free in time
     */
    public HeldLock locks(Collection<String> names, LockOptions options) throws InterruptedException {
        return held(terms("LOCKALL", raw(names), "", options), options);
    }

    /**
     * Takes one of these locks, the first that is free.
     *
     * @param names their names
     * @param options how it is taken
     * @return the lock, held until it is closed; its name says which
     * @throws InterruptedException the thread was interrupted, and waits no more
     * @throws BusyException others have all of them, and the wait is zero
     * @throws LockTimeoutException none was free in time
     */
    public HeldLock anyLock(Collection<String> names, LockOptions options) throws InterruptedException {
        return held(terms("LOCKANY", raw(names), "", options), options);
    }

    /**
     * So many permits, over all hosts together.
     *
     * @param name 1 to 512 bytes in UTF-8
     * @param limit how many; all who use the name give the same limit
     * @return the semaphore
     */
    public RedlockSemaphore semaphore(String name, int limit) {
        return semaphore(name, limit, LockOptions.DEFAULT);
    }

    /**
     * So many permits, over all hosts together.
     *
     * @param name 1 to 512 bytes in UTF-8
     * @param limit how many; all who use the name give the same limit
     * @param options how permits are taken
     * @return the semaphore
     */
    public RedlockSemaphore semaphore(String name, int limit, LockOptions options) {
        return new RedlockSemaphore(this, name, limit, options);
    }

    HeldLock permit(String name, int limit, LockOptions options) throws InterruptedException {
        return held(terms("ACQUIRE", List.of(Words.raw(name)), " limit=" + limit, options), options);
    }

    /**
     * Campaigns for a leadership, over and over: {@code for (Term term : client.lead("x")) try (term) { ... }}. Each step of the loop waits until a term is
     * won; leave the loop to campaign no more. An interrupt ends the loop.
     *
     * @param name the name of the lock that is led by
     * @return the terms
     */
    public Iterable<Term> lead(String name) {
        Supplier<Term> next = () -> {
            try {
                List<Hold> holds = take(terms("LOCK", List.of(Words.raw(name)), "", LockOptions.DEFAULT)).holds();
                return new Term(engine, holds, LockOptions.DEFAULT.or(onLost, onRisk));
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
                return null;
            }
        };
        return () -> new Campaign(next);
    }

    /** Nanoseconds of a clock that counts suspends. */
    long now() {
        return engine.look();
    }

    private static List<String> raw(Collection<String> names) {
        if (names.isEmpty()) {
            throw new IllegalArgumentException("no names");
        }
        return names.stream().map(Words::raw).toList();
    }

    private static Terms terms(String verb, List<String> names, String fields, LockOptions options) {
        long wait = options.longestWait() == null ? Time.NEVER : nanos(options.longestWait());
        return new Terms(verb, names, fields + options.fields(), wait, options.lease() == null ? 0 : nanos(options.lease()));
    }

    private static long nanos(Duration duration) {
        try {
            return Math.max(0, duration.toNanos());
        } catch (ArithmeticException centuries) {
            return Time.NEVER;
        }
    }

    private static String who() {
        return "t" + Long.toString(Thread.currentThread().getId(), 36);
    }

    private Take take(Terms wanted) throws InterruptedException {
        String who = who();
        return engine.callInterruptibly((core, now) -> core.take(wanted, who, now));
    }

    private HeldLock held(Terms wanted, LockOptions options) throws InterruptedException {
        return new HeldLock(engine, take(wanted).holds(), options.or(onLost, onRisk));
    }

    /**
     * Calls a function, unless it runs now or has begun within a time, on any host. It runs under the lock of that name; a function of {@code onLost} is told
     * when that is lost. A call that throws counts as well; one whose lock was lost does not. {@code redlock once} has the same records.
     *
     * @param name the name of the lock
     * @param every the function does not begin again before this has passed since it began
     * @param function what is called; its value is of no use
     * @return the result; empty: it was not called
     * @throws LockLostException the lock was lost meanwhile
     * @throws Exception that of the function
     */
    public Optional<Outcome> once(String name, Duration every, Callable<?> function) throws Exception {
        HeldLock lock;
        try {
            lock = hold(name, Duration.ZERO);
        } catch (BusyException runs) {
            return Optional.empty();
        }
        try (lock) {
            Runs runs = new Runs(this, name);
            if (runs.last() != null && runs.last().next().compareTo(Duration.ZERO) > 0) {
                return Optional.empty();
            }
            try {
                function.call();
            } catch (Throwable wrong) {
                try {
                    runs.end(lock, 1, every);
                } catch (RedlockException uncounted) {
                    wrong.addSuppressed(uncounted);
                }
                throw wrong;
            }
            return Optional.of(runs.end(lock, 0, every));
        }
    }

    /**
     * The result of the last run of {@link #once}, on whatever host.
     *
     * @param name the name that was given there
     * @return the outcome; empty: no run is known
     */
    public Optional<Outcome> onceStatus(String name) {
        return Optional.ofNullable(new Runs(this, name).last());
    }

    // --- rate limits and jobs ---

    /**
     * Counts one more use, if no time of the length per has more than limit. Does not wait.
     *
     * @param name the name of the rate limit
     * @param limit how many uses
     * @param per in which time
     * @return how many more are admitted
     * @throws BusyException the limit is used up; retryAfter says for how long
     * @throws InterruptedException the thread was interrupted
     */
    public Rate rate(String name, int limit, Duration per) throws InterruptedException {
        return rate(name, limit, per, 1, Duration.ZERO);
    }

    /**
     * Counts uses, if no time of the length per has more than limit.
     *
     * @param name the name of the rate limit
     * @param limit how many uses
     * @param per in which time
     * @param cost how many uses to count; 0 only asks
     * @param wait the longest wait
     * @return how many more are admitted
     * @throws BusyException the limit is used up, and wait is zero; retryAfter says for how long
     * @throws LockTimeoutException it was used up all the time
     * @throws InterruptedException the thread was interrupted, and waits no more
     */
    public Rate rate(String name, int limit, Duration per, int cost, Duration wait) throws InterruptedException {
        String text = "RATE " + Words.quote(Words.raw(name)) + " limit=" + limit + " per=" + Words.duration(per.toNanos())
                + (cost == 1 ? "" : " cost=" + cost) + (wait.isZero() ? "" : " wait=" + Words.duration(nanos(wait)));
        Line line = engine.callInterruptibly((core, now) -> core.submit(new Ask(text, Time.plus(now + Time.PATIENCE, nanos(wait))), now)).last();
        return switch (line.kind) { // it is never repeated: the use may have been counted
            case "OK" -> new Rate((int) line.number("left", 0), Duration.ofNanos(line.nanos("reset_ms")), line.get("unmetered") != null);
            case "BUSY" -> throw new BusyException(name + ": the limit is used up", name, null, Codes.retry(line), null);
            default -> throw new LockTimeoutException(name + ": not admitted in time", name, null, null);
        };
    }

    /**
     * Puts a job into a queue.
     *
     * @param queue the name of the queue
     * @param payload what the job is about, at most 32768 bytes in UTF-8
     * @return the id of the job
     */
    public String defer(String queue, String payload) {
        return defer(queue, payload.getBytes(StandardCharsets.UTF_8), Duration.ZERO, null, null);
    }

    /**
     * Puts a job into a queue.
     *
     * @param queue the name of the queue
     * @param payload what the job is about, at most 32768 bytes
     * @param delay when it is due
     * @param lock a lock that is granted together with the job, or null
     * @param id its id, or null for a new one; while a job of this id is there, it is the same job
     * @return the id of the job
     */
    public String defer(String queue, byte[] payload, Duration delay, String lock, String id) {
        String text = "DEFER " + Words.quote(Words.raw(queue)) + " " + Words.quoted(Words.raw(payload))
                + " id=" + (id == null ? UUID.randomUUID().toString() : Words.quote(Words.raw(id)))
                + (delay.isZero() ? "" : " delay=" + Words.duration(delay.toNanos())) + (lock == null ? "" : " lock=" + Words.quote(Words.raw(lock)));
        Engine.Begin<Ask> begin = (core, now) -> core.submit(new Ask.Repeatable(text, now + Time.PATIENCE), now);
        return answer("DEFER", engine.call(begin)).fields().get("job");
    }

    /**
     * Takes the first job of a queue that is due.
     *
     * @param queue the name of the queue
     * @param options how long to wait, and the lease
     * @return the job
     * @throws BusyException there is none, and the wait is zero
     * @throws LockTimeoutException there was none in time
     * @throws InterruptedException the thread was interrupted, and waits no more
     */
    public Job job(String queue, LockOptions options) throws InterruptedException {
        return new Job(engine, take(terms("TAKE", List.of(Words.raw(queue)), "", options)).holds(), options.or(onLost, onRisk));
    }

    /**
     * The jobs of a queue, one after the other, without end.
     *
     * @param queue the name of the queue
     * @return the jobs
     */
    public Jobs jobs(String queue) {
        return new Jobs(this, queue, LockOptions.DEFAULT);
    }

    /**
     * The jobs of a queue, until none came for a while.
     *
     * @param queue the name of the queue
     * @param wait the longest wait for a job
     * @return the jobs
     */
    public Jobs jobs(String queue, Duration wait) {
        return new Jobs(this, queue, LockOptions.DEFAULT.waiting(wait));
    }

    // --- anything else ---

    /**
     * Sends any line of redlock-protocol(7), such as "SHOW orders/42". What it takes is yours to keep and to give back.
     *
     * @param request the line, without a tag
     * @return its answer
     * @throws RedlockException the answer is not OK
     */
    public Answer ask(String request) {
        if (request.indexOf('\n') >= 0) {
            throw new IllegalArgumentException("a request is one line");
        }
        Engine.Begin<Ask> begin = (core, now) -> core.submit(new Ask(Words.raw(request), now + Time.PATIENCE), now);
        return answer(request, engine.call(begin));
    }

    private static Answer answer(String request, Ask asked) {
        Line line = asked.last();
        if (!line.kind.equals("OK")) {
            throw new RedlockException(request + ": " + line.kind + " " + Words.text(line.text), line.kind);
        }
        return new Answer(texts(line), asked.rows().stream().map(RedlockClient::texts).toList());
    }

    private static Map<String, String> texts(Line line) {
        Map<String, String> found = new HashMap<>();
        line.fields().forEach((field, value) -> found.put(field, Words.text(value)));
        return found;
    }

    /** Ends the session: all that it holds is free at once. */
    @Override
    public void close() {
        engine.close();
    }

    @Override
    public String toString() {
        return "RedlockClient " + address;
    }

    /** The terms of one leader. */
    private static final class Campaign implements Iterator<Term> {
        private final Supplier<Term> win;
        private Term next;

        Campaign(Supplier<Term> win) {
            this.win = win;
        }

        @Override
        public boolean hasNext() {
            if (next == null) {
                next = win.get();
            }
            return next != null;
        }

        @Override
        public Term next() {
            if (!hasNext()) {
                throw new java.util.NoSuchElementException();
            }
            Term won = next;
            next = null;
            return won;
        }
    }
}
