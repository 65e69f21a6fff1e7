// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlockd.BusyException;
import io.redlockd.HeldLock;
import io.redlockd.LockLostException;
import io.redlockd.LockOptions;
import io.redlockd.NoQuorumException;
import io.redlockd.RedlockClient;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What the fake and a daemon do alike. */
abstract class ServerTests {
    private static final Duration NOW = Duration.ZERO;

    @RegisterExtension
    final RedlockExtension redlock;

    ServerTests(RedlockExtension redlock) {
        this.redlock = redlock;
    }

    @Test
    void aLockIsLost() throws Exception {
        CountDownLatch lost = new CountDownLatch(1);
        HeldLock held = redlock.client().hold("Köln =1", NOW);
        held.onLost(lost::countDown);
        redlock.lose("Köln =1");
        assertTrue(lost.await(20, TimeUnit.SECONDS));
        assertFalse(held.isHeld());
        assertThrows(LockLostException.class, held::close);
        redlock.client().hold("Köln =1", NOW).close();
    }

    @Test
    void aLockIsAtRisk() throws Exception {
        CountDownLatch risk = new CountDownLatch(1);
        HeldLock held = redlock.client().hold("x", LockOptions.DEFAULT.onRisk(lock -> risk.countDown()));
        redlock.risk("x");
        assertTrue(risk.await(20, TimeUnit.SECONDS));
        assertTrue(held.isHeld());
        assertTrue(held.remaining().toMillis() <= 1000);
        assertTrue(held.ensure(Duration.ofSeconds(2)).toSeconds() >= 2);
        held.close();
    }

    @Test
    void nothingIsAnsweredForAWhile() throws Exception {
        redlock.freeze(Duration.ofMillis(300));
        long begun = System.nanoTime();
        redlock.client().hold("x", NOW).close();
        assertTrue(System.nanoTime() - begun >= 290_000_000);
    }

    @Test
    void thereIsNoQuorum() throws Exception {
        redlock.noQuorum();
        assertThrows(NoQuorumException.class, () -> redlock.client().hold("x", NOW));
        redlock.quorum();
        redlock.client().hold("x", NOW).close();
    }

    @Test
    void somebodyElseHasIt() throws Exception {
        Elsewhere other = redlock.heldElsewhere("x");
        assertThrows(BusyException.class, () -> redlock.client().hold("x", NOW));
        assertFalse(redlock.client().lock("x").tryLock(20, TimeUnit.MILLISECONDS));
        other.close();
        redlock.client().hold("x", NOW).close();
    }

    @Test
    void whoWaitsGetsItNext() throws Exception {
        Elsewhere other = redlock.heldElsewhere("x");
        CompletableFuture<Boolean> waits = CompletableFuture.supplyAsync(() -> {
            redlock.client().lock("x").lock();
            redlock.client().lock("x").unlock();
            return true;
        });
        Thread.sleep(50);
        assertFalse(waits.isDone());
        other.close();
        assertTrue(waits.get(20, TimeUnit.SECONDS));
    }

    @Test
    void severalReadersPermitsAndFences() throws Exception {
        LockOptions now = LockOptions.DEFAULT.waiting(NOW);
        try (HeldLock both = redlock.client().locks(List.of("a", "b"), now); HeldLock one = redlock.client().anyLock(List.of("a", "c"), now)) {
            assertEquals(Set.of("a", "b"), both.fences().keySet());
            assertEquals("c", one.name());
        }
        try (HeldLock one = redlock.client().hold("r", now.shared()); HeldLock other = redlock.client().hold("r", now.shared())) {
            assertTrue(one.isHeld() && other.isHeld());
            assertThrows(BusyException.class, () -> redlock.client().hold("r", NOW));
        }
        try (HeldLock first = redlock.client().semaphore("s", 1).acquire()) {
            assertEquals(0, first.permit().getAsInt());
            assertTrue(redlock.client().semaphore("s", 1).tryAcquire().isEmpty());
        }
        HeldLock before = redlock.client().hold("f", NOW);
        before.close();
        assertTrue(redlock.client().hold("f", NOW).fence() > before.fence());
    }

    @Test
    void whatAClientHadIsFreeWhenItCloses() throws Exception {
        RedlockClient other = RedlockClient.connect(redlock.address());
        other.hold("x", NOW);
        other.close();
        redlock.client().hold("x", Duration.ofSeconds(20)).close();
    }
}
