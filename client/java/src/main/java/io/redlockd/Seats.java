// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.util.concurrent.ConcurrentHashMap;

/** Which thread has which lock how often: what makes the locks of a client reentrant. */
final class Seats {
    /** A thread and a name. The ids of threads are not used twice. */
    private record Key(long thread, String name) {
    }

    /** What a thread has of a name; only this thread uses it. */
    static final class Seat {
        private final HeldLock held;
        private final boolean shared;
        private int readers;
        private int writers;

        private Seat(HeldLock held, boolean shared) {
            this.held = held;
            this.shared = shared;
            count(shared, 1);
        }

        HeldLock held() {
            return held;
        }

        /** Whether the daemon has granted it to readers. */
        boolean isShared() {
            return shared;
        }

        int count(boolean reading) {
            return reading ? readers : writers;
        }

        void count(boolean reading, int more) {
            readers += reading ? more : 0;
            writers += reading ? 0 : more;
        }

        boolean isEmpty() {
            return readers + writers == 0;
        }
    }

    private final ConcurrentHashMap<Key, Seat> seats = new ConcurrentHashMap<>();

    /** What this thread has of a name, or null. */
    Seat mine(String name) {
        return seats.get(key(name));
    }

    void take(String name, HeldLock held, boolean shared) {
        seats.put(key(name), new Seat(held, shared));
    }

    void leave(String name) {
        seats.remove(key(name));
    }

    private static Key key(String name) {
        return new Key(Thread.currentThread().getId(), name);
    }
}
