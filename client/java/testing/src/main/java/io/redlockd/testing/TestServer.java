// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

import io.redlockd.HeldLock;
import io.redlockd.RedlockClient;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A redlockd for tests, without JUnit: a relay in front of a daemon, or of a fake. Its socket is in a private folder, which is removed at the end. */
public final class TestServer implements AutoCloseable {
    private static final String[] TAKES = {"LOCK", "LOCKALL", "LOCKANY", "ACQUIRE", "EXTEND"};

    private final Path folder;
    private final Path socket;
    private final ServerSocketChannel listener;
    private final Process daemon;
    private final RedlockClient admin;
    private final FakeDaemon fake;
    private final Set<Relay> relays = ConcurrentHashMap.newKeySet();
    private final Gate gate = new Gate();
    private volatile boolean noQuorum;

    private TestServer(String program) {
        try {
            folder = Files.createTempDirectory("redlockd-test-");
            socket = folder.resolve("front");
            Path back = folder.resolve("back");
            daemon = program == null ? null : start(program, back);
            fake = program == null ? new FakeDaemon() : null;
            admin = program == null ? null : RedlockClient.connect(back.toString());
            listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(UnixDomainSocketAddress.of(socket));
        } catch (IOException wrong) {
            throw new UncheckedIOException(wrong);
        }
        Threads.start("redlockd-test", this::accept);
    }

    /**
     * Whether the program redlockd is found, by the variable REDLOCKD or in PATH.
     *
     * @return false: there can only be a fake
     */
    public static boolean hasDaemon() {
        return program() != null;
    }

    /**
     * A daemon on the memory store.
     *
     * @return the server
     */
    public static TestServer daemon() {
        String program = program();
        if (program == null) {
            throw new IllegalStateException("no redlockd: neither REDLOCKD nor PATH has it");
        }
        return new TestServer(program);
    }

    /**
     * A fake inside this process, without queues of jobs.
     *
     * @return the server
     */
    public static TestServer fake() {
        return new TestServer(null);
    }

    private static String program() {
        String given = System.getenv("REDLOCKD");
        if (given != null && !given.isEmpty()) {
            return given;
        }
        return Stream.of(System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)).map(part -> Path.of(part, "redlockd"))
                .filter(Files::isExecutable).map(Path::toString).findFirst().orElse(null);
    }

    private Process start(String program, Path back) throws IOException {
        List<String> argv = List.of(program, "--set", "listen.unix=" + back, "--set", "listen.tcp=no", "--set", "runtime_dir=" + folder);
        Process process = new ProcessBuilder(argv).redirectErrorStream(true).redirectOutput(folder.resolve("log").toFile()).start();
        for (int tries = 0; tries < 1000 && !Files.exists(back); tries++) {
            if (!process.isAlive()) {
                throw new IOException(program + " ended: " + Files.readString(folder.resolve("log")));
            }
            pause();
        }
        return process;
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(10);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while redlockd started");
        }
    }

    private void accept() {
        try {
            while (listener.isOpen()) {
                SocketChannel client = listener.accept();
                Relay relay = new Relay(this, client, fake, folder.resolve("back"));
                relays.add(relay);
                relay.start();
            }
        } catch (IOException closed) {
            return;
        }
    }

    /** Waits while the server is frozen. */
    void whileFrozen() {
        gate.await();
    }

    /** An answer that is given instead of one of the daemon, or null. */
    String insteadOf(String verb) {
        return noQuorum && List.of(TAKES).contains(verb) ? "ERR QUORUM 1 of 3 stores can be used" : null;
    }

    void gone(Relay relay) {
        relays.remove(relay);
    }

    /**
     * Where clients connect.
     *
     * @return the path of the socket
     */
    public String address() {
        return socket.toString();
    }

    /**
     * All who hold this lose it.
     *
     * @param name a lock or a semaphore
     */
    public void lose(String name) {
        if (fake != null) {
            fake.lose(Line.raw(name));
        } else {
            admin.ask("BREAK " + Line.quote(name));
        }
    }

    /**
     * All who hold this are told that a renewal is late, and that they hold it for one second more.
     *
     * @param name a lock or a semaphore
     */
    public void risk(String name) {
        relays.forEach(relay -> relay.risk(name));
    }

    /**
     * Nothing is answered for so long, beginning now.
     *
     * @param time the time
     */
    public void freeze(Duration time) {
        gate.close(time);
    }

    /**
     * Whether too few stores can be used, so that nothing is granted or renewed at a request.
     *
     * @param missing false: all is well again
     */
    public void noQuorum(boolean missing) {
        noQuorum = missing;
    }

    /**
     * Somebody else holds a lock.
     *
     * @param name a lock that is free
     * @return closing it frees the lock
     */
    public Elsewhere heldElsewhere(String name) {
        if (fake != null) {
            return fake.heldElsewhere(Line.raw(name));
        }
        try {
            HeldLock held = admin.hold(name, Duration.ofSeconds(5));
            return held::close;
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", ended);
        }
    }

    /** Ends the daemon and all connections. */
    @Override
    public void close() {
        try {
            listener.close();
            relays.forEach(Relay::close);
            if (daemon != null) {
                admin.close();
                daemon.destroy();
                daemon.onExit().join();
            }
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        } catch (IOException wrong) {
            throw new UncheckedIOException(wrong);
        }
    }
}
