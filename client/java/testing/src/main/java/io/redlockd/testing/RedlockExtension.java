// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

import io.redlockd.RedlockClient;
import java.time.Duration;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A redlockd of its own for each test of JUnit, which loses locks as it is told:
 *
 * <pre>
 * &#64;RegisterExtension
 * final RedlockExtension redlock = new RedlockExtension();
 * </pre>
 *
 * It is a daemon on the memory store if the program redlockd is found (by the variable REDLOCKD, or in PATH), else a fake inside this process.
 */
public final class RedlockExtension implements BeforeEachCallback, AfterEachCallback {
    private final boolean fake;
    private TestServer server;
    private RedlockClient client;

    /** A daemon if there is one, else a fake. */
    public RedlockExtension() {
        this(!TestServer.hasDaemon());
    }

    private RedlockExtension(boolean fake) {
        this.fake = fake;
    }

    /**
     * A fake in any case: it starts at once, and has no queues of jobs.
     *
     * @return the extension
     */
    public static RedlockExtension fake() {
        return new RedlockExtension(true);
    }

    /**
     * A daemon in any case.
     *
     * @return the extension
     */
    public static RedlockExtension daemon() {
        return new RedlockExtension(false);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        server = fake ? TestServer.fake() : TestServer.daemon();
        client = RedlockClient.connect(server.address());
    }

    @Override
    public void afterEach(ExtensionContext context) {
        client.close();
        server.close();
    }

    /**
     * A client of this test.
     *
     * @return the client, which is closed after the test
     */
    public RedlockClient client() {
        return client;
    }

    /**
     * For further clients.
     *
     * @return the path of the socket
     */
    public String address() {
        return server.address();
    }

    /**
     * All who hold this lose it.
     *
     * @param name a lock or a semaphore
     */
    public void lose(String name) {
        server.lose(name);
    }

    /**
     * All who hold this are told that a renewal is late, and that they hold it for one second more.
     *
     * @param name a lock or a semaphore
     */
    public void risk(String name) {
        server.risk(name);
    }

    /**
     * Nothing is answered for so long, beginning now.
     *
     * @param time the time
     */
    public void freeze(Duration time) {
        server.freeze(time);
    }

    /** From now on nothing is granted: too few stores can be used. */
    public void noQuorum() {
        server.noQuorum(true);
    }

    /** From now on locks are granted again. */
    public void quorum() {
        server.noQuorum(false);
    }

    /**
     * Somebody else holds a lock.
     *
     * @param name a lock that is free
     * @return closing it frees the lock
     */
    public Elsewhere heldElsewhere(String name) {
        return server.heldElsewhere(name);
    }
}
