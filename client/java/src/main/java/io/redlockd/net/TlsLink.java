// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;

/** A connection inside TLS. */
final class TlsLink implements Link {
    private static final byte[] NOTHING = new byte[0];

    private final SocketChannel channel;
    private final SSLEngine engine;
    private final PlainLink plain;
    /** What has come and is not decrypted yet; ready to be read from. */
    private ByteBuffer arrived;
    private final ByteBuffer packet;

    TlsLink(SocketChannel channel, SSLEngine engine) {
        this.channel = channel;
        this.engine = engine;
        this.plain = new PlainLink(channel);
        int size = engine.getSession().getPacketBufferSize();
        this.arrived = ByteBuffer.allocate(2 * size).limit(0);
        this.packet = ByteBuffer.allocate(2 * size);
    }

    /** Waits until both sides trust each other. */
    void shakeHands(long millis) throws IOException {
        long until = System.nanoTime() + millis * 1_000_000;
        ByteBuffer none = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize());
        try (Selector selector = Selector.open()) {
            SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
            engine.beginHandshake();
            while (engine.getHandshakeStatus() != HandshakeStatus.NOT_HANDSHAKING) {
                boolean stuck = !step(none);
                if (stuck || plain.unsent()) {
                    long left = (until - System.nanoTime()) / 1_000_000;
                    if (left <= 0) {
                        throw new IOException("no TLS handshake in time");
                    }
                    key.interestOps(SelectionKey.OP_READ | (plain.unsent() ? SelectionKey.OP_WRITE : 0));
                    selector.select(left);
                    selector.selectedKeys().clear();
                    plain.write(NOTHING);
                }
            }
        }
    }

    /** One step of a handshake. False: it waits for bytes. */
    private boolean step(ByteBuffer into) throws IOException {
        switch (engine.getHandshakeStatus()) {
            case NEED_TASK -> runTasks();
            case NEED_WRAP -> wrap(ByteBuffer.wrap(NOTHING));
            case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
                return unwrap(into) || fill();
            }
            default -> { }
        }
        return true;
    }

    private void runTasks() {
        for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
            task.run();
        }
    }

    private void wrap(ByteBuffer data) throws IOException {
        do {
            packet.clear();
            SSLEngineResult result = engine.wrap(data, packet);
            byte[] bytes = new byte[packet.flip().remaining()];
            packet.get(bytes);
            plain.write(bytes);
            if (result.getStatus() == Status.CLOSED) {
                return;
            }
        } while (data.hasRemaining());
    }

    /** Decrypts one record. False: there is no whole one. */
    private boolean unwrap(ByteBuffer into) throws IOException {
        SSLEngineResult result = engine.unwrap(arrived, into);
        if (result.getStatus() == Status.CLOSED) {
            throw new EOFException("the daemon closed the connection");
        }
        return result.getStatus() == Status.OK;
    }

    /** Reads more bytes of the socket. False: there are none now. */
    private boolean fill() throws IOException {
        if (arrived.remaining() == arrived.capacity()) {
            throw new IOException("a TLS record is too long");
        }
        arrived.compact();
        int count = channel.read(arrived);
        arrived.flip();
        if (count < 0) {
            throw new EOFException("the daemon closed the connection");
        }
        return count > 0;
    }

    @Override
    public SocketChannel channel() {
        return channel;
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        int before = into.position();
        try {
            while (into.remaining() >= engine.getSession().getApplicationBufferSize() && (unwrap(into) || fill())) {
                HandshakeStatus status = engine.getHandshakeStatus();
                if (status == HandshakeStatus.NEED_TASK) {
                    runTasks();
                } else if (status == HandshakeStatus.NEED_WRAP) { // new keys
                    wrap(ByteBuffer.wrap(NOTHING));
                }
            }
        } catch (EOFException end) {
            return into.position() > before ? into.position() - before : -1;
        }
        return into.position() - before;
    }

    @Override
    public void write(byte[] bytes) throws IOException {
        if (bytes.length == 0) {
            plain.write(NOTHING);
        } else {
            wrap(ByteBuffer.wrap(bytes));
        }
    }

    @Override
    public boolean unsent() {
        return plain.unsent();
    }

    @Override
    public void close() {
        try {
            engine.closeOutbound();
            wrap(ByteBuffer.wrap(NOTHING)); // the farewell: an end without it is like a reset to the daemon
        } catch (IOException gone) { // it is closed all the same
            plain.close();
        }
        plain.close();
    }
}
