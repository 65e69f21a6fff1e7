# SPDX-License-Identifier: BSD-2-Clause
"""A network between clients and a daemon that can be cut."""
import collections
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


class LosingRelay:
    """Passes on lines, and now and then loses an answer: the daemon has carried out the request, and the connection ends before the client reads that."""

    def __init__(self, daemon, loses=lambda verb: False, keeps=lambda verb: False):
        """loses(verb): whether the answer to this request is lost. keeps(verb): whether the request itself is, with the connection."""
        self.daemon, self.loses, self.keeps, self.lost, self.sockets = daemon, loses, keeps, 0, []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addr = "127.0.0.1:%d" % self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.server.accept()
                far = connect(self.daemon)
                far.settimeout(None)
                self.sockets += [near, far]
                asked = collections.deque()
                threading.Thread(target=self._ask, args=(near, far, asked), daemon=True).start()
                threading.Thread(target=self._answer, args=(near, far, asked), daemon=True).start()

    @staticmethod
    def _end(*sockets):
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _ask(self, near, far, asked):
        with contextlib.suppress(OSError):
            for line in near.makefile("rb"):
                if self.keeps(line.split()[0].decode()):
                    self._end(near)
                    break
                asked.append(line.split()[0].decode())
                far.sendall(line)
        self._end(far)

    def _answer(self, near, far, asked):
        rows = b""
        with contextlib.suppress(OSError):
            for line in far.makefile("rb"):
                if line.startswith(b"*"):
                    rows += line
                elif line.startswith(b"!"):
                    near.sendall(line)
                elif self.loses(asked.popleft()):
                    self.lost += 1
                    break
                else:
                    near.sendall(rows + line)
                    rows = b""
        self._end(near, far)

    def close(self):
        self._end(self.server, *self.sockets)
        for each in [self.server, *self.sockets]:
            each.close()
