// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Puts lines together from the pieces in which they arrive. */
final class LineReader {
    /** The longest line that the daemon sends, LF included: a reply with the payload of a job. */
    private static final int LINE_MOST = 139264;

    private byte[] kept = new byte[1024];
    private int length;

    /** The lines that are complete now, without their ends. */
    List<String> feed(ByteBuffer data) {
        int added = data.remaining();
        if (length + added > kept.length) {
            kept = Arrays.copyOf(kept, Math.max(2 * kept.length, length + added));
        }
        data.get(kept, length, added);
        List<String> lines = new ArrayList<>(1);
        int begin = 0;
        int end = length + added;
        for (int at = length; at < end; at++) {
            if (kept[at] == '\n') {
                int last = at > begin && kept[at - 1] == '\r' ? at - 1 : at;
                lines.add(new String(kept, begin, last - begin, StandardCharsets.ISO_8859_1));
                begin = at + 1;
            }
        }
        length = end - begin;
        System.arraycopy(kept, begin, kept, 0, length);
        if (length > LINE_MOST) {
            throw new ProtocolError("a line without an end");
        }
        return lines;
    }
}
