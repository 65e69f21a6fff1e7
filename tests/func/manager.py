# SPDX-License-Identifier: BSD-2-Clause
"""A service manager for one daemon, as far as a restart needs it: it keeps descriptors (FDSTORE), and passes them to the next process."""
import array
import fcntl
import os
import select
import signal
import socket
import subprocess
import threading

from process import WAIT, spawn, until


class Manager:
    """Runs a Daemon that is not started. listeners: sockets that it passes to each process."""

    def __init__(self, daemon, listeners=(), keeps=True):
        self.daemon, self.listeners, self.keeps = daemon, list(listeners), keeps
        self.path = os.path.join(daemon.folder, "manager")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.store, self.said, self.deaf = [], [], False  # deaf: what it is told takes no effect
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    # --- what the daemon says ----------------------------------------------------------------------------------------

    def listen(self):
        while not self.stopped.is_set():
            if not select.select([self.sock], [], [], 0.05)[0]:
                continue
            data, control, _, _ = self.sock.recvmsg(4096, socket.CMSG_SPACE(16 * 4))
            fds = array.array("i")
            for _, _, payload in control:
                fds.frombytes(payload[:len(payload) // 4 * 4])
            self.hear(dict(word.partition("=")[::2] for word in data.decode().split("\n")), list(fds))

    def hear(self, words, fds):
        self.said.append(words)
        name = words.get("FDNAME")
        if "FDSTOREREMOVE" in words and not self.deaf:
            for kept in [kept for kept in self.store if kept[0] == name]:
                os.close(kept[1])
                self.store.remove(kept)
        elif "FDSTORE" in words and self.keeps and words.get("FDPOLL") == "0":
            self.store += [(name, fd) for fd in fds]
            fds = []
        for fd in fds:
            os.close(fd)

    def heard(self, key, value=None):
        return any(key in words and value in (None, words[key]) for words in self.said)

    # --- what it does ------------------------------------------------------------------------------------------------

    def start(self, extra=()):
        """Starts a process with the sockets, and with what is in the store. The store keeps its own copies."""
        daemon, names = self.daemon, []
        passed = [("socket", s.fileno()) for s in self.listeners] + self.store + list(extra)
        high = []
        for name, fd in passed:
            names.append(name)
            high.append(fcntl.fcntl(fd, fcntl.F_DUPFD, 200))
        moves = " ".join("%d<&%d %d<&-" % (3 + i, fd, fd) for i, fd in enumerate(high))
        listen = "LISTEN_PID=$$ LISTEN_FDS=%d LISTEN_FDNAMES=%s" % (len(high), ":".join(names)) if high else "NOTHING=1"
        script = "export %s; exec %s %s" % (listen, " ".join(daemon.argv or daemon.command()), moves)
        env = dict(daemon.env, NOTIFY_SOCKET=self.path)
        if self.keeps:
            env["REDLOCKD_FDSTORE"] = "yes"
        self.said.clear()
        with open(daemon.log_path, "ab") as log:
            daemon.process = spawn(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=high, env=env)
        daemon.expect_dead = False
        for fd in high:
            os.close(fd)
        return self

    def ready(self):
        until(lambda: self.heard("READY") or not self.daemon.alive(), "the daemon is ready")
        if not self.daemon.alive():
            raise AssertionError("the daemon has ended:\n" + self.daemon.log())
        return self

    def end(self, number=signal.SIGTERM):
        self.daemon.expect_dead = True
        self.daemon.send_signal(number)
        return self.daemon.process.wait(WAIT)

    def restart(self):
        """What `systemctl restart` does."""
        status = self.end()
        if status != 0:
            raise AssertionError("the daemon ended with status %d:\n%s" % (status, self.daemon.log()))
        return self.start().ready()

    def drop(self):
        """What `systemctl stop` does once the process has ended."""
        for _, fd in self.store:
            os.close(fd)
        self.store.clear()

    def names(self):
        return sorted(name for name, _ in self.store)

    def close(self):
        self.stopped.set()
        self.thread.join()
        self.drop()
        self.sock.close()
