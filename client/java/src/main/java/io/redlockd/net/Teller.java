// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.util.concurrent.LinkedBlockingQueue;

/** Calls functions of users, one after the other, in a daemon thread that begins with the first. One that fails is logged. */
final class Teller {
    private static final System.Logger LOG = System.getLogger("io.redlockd");

    private final LinkedBlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
    private Thread thread;
    private volatile boolean ended;

    /** Under the mutex of the engine, or before anybody else knows of it. */
    synchronized void call(Runnable task) {
        if (ended) {
            return;
        }
        tasks.add(task);
        if (thread == null) {
            thread = new Thread(this::work, "redlockd-calls");
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** What was asked for is called still, and nothing else. */
    synchronized void end() {
        if (thread != null) {
            call(() -> ended = true);
        }
    }

    private void work() {
        while (!ended) {
            try {
                tasks.take().run();
            } catch (InterruptedException nobody) {
                continue; // nobody interrupts this thread but by mistake
            } catch (RuntimeException | Error failed) {
                LOG.log(System.Logger.Level.WARNING, "a function that was called by redlockd has failed", failed);
            }
        }
    }
}
