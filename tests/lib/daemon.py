# SPDX-License-Identifier: BSD-2-Clause
"""The real daemon, in a private folder and on private sockets.

Nothing here sleeps until something is ready: the daemon says READY=1 on a socket of the test, and a test waits for all else with a deadline. What a test
starts ends with it, at the latest by PR_SET_PDEATHSIG.
"""
import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

from process import REDLOCKD, WAIT, Patience, cpu_seconds, free_port, memory_kib, merged, spawn, state_of, temp_folder, until, yaml
from wire import Client

REPORTS = re.compile(r"ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer|Assertion .* failed|DEADLYSIGNAL")


def patient(lease):
    """redis.timeout where the test is not about it: as long as this lease permits, up to a second. The default, 50 ms, is too short for a busy machine."""
    number, unit = re.fullmatch(r"(\d+)(ms|s)", lease).groups()
    return "%dms" % max(250, min(int(number) * {"ms": 1, "s": 1000}[unit] // 4, 1000))



DAEMONS = []  # those of this process: a failed test prints their logs


def on_redis(servers, *trees):
    """The configuration of a daemon on these servers, or on servers at these addresses, with the trees laid over it."""
    return merged({"store": "redis", "redis": {"nodes": [getattr(server, "node", server) for server in servers]}}, *trees)


class Notify:
    """The socket that NOTIFY_SOCKET names: a thread reads at once what the daemon tells its service manager."""

    def __init__(self, path):
        self.path, self.said, self.news = path, [], threading.Condition()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        os.chmod(path, 0o777)  # for a daemon of another user, too
        self.stopped = threading.Event()  # when set, nobody reads any more
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while not self.stopped.is_set():
            ready, _, _ = select.select([self.sock], [], [], 0.1)
            if self.sock.fileno() < 0:
                return
            words = self.sock.recv(65536).decode().split("\n") if ready else []
            with self.news:
                self.said += words
                self.news.notify_all()

    def wait(self, word, process, timeout=WAIT):
        """Waits for a word such as READY=1. Returns False when the process ended first."""
        patience = Patience(timeout)
        with self.news:
            while word not in self.said:
                if process.poll() is not None:
                    return False
                if patience.left() <= 0:
                    raise AssertionError("the daemon did not say %s in time, but %r" % (word, self.said))
                self.news.wait(0.1)
        return True

    def forget(self):
        with self.news:
            self.said.clear()

    def close(self):
        self.stopped.set()
        self.sock.close()


class Daemon:
    """One redlockd. tree is laid over the configuration below; config=text replaces it."""

    def __init__(self, tree=None, config=None, runtime_dir=None, env=None, tcp=False, argv=None):
        self.folder = temp_folder()
        self.runtime_dir = runtime_dir or os.path.join(self.folder, "run")
        os.makedirs(self.runtime_dir, mode=0o700, exist_ok=True)
        self.addr = os.path.join(self.folder, "sock")
        self.tcp = ("127.0.0.1", free_port()) if tcp else None
        self.tree = merged({
            "listen": {"unix": self.addr, "tcp": "%s:%d" % self.tcp if tcp else "no"},
            "store": "memory", "runtime_dir": self.runtime_dir, "guard": "trust-first-start", "redis": {"timeout": patient((tree or {}).get("lease", "30s"))}}, tree)
        self.config = config if config is not None else yaml(self.tree)
        self.argv, self.env = argv, dict(os.environ, **(env or {}))
        self.log_path = os.path.join(self.folder, "log")
        self.process, self.notify, self.expect_dead = None, None, False
        DAEMONS.append(self)

    @property
    def journal(self):
        """The path of the file in which the daemon keeps sessions with grace."""
        return os.path.join(self.runtime_dir, "journal")

    # --- start and end -----------------------------------------------------------------------------------------------

    def write_config(self):
        path = os.path.join(self.folder, "redlockd.yaml")
        with open(path, "w") as out:
            out.write(self.config)
        return path

    def command(self):
        return [REDLOCKD, "--config", self.write_config()]

    def launch(self):
        """Starts the process, and waits for nothing."""
        argv = self.argv or self.command()
        path = os.path.join(self.folder, "notify")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if self.notify:
            self.notify.close()
        self.notify = Notify(path)
        env = dict(self.env, NOTIFY_SOCKET=path)
        env.setdefault("ASAN_OPTIONS", "abort_on_error=0:detect_leaks=1")
        with open(self.log_path, "ab") as log:
            self.process = spawn(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        self.expect_dead = False
        return self

    def ready(self):
        """Waits until a daemon that was launched serves."""
        if not self.notify.wait("READY=1", self.process):
            self.expect_dead = True
            raise AssertionError("the daemon ended with status %s before it was ready:\n%s" % (self.process.wait(), self.log()))
        return self

    def start(self):
        return self.launch().ready()

    def restart(self):
        """Kills the daemon if it runs, and starts it again with the same address, configuration and runtime directory."""
        if self.alive():
            self.kill()
        return self.start()

    def joined(self, timeout=WAIT):
        """Waits until the daemon can grant: a quorum of its stores is joined."""
        with Client(self.addr) as client:
            def grants():  # a store that is late once has joined nevertheless
                return (client.ask("LOCK harness:ready count=1 wait=%dms" % (timeout * 1000), timeout + 1).kind == "OK" and
                        client.ask("UNLOCK harness:ready count=0 sync=yes").kind == "OK")
            until(grants, "a lock is granted", timeout)
        return self

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def send_signal(self, number):
        self.process.send_signal(number)

    def reload(self):
        """Makes it read its configuration again, and waits until it has."""
        self.notify.forget()
        self.send_signal(signal.SIGHUP)
        assert self.notify.wait("READY=1", self.process), "the daemon has ended: " + self.log()

    def freeze(self):
        """SIGSTOP, and waits until it has taken effect."""
        self.send_signal(signal.SIGSTOP)
        until(lambda: state_of(self.pid) == "T", "the daemon is stopped")

    def thaw(self):
        self.send_signal(signal.SIGCONT)

    def kill(self):
        self.expect_dead = True
        self.process.kill()
        self.process.wait()

    def finish(self, number=signal.SIGTERM, timeout=WAIT):
        """Ends the daemon by a signal. Returns (status, seconds)."""
        self.expect_dead = True
        begin = time.monotonic()
        self.send_signal(number)
        try:
            until(lambda: self.process.poll() is not None, "the daemon outlived signal %d by %g s" % (number, timeout), timeout)
        except AssertionError:
            self.process.kill()
            self.process.wait()
            raise
        return self.process.returncode, time.monotonic() - begin

    def stop(self):
        """Ends the daemon at the end of a test. The test fails unless the daemon ends well and its log holds no report of a fault."""
        try:
            if self.alive():
                self.thaw()
                status, _ = self.finish()
                if status != 0:
                    raise AssertionError("the daemon ended with status %d\n%s" % (status, self.log()))
            elif self.process is not None and not self.expect_dead:
                raise AssertionError("the daemon died: status %d\n%s" % (self.process.returncode, self.log()))
            self.sane()
        finally:
            self.dispose()

    def dispose(self):
        if self.alive():
            self.process.kill()
            self.process.wait()
        if self.notify:
            self.notify.close()
        if self in DAEMONS:
            DAEMONS.remove(self)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what it shows -----------------------------------------------------------------------------------------------

    def log(self, since=0):
        try:
            with open(self.log_path, "rb") as log:
                log.seek(since)
                return log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def log_size(self):
        return os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0

    def sane(self):
        report = REPORTS.search(self.log())
        if report:
            raise AssertionError("the daemon's log holds a report of a fault:\n" + self.log()[max(0, report.start() - 200):][:6000])

    def logged(self, pattern, since=0, timeout=WAIT):
        """Waits for a log line that matches the pattern."""
        return until(lambda: re.search(pattern, self.log(since), re.M | re.I), "a log line like %s in:\n%s" % (pattern, self.log(since)[-2000:]), timeout)

    def client(self, name=None, tcp=False):
        return Client(self.tcp if tcp else self.addr, name)

    def rss_kib(self):
        return memory_kib(self.pid)

    def heap_kib(self):
        with open("/proc/%d/maps" % self.pid, encoding="utf-8") as maps:
            heap = [line.split()[0].split("-") for line in maps if line.rstrip().endswith("[heap]")]
        return sum(int(end, 16) - int(begin, 16) for begin, end in heap) // 1024

    def cpu_seconds(self):
        return cpu_seconds(self.pid)
