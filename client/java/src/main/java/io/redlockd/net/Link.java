// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** A connection that never blocks. */
interface Link {
    /** What is watched. */
    SocketChannel channel();

    /** Reads what is there into a buffer that is empty. -1: the other side has closed. */
    int read(ByteBuffer into) throws IOException;

    /** Writes what can be written now, of what it was given before as well. */
    void write(byte[] bytes) throws IOException;

    /** Whether bytes wait until more can be written. */
    boolean unsent();

    /** Ends the connection. */
    void close();
}
