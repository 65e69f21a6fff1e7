# SPDX-License-Identifier: BSD-2-Clause
"""Real redis-servers, each in a private folder on a private socket, and wall clocks that a test sets."""
import contextlib
import os
import shutil
import signal
import struct
import subprocess
import time

import redis  # Debian: python3-redis

from process import BUILD, WAIT, free_port, spawn, state_of, temp_folder, until

SERVER = os.environ.get("REDIS_SERVER") or "redis-server"  # the program under test besides redlockd
FENCE, MARKER = "redlockd:lock:!fence", "redlockd:lock:!meta"  # the keys that a daemon keeps beside its locks


def wall_us():
    return time.time_ns() // 1000


class Clock:
    """The wall clock of a process that runs with tests/clock_shim.c: beside the true one, and at a rate of its own."""

    def __init__(self, folder):
        self.path, self.offset_us, self.ppm, self.since_us = os.path.join(folder, "clock"), 0, 0, 0
        self.set(0)

    def set(self, seconds, ppm=0):
        """Sets the clock so many seconds ahead of the true one, whatever it was before. ppm: how much too fast it runs, in parts per million."""
        self._write(int(seconds * 1e6), ppm, wall_us())

    def set_rate(self, ppm):
        """Sets another rate from now on, without a step."""
        now_us = wall_us()
        self._write(self.offset_us + (now_us - self.since_us) // 1000 * self.ppm // 1000, ppm, now_us)

    def suspend(self, seconds):
        """Sets how long the host has been suspended in all, which CLOCK_MONOTONIC does not count."""
        self._put(32, "q", int(seconds * 1e6))

    def _write(self, offset_us, ppm, since_us):
        self.offset_us, self.ppm, self.since_us = offset_us, ppm, since_us
        self._put(0, "qqqq", offset_us, 0, ppm, since_us)

    def _put(self, at, layout, *values):
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack(layout, *values), at)
        os.close(fd)

    def env(self):
        return {"LD_PRELOAD": os.path.join(BUILD, "clock_shim.so"), "REDLOCK_TEST_CLOCK": self.path}


class Redis:
    """One redis-server. It forgets everything when it ends, unless save=True."""

    def __init__(self, tcp=False, save=False, clock=False, args=(), patience=WAIT):
        self.folder = temp_folder("redlockd-redis-")
        self.path = os.path.join(self.folder, "sock")
        self.port = free_port() if tcp else 0
        self.node = "unix:" + self.path
        self.clock = Clock(self.folder) if clock else None
        self.args = ["--port", str(self.port), "--unixsocket", self.path, "--dir", self.folder, "--appendonly", "no", "--bind", "127.0.0.1",
                     "--save", "3600 1" if save else "", "--logfile", os.path.join(self.folder, "log"), "--enable-debug-command", "local", *args]
        self.patience = patience  # seconds until it must answer after a start
        self.process, self.cli, self.password = None, None, None

    def start(self):
        env = dict(os.environ, **(self.clock.env() if self.clock else {}))
        self.process = spawn([SERVER, *self.args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.cli = redis.Redis(unix_socket_path=self.path, password=self.password, socket_timeout=WAIT)
        until(self._answers, "redis-server answers PING", self.patience)
        return self

    def _answers(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "log"), errors="replace") as log:
                raise AssertionError("redis-server ended: " + log.read()[-1000:])
        try:
            return self.cli.ping()
        except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
            return False

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def serves(self):
        """Whether the server runs and is not stopped."""
        return self.runs() and state_of(self.process.pid) != "T"

    def freeze(self):
        """SIGSTOP, and waits until it has taken effect."""
        self.process.send_signal(signal.SIGSTOP)
        until(lambda: state_of(self.process.pid) == "T", "redis-server is stopped")

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.cli.close()

    def restart(self):
        """Kills the server and starts it again, blank or with what it has saved."""
        if self.runs():
            self.kill()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        return self.start()

    def cut_connections(self, *kinds):
        """CLIENT KILL of these kinds of connections."""
        for kind in kinds or ("normal",):
            self.cli.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    def calls(self):
        """{command: how often it was called}, calls inside scripts included."""
        return {name.removeprefix("cmdstat_"): row["calls"] for name, row in self.cli.info("commandstats").items()}

    def lock_keys(self, prefix="lock:"):
        return sorted(key.decode("latin-1") for key in self.cli.scan_iter(prefix + "*", 1000))

    def stop(self):
        if self.runs():
            self.thaw()
            self.process.kill()
            self.process.wait()
        if self.cli:
            self.cli.close()
            self.cli.connection_pool.disconnect()
        shutil.rmtree(self.folder, ignore_errors=True)
