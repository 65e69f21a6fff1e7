// SPDX-License-Identifier: BSD-2-Clause
import io.redlockd.ClientBuilder;
import io.redlockd.Held;
import io.redlockd.HeldLock;
import io.redlockd.Job;
import io.redlockd.LockLostException;
import io.redlockd.LockOptions;
import io.redlockd.Rate;
import io.redlockd.RedlockClient;
import io.redlockd.RedlockException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The adapter of the Java client: JSON lines in, JSON lines out (../README.md). Each call is a thread; abort interrupts it. */
public final class Adapter {
    private final Map<String, RedlockClient> clients = new ConcurrentHashMap<>();
    private final Map<String, Held> locks = new ConcurrentHashMap<>();
    private final Map<Object, Thread> calls = new ConcurrentHashMap<>();

    public static void main(String[] args) throws IOException {
        Adapter adapter = new Adapter();
        say(row("id", "hello", "can", List.of("finaliser", "threads", "once-left")));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Args a = new Args(Json.object(line));
            Thread thread = new Thread(() -> adapter.run(a));
            thread.setDaemon(true);
            adapter.calls.put(a.get("id"), thread);
            thread.start();
        }
    }

    /** The row of a call. */
    private record Args(Map<String, Object> row) {
        Object get(String key) {
            return row.get(key);
        }

        String text(String key) {
            return (String) row.get(key);
        }

        int whole(String key, int otherwise) {
            return row.get(key) instanceof Number number ? number.intValue() : otherwise;
        }

        /** Seconds of the row as a duration; null: there are none. */
        Duration duration(String key) {
            return row.get(key) instanceof Number number ? Duration.ofNanos(Math.round(number.doubleValue() * 1e6) * 1000) : null;
        }

        Duration duration(String key, Duration otherwise) {
            return duration(key) == null ? otherwise : duration(key);
        }

        boolean is(String key) {
            return Boolean.TRUE.equals(row.get(key));
        }

        @SuppressWarnings("unchecked")
        Collection<String> names() {
            return (List<String>) row.get("names");
        }

        LockOptions options() {
            LockOptions made = LockOptions.DEFAULT.priority(whole("priority", 0));
            made = duration("wait") == null ? made : made.waiting(duration("wait"));
            made = duration("ttl") == null ? made : made.ttl(duration("ttl"));
            made = text("note") == null ? made : made.note(text("note"));
            made = text("trace") == null ? made : made.trace(text("trace"));
            return is("shared") ? made.shared() : made;
        }
    }

    private static Map<String, Object> row(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) {
            made.put((String) pairs[at], pairs[at + 1]);
        }
        return made;
    }

    private static synchronized void say(Map<String, Object> row) {
        System.out.print(Json.write(row) + "\n");
        System.out.flush();
    }

    private static double seconds(Duration duration) {
        return duration.toNanos() / 1e9;
    }

    private void run(Args a) {
        Map<String, Object> row = row("id", a.get("id"));
        try {
            row.put("ok", call(a));
        } catch (InterruptedException aborted) {
            row.put("error", "Aborted");
        } catch (RedlockException wrong) {
            String name = wrong.getClass().getSimpleName().replace("Exception", "");
            row.putAll(row("error", name.equals("Redlock") ? "RedlockError" : name, "text", wrong.getMessage(), "code", wrong.code(), "name", wrong.name(),
                    "holder", wrong.holder(), "trace", wrong.trace(), "retry_after", wrong.retryAfter() == null ? null : seconds(wrong.retryAfter())));
            if (wrong instanceof LockLostException lost) {
                row.put("reason", lost.reason());
            }
        } catch (Exception wrong) {
            row.putAll(row("error", wrong.getClass().getSimpleName(), "text", String.valueOf(wrong.getMessage())));
        }
        calls.remove(a.get("id"));
        say(row);
    }

    /** What a function of once throws. */
    private static final class Failed extends Exception {
        private static final long serialVersionUID = 1;
    }

    private Object call(Args a) throws Exception {
        String handle = a.text("lock");
        if (a.text("do").equals("drop")) { // before anything here refers to it
            return row("warned", dropped(handle));
        }
        Held lock = handle == null ? null : locks.get(handle);
        RedlockClient client = clients.get(a.get("client") == null ? "c" : a.text("client"));
        return switch (a.text("do")) {
            case "connect" -> connect(a);
            case "lock" -> acquired(handle, client.hold(a.text("name"), a.options()));
            case "locks" -> acquired(handle, client.locks(a.names(), a.options()));
            case "any" -> acquired(handle, client.anyLock(a.names(), a.options()));
            case "semaphore" -> acquired(handle, client.semaphore(a.text("name"), a.whole("limit", 1), a.options()).acquire());
            case "unlock" -> {
                locks.remove(handle);
                ((HeldLock) lock).release(a.duration("keep", Duration.ZERO), a.is("sync"));
                yield null;
            }
            case "ensure" -> row("remaining", seconds(lock.ensure(a.duration("seconds", Duration.ZERO))));
            case "extend" -> row("remaining", seconds(lock.extend(a.duration("ttl", Duration.ZERO))));
            case "state" -> row("held", lock.isHeld(), "lost", lock.isLost(), "reason", lock.reason(), "remaining", seconds(lock.remaining()),
                    "fence", lock.fence());
            case "rate" -> {
                Rate rate = client.rate(a.text("name"), a.whole("limit", 1), a.duration("per"), a.whole("cost", 1), a.duration("wait", Duration.ZERO));
                yield row("left", rate.left(), "reset", seconds(rate.reset()));
            }
            case "defer" -> row("id", client.defer(a.text("queue"), a.text("payload").getBytes(StandardCharsets.UTF_8), a.duration("delay", Duration.ZERO),
                    a.text("with"), a.text("job")));
            case "take" -> {
                Job job = client.job(a.text("queue"), a.options());
                watch(handle, job);
                yield row("id", job.id(), "payload", job.text(), "attempt", job.attempt(), "fence", job.fence());
            }
            case "once" -> row("ran", client.once(a.text("name"), a.duration("every"), () -> {
                Thread.sleep(a.duration("lasts", Duration.ZERO).toMillis());
                if (a.is("fails")) {
                    throw new Failed();
                }
                return null;
            }).isPresent());
            case "status" -> client.onceStatus(a.text("name")).map(last -> row("ran", true, "host", last.host(), "began", last.began().toString(),
                    "took", seconds(last.took()), "status", last.status(), "next", seconds(last.next()))).orElseGet(() -> row("ran", false));
            case "done" -> {
                ((Job) locks.remove(handle)).done();
                yield null;
            }
            case "retry" -> {
                ((Job) locks.remove(handle)).retry(a.duration("delay", Duration.ZERO), !Boolean.FALSE.equals(a.get("failed")));
                yield null;
            }
            case "abort" -> {
                Thread thread = calls.get(a.get("call"));
                if (thread != null) {
                    thread.interrupt();
                }
                yield null;
            }
            case "close" -> {
                clients.remove("c").close();
                yield null;
            }
            case "reset" -> {
                locks.clear();
                clients.values().forEach(RedlockClient::close);
                clients.clear();
                yield null;
            }
            default -> throw new IllegalArgumentException(a.text("do"));
        };
    }

    private Object connect(Args a) {
        ClientBuilder builder = RedlockClient.builder().grace(a.duration("grace", Duration.ZERO)).heartbeat(a.duration("heartbeat", Duration.ZERO))
                .timeout(Duration.ofMinutes(1)).onRisk(held -> tell("risk", held)); // TLS takes long in a machine that was started just now
        if (a.get("address") != null) {
            builder.address(a.text("address"));
        }
        if (a.get("label") != null) {
            builder.label(a.text("label"));
        }
        clients.put(a.get("client") == null ? "c" : a.text("client"), builder.connect());
        return null;
    }

    private Object acquired(String handle, HeldLock lock) {
        watch(handle, lock);
        return row("name", lock.name(), "fence", lock.fence(), "fences", lock.fences(), "permit", lock.permit().isPresent() ? lock.permit().getAsInt() : null,
                "remaining", seconds(lock.remaining()));
    }

    private void watch(String handle, Held lock) {
        locks.put(handle, lock);
        lock.onLost(held -> tell("lost", held));
    }

    private void tell(String kind, Held held) {
        locks.forEach((handle, lock) -> {
            if (lock == held) {
                say(row("event", kind, "lock", handle, "name", held.name(), "reason", held.reason()));
            }
        });
    }

    /** Lets the last reference to a lock go, and says whether that was warned about. */
    private boolean dropped(String handle) throws InterruptedException {
        boolean[] warned = {false};
        Logger logger = Logger.getLogger("io.redlockd");
        logger.setUseParentHandlers(false);
        logger.addHandler(new Handler() {
            @Override
            public void publish(LogRecord record) {
                warned[0] |= record.getLevel().equals(Level.WARNING);
            }

            @Override
            public void flush() {
                return;
            }

            @Override
            public void close() {
                return;
            }
        });
        locks.remove(handle);
        for (int tries = 0; tries < 20 && !warned[0]; tries++) {
            System.gc();
            Thread.sleep(50);
        }
        return warned[0];
    }
}
