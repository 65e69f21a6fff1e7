// SPDX-License-Identifier: BSD-2-Clause
import io.redlockd.RedlockClient;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Pairs a second of lock and unlock: redlockd ADDRESS SECONDS, or redisson HOST:PORT[,HOST:PORT …] SECONDS. Half a second before does not count. With 0 seconds
 * it takes and releases a lock as it is told, and prints when.
 */
public final class Speed {
    private Speed() {
    }

    public static void main(String[] args) {
        double seconds = Double.parseDouble(args[2]);
        if (args[0].equals("redlockd")) {
            try (RedlockClient client = RedlockClient.connect(args[1])) {
                measure(client.lock("bench"), seconds);
            }
            return;
        }
        List<RedissonClient> clients = Arrays.stream(args[1].split(",")).map(Speed::redisson).toList();
        RLock[] locks = clients.stream().map(client -> client.getLock("bench")).toArray(RLock[]::new);
        measure(locks.length == 1 ? locks[0] : clients.get(0).getMultiLock(locks), seconds);
        clients.forEach(RedissonClient::shutdown);
    }

    private static RedissonClient redisson(String address) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + address);
        return Redisson.create(config);
    }

    private static void measure(Lock lock, double seconds) {
        if (seconds == 0) {
            handOver(lock);
            return;
        }
        pairs(lock, Math.max(0.5, seconds / 2));
        System.out.println(pairs(lock, seconds));
    }

    private static void handOver(Lock lock) {
        for (Scanner in = new Scanner(System.in); in.hasNextLine();) {
            boolean takes = in.nextLine().equals("lock");
            long at = System.nanoTime(); // of CLOCK_MONOTONIC: the same in all processes
            if (takes) {
                lock.lock();
                at = System.nanoTime();
            } else {
                lock.unlock();
            }
            System.out.printf(Locale.ROOT, "%.6f%n", at / 1e9);
        }
    }

    private static double pairs(Lock lock, double seconds) {
        long begun = System.nanoTime();
        long pairs = 0;
        for (; System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(1) * seconds; pairs++) {
            lock.lock();
            lock.unlock();
        }
        return pairs / ((System.nanoTime() - begun) / 1e9);
    }
}
