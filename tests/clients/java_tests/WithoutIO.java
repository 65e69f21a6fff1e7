// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.DisconnectedException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The core alone: each test is the daemon, the connection and the clock. A line per test, "passed NAME" or "FAILED NAME: why". */
public final class WithoutIO {
    private static final String ROW = "* name=x fence=7 valid_ms=9000 count=1 owner=t1";

    private final Core core = new Core(new Settings("here", null, seconds(30), 0, null, null));

    private WithoutIO() {
        core.submit(new Ready(seconds(10)), 0);
        connect(0, "OK session=17 secret=s lease_ms=10000");
    }

    public static void main(String[] args) throws ReflectiveOperationException {
        for (Method test : WithoutIO.class.getDeclaredMethods()) {
            if (test.getParameterCount() > 0 || test.isSynthetic() || Modifier.isPrivate(test.getModifiers())) {
                continue;
            }
            try {
                test.invoke(new WithoutIO());
                System.out.println("passed " + test.getName());
            } catch (InvocationTargetException failed) {
                System.out.println("FAILED " + test.getName() + ": " + failed.getCause());
                failed.getCause().printStackTrace();
            }
        }
    }

    // --- help ---

    private static long seconds(double number) {
        return Math.round(number * Time.SECOND);
    }

    private static void check(boolean holds) {
        if (!holds) {
            throw new AssertionError();
        }
    }

    private void connect(double now, String... lines) {
        core.connected(seconds(now));
        List<String> sent = sent();
        answer(sent.get(sent.size() - 1), now, lines);
    }

    private List<String> sent() {
        byte[] bytes = core.takeOutput();
        return bytes == null ? List.of() : Arrays.asList(new String(bytes, StandardCharsets.ISO_8859_1).split("\n"));
    }

    private void answer(String request, double now, String... lines) {
        for (String line : lines) {
            core.receive(ByteBuffer.wrap((request.split(" ")[0] + " " + line + "\n").getBytes(StandardCharsets.ISO_8859_1)), seconds(now));
        }
    }

    private Hold hold(double now, String name) {
        Take request = core.take(new Terms("LOCK", List.of(name), "", seconds(5), 0), "t1", seconds(now));
        answer(sent().get(0), now, "OK name=" + name + " fence=7 valid_ms=9900 ttl_ms=10000 count=1");
        return request.holds().get(0);
    }

    // --- tests ---

    void whatIsOverdueWhenTheSessionComesBackIsToldAndNotSent() {
        Hold hold = hold(1, "x");
        Check request = core.check(hold, seconds(1));
        sent();
        core.disconnected("cut", seconds(2));
        connect(7, ROW, "OK session=17 n=1");
        check(sent().isEmpty());
        check(request.error() instanceof DisconnectedException);
        core.tick(seconds(7));
        check(core.online() && hold.left(seconds(7)) == seconds(9));
    }

    void aReleaseThatIsOverdueIsSentAllTheSame() {
        Hold hold = hold(1, "x");
        Free request = core.free(hold, "", seconds(1));
        sent();
        core.disconnected("cut", seconds(2));
        core.tick(seconds(6.5));
        check(request.error() instanceof DisconnectedException);
        connect(7, ROW, "OK session=17 n=1");
        List<String> sent = sent();
        check(sent.size() == 1 && sent.get(0).contains("UNLOCK x owner=t1 fence=7 count=0"));
        core.tick(seconds(7.5));
        check(core.online());
        answer(sent.get(0), 8, "OK name=x count=0");
        check(core.idle());
    }

    void aConnectionThatEndsAfterQuitIsNoLossOfIt() {
        Hold hold = hold(1, "x");
        Ask quit = core.quit(seconds(2));
        answer(sent().get(0), 2, "OK");
        core.disconnected("the daemon closed the connection", seconds(2));
        check(quit.finished() && quit.error() == null && hold.lost().reason().equals("closed"));
    }

    void whoWaitsInVainForTheFirstConnectionIsToldTheAddress() {
        Core slow = new Core(new Settings("here", null, 0, 0, null, null));
        Ready ready = new Ready(seconds(5));
        slow.submit(ready, 0);
        slow.tick(seconds(5));
        check(ready.error() instanceof DisconnectedException && ready.error().getMessage().startsWith("here: "));
    }

    void nothingIsLeftBehindByALockAndItsRelease() {
        for (int at = 0; at < 5; at++) {
            core.free(hold(at, "x"), "", seconds(at + 0.5));
            answer(sent().get(0), at + 0.6, "OK name=x count=0");
        }
        check(core.idle());
    }

    void manyHoldsAreCheckedAtOneMoment() {
        for (int number = 0; number < 50; number++) {
            hold(number * 0.001, "n" + number);
        }
        core.tick(seconds(3.4));
        check(sent().stream().filter(line -> line.contains(" CHECK ")).count() == 50);
        check(core.wake() > seconds(3.5));
    }

    void pausesDoubleUpToHalfASecondAndEndWithTheGrace() {
        core.disconnected("cut", seconds(10));
        check(core.dialAt() == seconds(10));
        List<Long> pauses = new ArrayList<>();
        long now = seconds(10);
        while (core.dialAt() < Time.NEVER) {
            pauses.add(core.dialAt() - now);
            now = core.dialAt();
            core.dialing();
            check(core.dialAt() == Time.NEVER);
            core.notConnected("refused", now);
        }
        check(pauses.stream().allMatch(pause -> pause <= seconds(0.5)));
        check(pauses.get(1) < seconds(0.011) && Math.abs(now - seconds(40)) < seconds(0.6));
        check(!core.isWanted());
    }

    void aClockThatStoodStillAsksAtOnceAndIsBelievedAfterTheAnswer() {
        Hold hold = hold(1, "x");
        core.check(hold, seconds(2));
        String before = sent().get(0);
        core.doubt(seconds(3));
        core.tick(seconds(3));
        List<String> sent = sent();
        check(hold.left(seconds(3)) == 0 && hold.alive());
        check(sent.size() == 1 && sent.get(0).contains(" CHECK x owner=t1"));
        answer(before, 3.1, "OK name=x fence=7 valid_ms=9000 count=1"); // it was asked before
        check(hold.left(seconds(3.1)) == 0);
        answer(sent.get(0), 3.2, "OK name=x fence=7 valid_ms=8000 count=1");
        check(hold.left(seconds(3.2)) == seconds(7.8));
    }
}
