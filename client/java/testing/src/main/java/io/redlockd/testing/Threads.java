// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

/** Daemon threads. */
final class Threads {
    private Threads() {
    }

    static void start(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }
}
