// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** A connection as it is. */
final class PlainLink implements Link {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private final SocketChannel channel;
    private ByteBuffer unsent = NOTHING;

    PlainLink(SocketChannel channel) {
        this.channel = channel;
    }

    @Override
    public SocketChannel channel() {
        return channel;
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        return channel.read(into);
    }

    @Override
    public void write(byte[] bytes) throws IOException {
        if (unsent.hasRemaining()) {
            ByteBuffer both = ByteBuffer.allocate(unsent.remaining() + bytes.length);
            unsent = both.put(unsent).put(bytes).flip();
        } else {
            unsent = ByteBuffer.wrap(bytes);
        }
        channel.write(unsent);
        if (!unsent.hasRemaining()) {
            unsent = NOTHING;
        }
    }

    @Override
    public boolean unsent() {
        return unsent.hasRemaining();
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException gone) { // it is closed all the same
            return;
        }
    }
}
