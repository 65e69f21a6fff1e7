# SPDX-License-Identifier: BSD-2-Clause
"""A network between clients and a daemon that can be cut."""
import contextlib
import socket
import threading

from wire import connect


class Relay:
    """Listens on addr, a port of this host, and passes on bytes to and from the daemon until it is cut. From then on nothing passes, and no end is told."""

    def __init__(self, daemon):
        self.daemon, self.whole, self.sockets = daemon, True, []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addr = self.server.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.server.accept()
                self.sockets.append(near)
                if not self.whole:
                    continue
                far = connect(self.daemon)
                far.settimeout(None)
                self.sockets.append(far)
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.whole:
                    target.sendall(data)
            if self.whole:
                target.shutdown(socket.SHUT_WR)

    def cut(self):
        self.whole = False

    def close(self):
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        for each in [self.server, *self.sockets]:
            each.close()
