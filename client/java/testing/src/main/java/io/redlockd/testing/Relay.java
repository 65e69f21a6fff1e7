// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A connection of a client. Passes lines on to a daemon and back, or to the fake, and knows what was granted. */
final class Relay {
    /** What was granted, by name and owner: the fields of a push. */
    private final Map<List<String>, String> grants = new HashMap<>();
    /** The owners of requests by tag. */
    private final Map<String, String> owners = new HashMap<>();
    private final TestServer server;
    private final SocketChannel client;
    private final FakeDaemon fake;
    private final SocketChannel daemon;

    Relay(TestServer server, SocketChannel client, FakeDaemon fake, Path back) throws IOException {
        this.server = server;
        this.client = client;
        this.fake = fake;
        this.daemon = fake != null ? null : SocketChannel.open(StandardProtocolFamily.UNIX);
        if (daemon != null) {
            daemon.connect(UnixDomainSocketAddress.of(back));
        }
    }

    void start() {
        Threads.start("redlockd-test-client", () -> pump(client, this::request));
        if (daemon != null) {
            Threads.start("redlockd-test-daemon", () -> pump(daemon, this::answer));
        }
    }

    /** What to do with a line. */
    private interface Each {
        void line(String line) throws IOException;
    }

    private void pump(SocketChannel from, Each each) {
        try (BufferedReader lines = new BufferedReader(Channels.newReader(from, StandardCharsets.ISO_8859_1))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                server.whileFrozen();
                each.line(line);
            }
        } catch (IOException ended) {
            close();
        }
        close();
    }

    private void request(String text) throws IOException {
        Line line = new Line(text);
        String instead = server.insteadOf(line.verb());
        if (instead != null) {
            answer((line.tag + " " + instead).strip());
            return;
        }
        remember(line);
        if (fake != null) {
            fake.request(this, line);
        } else {
            write(daemon, text);
        }
    }

    private synchronized void remember(Line line) {
        if (!line.tag.isEmpty() && line.fields.containsKey("owner")) {
            owners.put(line.tag, line.field("owner"));
        }
        if (line.verb().equals("UNLOCK") || line.verb().equals("RELEASE")) {
            grants.remove(List.of(line.names().get(0), line.field("owner")));
        }
    }

    /** A line of the daemon, or of the fake. */
    void answer(String text) {
        Line line = new Line(text);
        synchronized (this) {
            String owner = owners.get(line.tag);
            if (owner != null && line.fields.containsKey("fence") && line.fields.containsKey("ttl_ms")) {
                String permit = line.fields.containsKey("permit") ? " permit=" + line.field("permit") : "";
                grants.put(List.of(line.field("name"), owner),
                        "name=" + Line.quote(line.field("name")) + " fence=" + line.field("fence") + permit + " owner=" + owner);
            }
            if (!line.tag.isEmpty() && !line.verb().equals("*")) {
                owners.remove(line.tag);
            }
        }
        tell(text);
    }

    /** Writes to the client. What goes wrong ends the connection, which is seen by the thread that reads. */
    private void tell(String text) {
        try {
            write(client, text);
        } catch (IOException broken) {
            end(client);
        }
    }

    void risk(String name) {
        String raw = Line.raw(name);
        List<String> pushes;
        synchronized (this) {
            pushes = grants.entrySet().stream().filter(grant -> grant.getKey().get(0).equals(raw)).map(grant -> "! RISK left_ms=1000 " + grant.getValue())
                    .toList();
        }
        pushes.forEach(this::tell);
    }

    private void write(SocketChannel to, String line) throws IOException {
        server.whileFrozen();
        synchronized (to) {
            ByteBuffer bytes = ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.ISO_8859_1));
            while (bytes.hasRemaining()) {
                to.write(bytes);
            }
        }
    }

    void close() {
        server.gone(this);
        if (fake != null) {
            fake.gone(this);
        }
        end(client);
        if (daemon != null) {
            end(daemon);
        }
    }

    private static void end(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException gone) {
            return;
        }
    }
}
