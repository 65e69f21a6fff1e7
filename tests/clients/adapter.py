# SPDX-License-Identifier: BSD-2-Clause
"""An adapter seen from the runner: a process that drives one client library, and speaks JSON lines (README.md)."""
import contextlib
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))

from process import BUILD, ROOT, die_with_parent  # the path stands above

PYTHON = {"PYTHONPATH": os.path.join(ROOT, "client", "python"), "PYTHONDONTWRITEBYTECODE": "1"}
NODE = os.environ.get("CLIENTS_NODE", "node --expose-gc").split()  # another runtime, such as "bun" or "deno run -A"
ADAPTERS = {  # name: its command and what it needs in the environment; the last word of the command is a file, which make builds where its tools are here
    "python": ([sys.executable, os.path.join(HERE, "adapter_threads.py")], PYTHON),
    "python-aio": ([sys.executable, os.path.join(HERE, "adapter_aio.py")], PYTHON),
    "go": ([os.path.join(BUILD, "client-go", "adapter")], {}),
    "node": ([*NODE, os.path.join(HERE, "adapter_node.mjs"), os.path.join(BUILD, "client-node", "dist", "index.js")], {"NODE_NO_WARNINGS": "1"}),
    "c": ([os.path.join(BUILD, "client-c", "adapter")], {}),
    "java": (["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-jar", os.path.join(BUILD, "client-java", "adapter.jar")], {}),
}
RARE = {"fork", "fork-ask", "finaliser", "preload", "doubt", "threads", "once-ends", "once-left"}  # what an adapter says that it can
COMMON = {"many", "keeper", "fence", "bytes", "microseconds", "quit", "repeat", "strays", "abort-rate", "grace-ends"}  # or that it lacks
CLEAN = ("REDLOCK_ADDR", "REDLOCK_USER", "REDLOCK_SECRET", "REDLOCK_SECRET_FILE", "REDLOCK_TLS_CA", "REDLOCK_TLS_CERT", "REDLOCK_TLS_KEY", "REDLOCK_TLS_NAME")


def usable(wanted):
    """The adapters of these names, or all, that can run here. The others are skipped by name."""
    for name in wanted or ADAPTERS:
        if os.path.exists(ADAPTERS[name][0][-1]):
            yield name
        else:
            print("skipped: %s: %s has not been built" % (name, os.path.relpath(ADAPTERS[name][0][-1], ROOT)), flush=True)


class Adapter:
    """One process. Its first line says what it can do."""

    def __init__(self, name, env=None):
        argv, own = ADAPTERS[name]
        base = {key: value for key, value in os.environ.items() if key not in CLEAN}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**base, **own, **(env or {})}, preexec_fn=die_with_parent,
                                        stderr=subprocess.DEVNULL if (env or {}).get("REDLOCK_PLANT") else None)
        self.results, self.events, self.news, self.ended = {}, [], threading.Condition(), False
        self.lock, self.ids = threading.Lock(), 0
        threading.Thread(target=self._listen, daemon=True).start()
        hello = self.result("hello", 60)
        self.can, self.omits = (set(hello["can"]) | COMMON) - set(hello.get("lacks", ())), hello.get("omits", ())

    def _listen(self):
        for line in self.process.stdout:
            row = json.loads(line)
            with self.news:
                if "event" in row:
                    self.events.append(dict(row, seen=time.monotonic()))
                else:
                    self.results[row.get("id", "hello")] = row
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def call(self, what, **args):
        """Starts a call, and returns its id."""
        with self.lock:
            self.ids += 1
            number = self.ids
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(json.dumps({"id": number, "do": what, **args}).encode() + b"\n")
                self.process.stdin.flush()
        return number

    def await_(self, condition, timeout):
        """Waits until condition() has a value, and returns that; None when time is up or the adapter has ended."""
        deadline = time.monotonic() + timeout
        with self.news:
            while True:
                value = condition()
                left = deadline - time.monotonic()
                if value is not None or self.ended or left <= 0:
                    return value
                self.news.wait(left)

    def result(self, number, timeout):
        """The row that answers a call."""
        row = self.await_(lambda: self.results.get(number), timeout)
        if row is None:
            raise AssertionError("the adapter has ended" if self.ended else "the call did not return within %.1f s" % timeout)
        return row

    def do(self, what, timeout=60, **args):
        """A call, until it returns."""
        return self.result(self.call(what, **args), timeout)

    def reset(self):
        """Before another case: all clients are closed, and their results are forgotten. False: the process must be replaced."""
        try:
            fine = "ok" in self.do("reset", 10)
        except AssertionError:
            return False
        with self.news:
            self.results.clear()
            self.events.clear()
        return fine and self.process.poll() is None

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
