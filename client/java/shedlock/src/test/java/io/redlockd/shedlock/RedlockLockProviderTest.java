// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.shedlock;

import static org.assertj.core.api.Assertions.assertThat;

import io.redlockd.BusyException;
import io.redlockd.LockOptions;
import io.redlockd.RedlockClient;
import java.time.Duration;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.test.support.AbstractExtensibleLockProviderIntegrationTest;
import org.junit.jupiter.api.AfterEach;

/** The suite that ShedLock has for its own providers, against the daemon at REDLOCK_ADDR. */
class RedlockLockProviderTest extends AbstractExtensibleLockProviderIntegrationTest {
    private final RedlockClient client = RedlockClient.connect();
    private final String prefix = "shedlock/" + System.nanoTime() + "/";
    private final RedlockLockProvider provider = new RedlockLockProvider(client, prefix);

    @AfterEach
    void close() {
        client.close();
    }

    @Override
    protected ExtensibleLockProvider getLockProvider() {
        return provider;
    }

    /** Whether somebody has the lock of a task, or its name is left taken. */
    private boolean isTaken(String name) {
        try {
            client.hold(prefix + name, LockOptions.DEFAULT.waiting(Duration.ZERO)).close();
            return false;
        } catch (BusyException somebody) {
            return true;
        } catch (InterruptedException ended) {
            throw new IllegalStateException(ended);
        }
    }

    @Override
    protected void assertUnlocked(String name) {
        assertThat(isTaken(name)).isFalse();
    }

    @Override
    protected void assertLocked(String name) {
        assertThat(isTaken(name)).isTrue();
    }
}
