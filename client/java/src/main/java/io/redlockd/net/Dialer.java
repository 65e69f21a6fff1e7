// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.net;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketOption;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.net.UnknownHostException;
import java.nio.channels.SocketChannel;
import java.util.Map;

/** Opens connections. */
final class Dialer {
    /** By keepalive even a client that waits for ever notices that the host of the daemon is gone. */
    private static final Map<String, Object> TUNING = Map.of("TCP_NODELAY", true, "SO_KEEPALIVE", true, "TCP_KEEPIDLE", 30, "TCP_KEEPINTERVAL", 10,
            "TCP_KEEPCOUNT", 3);

    private final Place place;
    private final TlsFiles files;
    private final long millis;

    Dialer(Place place, TlsFiles files, long millis) {
        this.place = place;
        this.files = files;
        this.millis = millis;
    }

    /** A connection that never blocks from here on. An interrupt of this thread ends the attempt. */
    Link dial() throws IOException {
        SocketChannel channel = place.path() != null ? unix() : tcp();
        try {
            channel.configureBlocking(false);
            if (!place.tls()) {
                return new PlainLink(channel);
            }
            TlsLink link = new TlsLink(channel, files.engine(place));
            link.shakeHands(millis);
            return link;
        } catch (IOException | RuntimeException wrong) {
            channel.close();
            throw wrong;
        }
    }

    private SocketChannel unix() throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            channel.connect(UnixDomainSocketAddress.of(place.path()));
            return channel;
        } catch (IOException | RuntimeException wrong) {
            channel.close();
            throw wrong;
        }
    }

    private SocketChannel tcp() throws IOException {
        IOException last = null;
        for (InetAddress address : addresses()) {
            SocketChannel channel = SocketChannel.open();
            try {
                channel.socket().connect(new InetSocketAddress(address, place.port()), (int) millis);
                for (SocketOption<?> option : channel.supportedOptions()) {
                    tune(channel, option);
                }
                return channel;
            } catch (IOException wrong) {
                channel.close();
                last = wrong;
            }
        }
        throw last != null ? last : new IOException("no address");
    }

    private InetAddress[] addresses() throws IOException {
        try {
            return InetAddress.getAllByName(place.host());
        } catch (UnknownHostException unknown) {
            throw new IOException("there is no host of this name", unknown);
        }
    }

    private static <T> void tune(SocketChannel channel, SocketOption<T> option) throws IOException {
        Object value = TUNING.get(option.name());
        if (value != null && option != StandardSocketOptions.SO_LINGER) {
            channel.setOption(option, option.type().cast(value));
        }
    }
}
