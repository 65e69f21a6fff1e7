// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;

/**
 * A clock in nanoseconds that notices suspends. System.nanoTime() may stand still while the machine is suspended, so each look compares it with the time since
 * boot (/proc/uptime), or where there is none with the wall clock. When the two part by more than 50 ms, look() says so: nothing is relied on until the daemon
 * has been asked. The time since boot also moves this clock on.
 */
public final class BootClock {
    /** By how much the clocks may part. /proc/uptime has hundredths of a second, and so may be 10 ms late. */
    private static final long APART = TimeUnit.MILLISECONDS.toNanos(50);

    /** How far apart two clocks may be read that are compared. */
    private static final long TOGETHER = TimeUnit.MILLISECONDS.toNanos(5);

    private final ReentrantLock mutex = new ReentrantLock();
    private final LongSupplier steady;
    private final LongSupplier other;
    private final boolean moves;
    /** What other() was ahead of steady() when they were last together. */
    private long ahead;
    private volatile long offset;

    /** The clock of this machine. */
    public static BootClock ofThisMachine() {
        try {
            return new BootClock(System::nanoTime, new Uptime("/proc/uptime"), true);
        } catch (IOException none) {
            return new BootClock(System::nanoTime, () -> TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()), false);
        }
    }

    /** A clock of two others. moves: what other() is ahead by is time that has passed; else it may have been set. */
    public BootClock(LongSupplier steady, LongSupplier other, boolean moves) {
        this.steady = steady;
        this.other = other;
        this.moves = moves;
        this.ahead = compare(1000);
        this.offset = TimeUnit.SECONDS.toNanos(1) - steady.getAsLong(); // times are small and positive
    }

    /** The time now, without a look. */
    public long now() {
        return steady.getAsLong() + offset;
    }

    /**
     * By how much other() is ahead of steady() at least. A thread that was stopped between the two reads them again, so often at the most: what this says may be
     * too small then, and is never too large.
     */
    private long compare(int tries) {
        long before = steady.getAsLong();
        long seen = other.getAsLong();
        long after = steady.getAsLong();
        return after - before > TOGETHER && tries > 1 ? compare(tries - 1) : seen - after;
    }

    /** Whether the clock has stood still since the last look. */
    public boolean look() {
        mutex.lock();
        try {
            long apart = compare(3) - ahead;
            if (apart > APART) {
                ahead += apart;
                offset += moves ? apart : 0;
                return true;
            }
            if (apart < -APART && !moves) { // the wall clock was set back
                ahead += apart;
            }
            return false;
        } finally {
            mutex.unlock();
        }
    }

    /** The time since boot. */
    static final class Uptime implements LongSupplier {
        private final RandomAccessFile file;
        private final byte[] bytes = new byte[32];

        Uptime(String path) throws IOException {
            file = new RandomAccessFile(path, "r");
            if (read() < 0) {
                file.close();
                throw new IOException(path);
            }
        }

        @Override
        public long getAsLong() {
            try {
                return read();
            } catch (IOException gone) {
                return System.nanoTime(); // it cannot be compared any more
            }
        }

        private long read() throws IOException {
            file.seek(0);
            int length = file.read(bytes);
            long value = 0;
            int decimals = -1;
            for (int at = 0; at < length && decimals < 9; at++) {
                if (bytes[at] == '.') {
                    decimals = 0;
                } else if (bytes[at] >= '0' && bytes[at] <= '9') {
                    value = value * 10 + bytes[at] - '0';
                    decimals = decimals < 0 ? decimals : decimals + 1;
                } else {
                    break;
                }
            }
            if (decimals < 0) {
                return -1;
            }
            for (; decimals < 9; decimals++) {
                value *= 10;
            }
            return value;
        }
    }
}
