// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import io.redlockd.core.Settings;
import io.redlockd.core.Words;
import io.redlockd.net.BootClock;
import io.redlockd.net.Place;
import io.redlockd.net.TlsFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

/** How a {@link RedlockClient} connects. What is not said comes from the environment, by the same variables as in libredlock(3). */
public final class ClientBuilder {
    private String address;
    private String label;
    private Duration grace = Duration.ZERO;
    private Duration heartbeat = Duration.ZERO;
    private Duration timeout = Duration.ofSeconds(5);
    private String user;
    private String secret;
    private TlsFiles tls = new TlsFiles(null, null, null, null);
    private Consumer<? super Held> onLost;
    private Consumer<? super Held> onRisk;
    private BootClock clock;

    ClientBuilder() {
    }

    /**
     * Where the daemon is: else REDLOCK_ADDR, else the daemon of this host.
     *
     * @param address the path of a Unix socket, host:port, [v6]:port or tls://host:port
     * @return this
     */
    public ClientBuilder address(String address) {
        this.address = address;
        return this;
    }

    /**
     * Who we are, to those who wait for us: else the name of the program.
     *
     * @param label at most 256 bytes
     * @return this
     */
    public ClientBuilder label(String label) {
        this.label = label;
        return this;
    }

    /**
     * For how long the locks outlive a broken connection, and a crash of the daemon. But when this process is killed, others wait for them that long as well.
     *
     * @param grace zero: not at all
     * @return this
     */
    public ClientBuilder grace(Duration grace) {
        this.grace = grace;
        return this;
    }

    /**
     * The daemon ends the session when this process is stopped for longer.
     *
     * @param heartbeat zero: never
     * @return this
     */
    public ClientBuilder heartbeat(Duration heartbeat) {
        this.heartbeat = heartbeat;
        return this;
    }

    /**
     * How long an attempt to connect may take: else five seconds.
     *
     * @param timeout the longest time
     * @return this
     */
    public ClientBuilder timeout(Duration timeout) {
        this.timeout = timeout;
        return this;
    }

    /**
     * User and secret: else REDLOCK_USER, and the first line of REDLOCK_SECRET_FILE, or REDLOCK_SECRET.
     *
     * @param user the name
     * @param secret the secret, which stands in no text
     * @return this
     */
    public ClientBuilder user(String user, String secret) {
        this.user = user;
        this.secret = secret;
        return this;
    }

    /**
     * Files in PEM for an address with tls://: else REDLOCK_TLS_CA, REDLOCK_TLS_CERT, REDLOCK_TLS_KEY and REDLOCK_TLS_NAME.
     *
     * @param ca who is trusted; null: the authorities of Java
     * @param cert our certificate, or null
     * @param key its key in PKCS #8, or null if it is in the same file
     * @param serverName what the certificate of the daemon is for; null: its host
     * @return this
     */
    public ClientBuilder tls(Path ca, Path cert, Path key, String serverName) {
        this.tls = new TlsFiles(ca, cert, key, serverName);
        return this;
    }

    /**
     * A function that is called with each lock that is lost, in a thread of the client.
     *
     * @param function what is called
     * @return this
     */
    public ClientBuilder onLost(Consumer<? super Held> function) {
        this.onLost = function;
        return this;
    }

    /**
     * A function that is called with each lock whose renewal failed or is late.
     *
     * @param function what is called
     * @return this
     */
    public ClientBuilder onRisk(Consumer<? super Held> function) {
        this.onRisk = function;
        return this;
    }

    /** For tests. */
    ClientBuilder clock(BootClock other) {
        this.clock = other;
        return this;
    }

    /**
     * Connects.
     *
     * @return the client
     * @throws DisconnectedException there is no daemon; the text names the address
     * @throws DeniedException the daemon does not accept the user
     * @throws IllegalArgumentException the address is none
     */
    public RedlockClient connect() {
        if (user == null) {
            credentials();
        }
        String text = address != null ? address : Place.byDefault();
        String shown = label != null ? label : program();
        Settings settings = new Settings(text, shown == null ? null : Words.raw(shown), grace.toNanos(), heartbeat.toNanos(),
                user == null ? null : Words.raw(user), secret == null ? null : Words.raw(secret));
        RedlockClient client = new RedlockClient(settings, Place.of(text), this, clock != null ? clock : BootClock.ofThisMachine());
        client.open();
        return client;
    }

    private void credentials() {
        String name = Place.environment("REDLOCK_USER");
        String path = Place.environment("REDLOCK_SECRET_FILE");
        if (name == null) {
            return;
        }
        String word = path == null ? Place.environment("REDLOCK_SECRET") : firstLine(Path.of(path));
        if (word == null || word.isEmpty()) {
            throw new IllegalArgumentException("REDLOCK_USER is set, but neither REDLOCK_SECRET_FILE nor REDLOCK_SECRET has a secret");
        }
        user = name;
        secret = word;
    }

    private static String firstLine(Path path) {
        try {
            List<String> lines = Files.readAllLines(path, StandardCharsets.UTF_8);
            return lines.isEmpty() ? null : lines.get(0);
        } catch (IOException wrong) {
            throw new UncheckedIOException(wrong);
        }
    }

    /** The name of the main class, or of the jar. */
    private static String program() {
        String command = System.getProperty("sun.java.command", "");
        String first = command.split(" ", 2)[0];
        String name = first.substring(first.lastIndexOf('/') + 1);
        return name.isEmpty() ? null : name;
    }

    TlsFiles tls() {
        return tls.orEnvironment();
    }

    Duration timeout() {
        return timeout;
    }

    Consumer<? super Held> onLost() {
        return onLost;
    }

    Consumer<? super Held> onRisk() {
        return onRisk;
    }
}
