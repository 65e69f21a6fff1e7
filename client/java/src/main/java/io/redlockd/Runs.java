// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Words;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The records of {@link RedlockClient#once} and of {@code redlock once}: the result of the last run is a job of the queue once/NAME, which nobody takes. It is
 * due when the next run may begin, by the clock of its home.
 */
final class Runs {
    private static final int MOST = 8; // one, and what runs left that broke off between two requests
    private static final String BEGAN = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ";
    private static final Pattern RECORD = Pattern.compile("^host=(\\S+) began=(" + BEGAN + ") took_ms=(-?\\d{1,18}) status=(-?\\d{1,9})");

    private final RedlockClient client;
    private final String queue;
    private final List<String> old = new ArrayList<>(1);
    private final Instant began;
    private final long begun;
    private Outcome last;

    /** Reads the records. The run begins when they are there. */
    Runs(RedlockClient client, String name) {
        this.client = client;
        this.queue = "once/" + name;
        for (Map<String, String> row : client.ask("LIST jobs prefix=" + Words.quote(queue) + " limit=" + MOST).rows()) {
            Matcher found = RECORD.matcher(row.getOrDefault("payload", ""));
            if (found.find()) {
                old.add(row.get("job"));
                Duration next = Duration.ofMillis(Long.parseLong(row.getOrDefault("due_ms", "0")));
                if (last == null || next.compareTo(last.next()) > 0) {
                    Duration took = Duration.ofMillis(Long.parseLong(found.group(3)));
                    last = new Outcome(found.group(1), Instant.parse(found.group(2)), took, Integer.parseInt(found.group(4)), next);
                }
            }
        }
        began = Instant.now().truncatedTo(ChronoUnit.SECONDS);
        begun = client.now();
    }

    /** The result of the last run; null: none is known. */
    Outcome last() {
        return last;
    }

    /** Records the run that ends now, if its lock is held, and then drops the old records. */
    Outcome end(HeldLock lock, int status, Duration every) {
        Duration took = Duration.ofNanos(client.now() - begun);
        Duration next = every.compareTo(took) > 0 ? every.minus(took) : Duration.ZERO;
        lock.ensure(Duration.ZERO);
        String record = "host=" + host() + " began=" + began + " took_ms=" + took.toMillis() + " status=" + status;
        client.defer(queue, record.getBytes(StandardCharsets.UTF_8), next, null, null);
        try {
            old.forEach(job -> client.ask("DROP " + Words.quote(queue) + " " + Words.quote(job)));
        } catch (RedlockException left) {
            old.clear(); // the next run drops them
        }
        return new Outcome(host(), began, took, status, next);
    }

    private static String host() {
        try {
            Path ofLinux = Path.of("/proc/sys/kernel/hostname"); // InetAddress asks whether the name resolves
            String name = Files.isReadable(ofLinux) ? Files.readString(ofLinux).strip() : InetAddress.getLocalHost().getHostName();
            return name.substring(0, Math.min(name.length(), 64));
        } catch (IOException nameless) {
            return "?";
        }
    }
}
