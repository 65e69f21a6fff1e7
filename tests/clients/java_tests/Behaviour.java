// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.net.BootClock;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReadWriteLock;

/**
 * What is particular to the Java client, against the daemon at the address that is the first argument. Each static method without arguments whose name begins
 * with a small letter is a test; a line per test, "passed NAME" or "FAILED NAME: why".
 */
public final class Behaviour {
    private static final Duration NOW = Duration.ZERO;
    private static final Duration SOON = Duration.ofSeconds(20);
    private static String address;
    private static RedlockClient client;
    private static ExecutorService threads;

    private Behaviour() {
    }

    public static void main(String[] args) throws Exception {
        address = args[0];
        threads = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        for (Method test : Behaviour.class.getDeclaredMethods()) {
            if (test.getParameterCount() > 0 || test.isSynthetic() || Modifier.isPrivate(test.getModifiers())) {
                continue;
            }
            try (RedlockClient mine = RedlockClient.connect(address)) {
                client = mine;
                test.invoke(null);
                System.out.println("passed " + test.getName());
            } catch (InvocationTargetException failed) {
                System.out.println("FAILED " + test.getName() + ": " + failed.getCause());
                failed.getCause().printStackTrace();
            }
        }
        System.exit(0);
    }

    // --- help ---

    private static void check(boolean holds) {
        if (!holds) {
            throw new AssertionError();
        }
    }

    private static void equal(Object seen, Object wanted) {
        if (!seen.equals(wanted)) {
            throw new AssertionError(seen + " is not " + wanted);
        }
    }

    private static <E extends Throwable> E raises(Class<E> kind, Callable<?> call) {
        try {
            call.call();
        } catch (Throwable raised) {
            if (kind.isInstance(raised)) {
                return kind.cast(raised);
            }
            throw new AssertionError("raised " + raised, raised);
        }
        throw new AssertionError("nothing was raised");
    }

    private static void until(Callable<Boolean> condition) throws Exception {
        for (int tries = 0; tries < 2000; tries++) {
            if (condition.call()) {
                return;
            }
            Thread.sleep(10);
        }
        throw new AssertionError("it did not become so");
    }

    private static <T> T elsewhere(Callable<T> call) throws Exception {
        return threads.submit(call).get(30, TimeUnit.SECONDS);
    }

    private static List<String> roles(String name) {
        return client.ask("SHOW " + name).rows().stream().map(row -> row.get("role")).toList();
    }

    private static boolean run(Runnable call) {
        call.run();
        return true;
    }

    // --- the lock of threads ---

    static void aLockIsReentrant() throws Exception {
        RedlockLock lock = client.lock("reentrant");
        lock.lock();
        check(lock.tryLock() && lock.tryLock(1, TimeUnit.SECONDS));
        equal(lock.getHoldCount(), 3);
        check(lock.isHeldByCurrentThread() && lock.fence() > 0 && !lock.remaining().isZero());
        check(!elsewhere(lock::tryLock) && !elsewhere(lock::isHeldByCurrentThread));
        lock.unlock();
        lock.unlock();
        check(!elsewhere(lock::tryLock));
        lock.unlock();
        check(elsewhere(() -> lock.tryLock() && run(lock::unlock)));
    }

    static void twoObjectsOfOneNameAreOneLock() throws Exception {
        client.lock("same").lock();
        check(client.lock("same").tryLock());
        equal(roles("same"), List.of("holder"));
        client.lock("same").unlock();
        client.readWriteLock("same").writeLock().unlock();
        equal(roles("same"), List.of());
    }

    static void onlyItsThreadUnlocksALock() throws Exception {
        RedlockLock lock = client.lock("mine");
        raises(IllegalMonitorStateException.class, () -> run(lock::unlock));
        raises(IllegalMonitorStateException.class, lock::fence);
        lock.lock();
        elsewhere(() -> raises(IllegalMonitorStateException.class, () -> run(lock::unlock)));
        lock.unlock();
    }

    static void aWaitStandsInTheQueue() throws Exception {
        RedlockLock lock = client.lock("queue");
        lock.lock();
        check(!elsewhere(() -> lock.tryLock(50, TimeUnit.MILLISECONDS)));
        Future<Boolean> waits = threads.submit(() -> lock.tryLock(20, TimeUnit.SECONDS) && run(lock::unlock));
        until(() -> roles("queue").contains("waiter"));
        lock.unlock();
        check(waits.get(20, TimeUnit.SECONDS));
    }

    static void conditionsAreNotSupported() {
        check(raises(UnsupportedOperationException.class, () -> client.lock("c").newCondition()).getMessage().contains("no conditions"));
    }

    static void aLossIsToldAndStaysUntilTheUnlock() throws Exception {
        RedlockLock lock = client.lock("lost");
        CountDownLatch told = new CountDownLatch(1);
        lock.onLost(told::countDown);
        lock.lock();
        client.ask("BREAK lost");
        check(told.await(20, TimeUnit.SECONDS));
        check(!lock.isHeldByCurrentThread() && lock.remaining().isZero());
        equal(raises(LockLostException.class, () -> run(lock::lock)).reason(), "broken");
        raises(LockLostException.class, () -> lock.ensure(NOW));
        LockLostException lost = raises(LockLostException.class, () -> run(lock::unlock));
        equal(List.of(lost.name(), lost.reason(), lost.code()), List.of("lost", "broken", "LOST"));
        lock.lock();
        lock.unlock();
    }

    static void readersShareAndAWriterDoesNot() throws Exception {
        RedlockReadWriteLock lock = client.readWriteLock("rw");
        ReadWriteLock standard = lock;
        standard.readLock().lock();
        check(elsewhere(() -> lock.readLock().tryLock() && run(lock.readLock()::unlock)));
        check(!elsewhere(lock.writeLock()::tryLock));
        raises(DeadlockException.class, () -> run(lock.writeLock()::lock));
        check(!lock.writeLock().tryLock());
        lock.readLock().unlock();
        lock.writeLock().lock();
        lock.readLock().lock();
        lock.writeLock().unlock();
        check(!elsewhere(lock.readLock()::tryLock));
        raises(IllegalMonitorStateException.class, () -> run(lock.writeLock()::unlock));
        lock.readLock().unlock();
        equal(roles("rw"), List.of());
    }

    static void aCircleOfThreadsIsSeen() throws Exception {
        CountDownLatch both = new CountDownLatch(2);
        Future<String> one = threads.submit(() -> crosswise("circle/1", "circle/2", both));
        Future<String> other = threads.submit(() -> crosswise("circle/2", "circle/1", both));
        equal(Set.of(one.get(30, TimeUnit.SECONDS), other.get(30, TimeUnit.SECONDS)), Set.of("both", "deadlock"));
    }

    private static String crosswise(String first, String second, CountDownLatch both) throws Exception {
        RedlockLock outer = client.lock(first);
        outer.lock();
        try {
            both.countDown();
            both.await();
            if (client.lock(second).tryLock(15, TimeUnit.SECONDS)) {
                client.lock(second).unlock();
            }
            return "both";
        } catch (DeadlockException seen) {
            return "deadlock";
        } finally {
            outer.unlock();
        }
    }

    // --- interrupts ---

    static void anInterruptEndsAWaitAndLeavesNoPlace() throws Exception {
        try (HeldLock held = client.hold("interrupt", NOW)) {
            Thread[] waiter = new Thread[1];
            Future<?> waits = threads.submit(() -> {
                waiter[0] = Thread.currentThread();
                return client.lock("interrupt").tryLock(20, TimeUnit.SECONDS);
            });
            until(() -> roles("interrupt").contains("waiter"));
            waiter[0].interrupt();
            check(raises(ExecutionException.class, () -> waits.get(20, TimeUnit.SECONDS)).getCause() instanceof InterruptedException);
            until(() -> roles("interrupt").equals(List.of("holder")));
            check(held.isHeld());
        }
    }

    static void anInterruptDoesNotEndLock() throws Exception {
        HeldLock held = client.hold("uninterruptible", NOW);
        Thread[] waiter = new Thread[1];
        Future<Boolean> waits = threads.submit(() -> {
            waiter[0] = Thread.currentThread();
            client.lock("uninterruptible").lock();
            client.lock("uninterruptible").unlock();
            return Thread.interrupted();
        });
        until(() -> roles("uninterruptible").contains("waiter"));
        waiter[0].interrupt();
        Thread.sleep(100);
        equal(roles("uninterruptible").size(), 2);
        held.close();
        check(waits.get(20, TimeUnit.SECONDS));
    }

    static void anInterruptedThreadUnlocksAllTheSame() throws Exception {
        elsewhere(() -> {
            client.lock("interrupted").lock();
            Thread.currentThread().interrupt();
            client.lock("interrupted").unlock();
            return Thread.interrupted();
        });
        until(() -> roles("interrupted").isEmpty());
        check(client.lock("interrupted").tryLock());
    }

    // --- what is held ---

    static void aBlockWhoseLockWasLostThrowsAtItsEnd() {
        LockLostException lost = raises(LockLostException.class, () -> {
            try (HeldLock held = client.hold("block", NOW)) {
                client.ask("BREAK block");
                until(held::isLost);
            }
            return null;
        });
        equal(lost.reason(), "broken");
    }

    static void anExceptionOfTheBlockComesFirst() {
        IllegalStateException own = raises(IllegalStateException.class, () -> {
            try (HeldLock held = client.hold("block2", NOW)) {
                client.ask("BREAK block2");
                until(held::isLost);
                throw new IllegalStateException();
            }
        });
        check(own.getSuppressed()[0] instanceof LockLostException);
    }

    static void aFunctionOfTheUserMayUseTheClient() throws Exception {
        List<String> seen = new ArrayList<>();
        CountDownLatch done = new CountDownLatch(1);
        LockOptions options = LockOptions.DEFAULT.onLost(held -> {
            seen.add(held.name() + " " + held.reason());
            client.lock("of-on-lost").lock();
            done.countDown();
        });
        HeldLock held = client.hold("told", options);
        client.ask("BREAK told");
        check(done.await(20, TimeUnit.SECONDS));
        raises(LockLostException.class, () -> run(held::close));
        held.close();
        equal(seen, List.of("told broken"));
    }

    static void whoHasItIsSaid() throws Exception {
        try (RedlockClient other = RedlockClient.builder().address(address).label("worker-7").connect(); HeldLock held = other.hold("whose", NOW)) {
            BusyException busy = raises(BusyException.class, () -> client.hold("whose", NOW));
            check(busy.name().equals("whose") && busy.holder().contains("worker-7") && busy.code().equals("BUSY"));
            LockTimeoutException late = raises(LockTimeoutException.class, () -> client.hold("whose", Duration.ofMillis(20)));
            check(late.holder().contains("worker-7") && held.isHeld());
        }
    }

    static void severalLocksPermitsAndRates() throws Exception {
        try (HeldLock both = client.locks(List.of("s/a", "s/b"), LockOptions.DEFAULT.waiting(SOON));
                HeldLock one = client.anyLock(List.of("s/a", "s/c"), LockOptions.DEFAULT.waiting(SOON))) {
            equal(both.fences().keySet(), Set.of("s/a", "s/b"));
            equal(one.name(), "s/c");
        }
        RedlockSemaphore semaphore = client.semaphore("s/permits", 2);
        try (HeldLock first = semaphore.acquire(); HeldLock second = semaphore.acquire(SOON)) {
            equal(Set.of(first.permit().getAsInt(), second.permit().getAsInt()), Set.of(0, 1));
            check(semaphore.tryAcquire().isEmpty());
        }
        String name = "s/rate/" + ProcessHandle.current().pid();
        equal(client.rate(name, 1, Duration.ofMinutes(1)).left(), 0);
        check(raises(BusyException.class, () -> client.rate(name, 1, Duration.ofMinutes(1))).retryAfter().toSeconds() > 0);
    }

    static void jobsAreDoneOrTriedAgain() {
        client.defer("jobs", "one".getBytes(), NOW, null, "one");
        client.defer("jobs", new byte[] {0, (byte) 0xff, '"', '\n'}, NOW, "jobs/lock", "two");
        List<String> seen = new ArrayList<>();
        raises(IllegalStateException.class, () -> run(() -> client.jobs("jobs", NOW).forEach(job -> {
            seen.add(job.id() + job.attempt());
            if (job.id().equals("two") && job.attempt() == 1) {
                equal(job.payload()[1], (byte) 0xff);
                check(job.lockName().equals("jobs/lock") && job.fence() > 0);
                throw new IllegalStateException();
            }
        })));
        for (Job job : client.jobs("jobs", NOW)) {
            seen.add(job.id() + job.attempt());
        }
        equal(seen, List.of("one1", "two1", "two2"));
    }

    static void aLeaderThatLosesLeadsAgain() throws Exception {
        int terms = 0;
        for (Term term : client.lead("leader")) {
            try (term) {
                if (++terms == 2) {
                    break;
                }
                client.ask("BREAK leader");
                until(term::isLost);
            }
        }
        equal(roles("leader"), List.of());
    }

    static void whatIsHeldWhenTheClientClosesIsLost() throws Exception {
        RedlockClient other = RedlockClient.connect(address);
        HeldLock held = other.hold("closing", NOW);
        other.close();
        other.close();
        equal(held.reason(), "closed");
        raises(LockLostException.class, () -> run(held::close));
        raises(DisconnectedException.class, () -> other.hold("closing", NOW));
        client.hold("closing", SOON).close();
    }

    static void anAddressIsCheckedAndNamed() {
        for (String wrong : List.of("", "unix:", "::1", "a:b", "a:0", "a:70000", "tls://", "tls:///x", "[::1")) {
            raises(IllegalArgumentException.class, () -> RedlockClient.connect(wrong));
        }
        check(raises(DisconnectedException.class, () -> RedlockClient.connect("/nonexistent/sock")).getMessage().contains("/nonexistent/sock"));
    }

    // --- the clock ---

    /** A daemon that grants each LOCK at once, and answers CHECK when it is told to. */
    private static final class Scripted implements Runnable, AutoCloseable {
        private final ServerSocket listener;
        private volatile boolean answering;

        Scripted() throws IOException {
            listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            threads.submit(this);
        }

        RedlockClient connect(BootClock clock) {
            return RedlockClient.builder().address("127.0.0.1:" + listener.getLocalPort()).clock(clock).connect();
        }

        @Override
        public void run() {
            try (Socket socket = listener.accept(); Scanner lines = new Scanner(socket.getInputStream(), StandardCharsets.ISO_8859_1)) {
                while (lines.hasNextLine()) {
                    String line = lines.nextLine();
                    String tag = line.split(" ")[0];
                    until(() -> answering || !line.contains(" CHECK "));
                    String answer = line.contains(" HELLO ") ? "session=1" : "name=x fence=7 valid_ms=9900 ttl_ms=10000";
                    socket.getOutputStream().write((tag + " OK " + answer + "\n").getBytes(StandardCharsets.ISO_8859_1));
                }
            } catch (Exception ended) {
                return;
            }
        }

        @Override
        public void close() throws IOException {
            answering = true;
            listener.close();
        }
    }

    static void aClockThatStoodStillIsNotBelievedUntilTheDaemonWasAsked() throws Exception {
        AtomicLong suspended = new AtomicLong();
        BootClock clock = new BootClock(System::nanoTime, () -> System.nanoTime() + suspended.get(), true);
        try (Scripted daemon = new Scripted(); RedlockClient other = daemon.connect(clock)) {
            HeldLock held = other.hold("x", NOW);
            suspended.addAndGet(TimeUnit.MILLISECONDS.toNanos(40));
            check(held.isHeld());
            suspended.addAndGet(TimeUnit.MILLISECONDS.toNanos(300));
            check(!held.isHeld() && held.remaining().isZero() && !held.isLost());
            daemon.answering = true;
            until(held::isHeld);
            daemon.answering = false;
            suspended.addAndGet(TimeUnit.SECONDS.toNanos(100));
            check(!held.isHeld());
            until(held::isLost);
            equal(held.reason(), "expired");
        }
    }

    static void aWallClockThatWasSetCostsAQuestionAndNoLock() throws Exception {
        AtomicLong set = new AtomicLong();
        BootClock clock = new BootClock(System::nanoTime, () -> System.nanoTime() + set.get(), false);
        try (Scripted daemon = new Scripted(); RedlockClient other = daemon.connect(clock)) {
            HeldLock held = other.hold("x", NOW);
            set.addAndGet(TimeUnit.HOURS.toNanos(1));
            check(!held.isHeld() && !held.isLost());
            daemon.answering = true;
            until(held::isHeld);
            set.addAndGet(-TimeUnit.HOURS.toNanos(2));
            check(held.isHeld());
        }
    }

    static void aThreadThatIsStoppedBetweenTwoClocksDoubtsNothing() {
        AtomicLong now = new AtomicLong(TimeUnit.HOURS.toNanos(1));
        AtomicLong stop = new AtomicLong();
        BootClock clock = new BootClock(now::get, () -> now.getAndAdd(stop.get()), true);
        for (long millis : new long[] {0, 200, 0, 60, 0, 1000, 0}) { // for so long after the other clock was read
            stop.set(TimeUnit.MILLISECONDS.toNanos(millis));
            check(!clock.look());
        }
    }

    static void thisMachineHasAClockOfBothKinds() throws Exception {
        BootClock clock = BootClock.ofThisMachine();
        for (int look = 0; look < 50; look++) {
            check(!clock.look());
            Thread.sleep(5);
        }
    }

    // --- virtual threads ---

    static void twoHundredVirtualThreadsShareAClient() throws Exception {
        ThreadFactory factory;
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            factory = (ThreadFactory) Class.forName("java.lang.Thread$Builder").getMethod("factory").invoke(builder);
        } catch (NoSuchMethodException before21) {
            System.out.println("skipped: virtual threads: this is Java " + Runtime.version().feature());
            return;
        }
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger done = new AtomicInteger();
        List<Thread> all = new ArrayList<>();
        for (int number = 0; number < 200; number++) {
            all.add(factory.newThread(() -> {
                client.lock("virtual").lock();
                check(inside.incrementAndGet() == 1);
                inside.decrementAndGet();
                client.lock("virtual").unlock();
                done.incrementAndGet();
            }));
        }
        all.forEach(Thread::start);
        for (Thread thread : all) {
            thread.join();
        }
        equal(done.get(), 200);
    }
}
