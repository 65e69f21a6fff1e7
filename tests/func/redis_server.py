# SPDX-License-Identifier: BSD-2-Clause
"""Real redis-servers, each in a private folder on a private socket, and a wall clock for one that a test can step."""
import contextlib
import os
import shutil
import signal
import struct
import subprocess

import redis  # Debian: python3-redis

import wire
from process import BUILD, free_port, spawn, state_of, temp_folder, until


class Clock:
    """The wall clock of a Redis: see tests/clock_shim.c."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "clock")
        self.step(0)

    def step(self, seconds):
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("qq", int(seconds * 1e6), 0), 0)
        os.close(fd)

    def env(self):
        return {"LD_PRELOAD": os.path.join(BUILD, "clock_shim.so"), "REDLOCK_TEST_CLOCK": self.path}


class Redis:
    """One redis-server, forgetful unless save=True."""

    def __init__(self, tcp=False, save=False, clock=False, args=(), patience=wire.WAIT):
        self.folder = temp_folder("redlockd-redis-")
        self.path = os.path.join(self.folder, "sock")
        self.port = free_port() if tcp else 0
        self.node = "unix:" + self.path
        self.clock = Clock(self.folder) if clock else None
        self.args = ["--port", str(self.port), "--unixsocket", self.path, "--dir", self.folder, "--appendonly", "no", "--bind", "127.0.0.1",
                     "--save", "3600 1" if save else "", "--logfile", os.path.join(self.folder, "log"), "--enable-debug-command", "local", *args]
        self.patience = patience  # seconds, with one that loads for long
        self.process, self.cli, self.password, self.user, self.db = None, None, None, None, 0

    def start(self):
        env = dict(os.environ, **(self.clock.env() if self.clock else {}))
        self.process = spawn(["redis-server", *self.args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.cli = redis.Redis(unix_socket_path=self.path, username=self.user, password=self.password, db=self.db, socket_timeout=wire.WAIT)
        until(self._answers, "redis-server answers PING", self.patience)
        return self

    def _answers(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "log"), errors="replace") as log:
                raise AssertionError("redis-server ended: " + log.read()[-1000:])  # its last words
        try:
            return self.cli.ping()
        except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
            return False

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        until(lambda: state_of(self.process.pid) == "T", "redis-server is stopped")

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.cli.close()

    def restart(self):
        """Killed and started anew: blank, or with what it had saved."""
        if self.process.poll() is None:
            self.kill()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        return self.start()

    def calls(self):
        """{command: how often it was called}, those inside of scripts included."""
        return {name.removeprefix("cmdstat_"): row["calls"] for name, row in self.cli.info("commandstats").items()}

    def lock_keys(self, prefix="lock:"):
        return sorted(key.decode("latin-1") for key in self.cli.scan_iter(prefix + "*", 1000))

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        if self.cli:
            self.cli.close()
            self.cli.connection_pool.disconnect()
        shutil.rmtree(self.folder, ignore_errors=True)
