// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.redlockd.LockLostException;
import io.redlockd.RedlockClient;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Lock;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The interface of a registry, against the daemon at REDLOCK_ADDR. */
class RedlockLockRegistryTest {
    private final RedlockClient client = RedlockClient.connect();
    private final RedlockLockRegistry registry = new RedlockLockRegistry(client);

    @AfterEach
    void close() {
        client.close();
    }

    private static boolean elsewhere(BooleanSupplier call) {
        return CompletableFuture.supplyAsync(call::getAsBoolean).join();
    }

    @Test
    void aLockIsReentrantAndExcludesOthers() throws Exception {
        Lock lock = registry.obtain("a");
        lock.lock();
        assertTrue(registry.obtain("a").tryLock(1, TimeUnit.SECONDS));
        assertFalse(elsewhere(registry.obtain("a")::tryLock));
        registry.obtain("a").unlock();
        assertFalse(elsewhere(registry.obtain("a")::tryLock));
        lock.unlock();
        assertTrue(elsewhere(registry.obtain("a")::tryLock));
    }

    @Test
    void keysAreApart() {
        registry.obtain("b1").lock();
        assertTrue(elsewhere(registry.obtain("b2")::tryLock));
        registry.obtain("b1").unlock();
        assertThrows(IllegalMonitorStateException.class, registry.obtain("b1")::unlock);
    }

    @Test
    void somethingRunsUnderALock() throws Exception {
        assertEquals("done", registry.executeLocked("c", () -> {
            assertFalse(elsewhere(registry.obtain("c")::tryLock));
            return "done";
        }));
        registry.obtain("c").lock();
        assertTrue(elsewhere(() -> {
            try {
                registry.executeLocked("c", Duration.ofMillis(20), () -> { });
                return false;
            } catch (TimeoutException busy) {
                return true;
            } catch (InterruptedException ended) {
                throw new IllegalStateException(ended);
            }
        }));
        registry.obtain("c").unlock();
    }

    @Test
    void aLockIsRenewedByItsThreadAlone() {
        assertThrows(IllegalStateException.class, () -> registry.renewLock("d"));
        registry.obtain("d").lock();
        registry.renewLock("d");
        registry.obtain("d").unlock();
    }

    @Test
    void aLossIsToldAtTheUnlock() {
        registry.obtain("e").lock();
        client.ask("BREAK spring/e");
        assertThrows(LockLostException.class, registry.obtain("e")::unlock);
    }
}
