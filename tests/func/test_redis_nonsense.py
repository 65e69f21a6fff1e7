# SPDX-License-Identifier: BSD-2-Clause
"""What answers is no Redis at all, or a Redis whose replies are replaced on the way."""
import os
import re

import fakes
from harness import FuncTest
from process import merged, temp_folder, until
from test_stopped import SHORT, Lease


class NoRedis(FuncTest):
    """What stands at the address talks nonsense: a named log line, and the daemon goes on."""
    COST = 10

    def against(self, answer, pattern):
        folder = temp_folder("redlockd-fake-")
        server = fakes.Nonsense(os.path.join(folder, "sock"), answer).start()
        self.addCleanup(lambda: (server.stop(), os.unlink(server.path), os.rmdir(folder)))
        daemon = self.daemon(merged(SHORT, {"store": "redis", "redis": {"nodes": ["unix:" + server.path], "timeout": "50ms"}}))
        c = self.client(daemon)
        c.err("LOCK a", ("QUORUM", "UNAVAILABLE"))
        c.err("LOCK a wait=300ms", ("QUORUM", "UNAVAILABLE"), 3)
        daemon.logged(re.escape(server.path) + r"\b.*" + pattern)
        c.ok("PING")
        c.ok("LIST nodes")
        before, began = daemon.cpu_seconds(), server.accepted
        c.listen(1)
        self.assertLess(daemon.cpu_seconds() - before, 0.5, "it does not spin")
        self.assertLess(server.accepted - began, 60, "it backs off")
        self.assertLess(len(daemon.log().splitlines()), 200, "it does not flood the log")

    def test_garbage(self):
        self.against(b"hello, this is not redis\r\n" * 10, r"reason=")

    def test_silence(self):
        self.against(None, r"time|silent|answer")

    def test_errors(self):
        self.against(b"-ERR no idea what you mean\r\n", r"no idea what you mean")

    def test_closing(self):
        self.against(b"", r"clos|end|eof|down")

    def test_a_reply_without_end(self):
        self.against(b"$536870912\r\n" + b"x" * 65536, r"reason=")

    def test_replies_nested_without_end(self):
        self.against(b"*1\r\n" * 2000, r"reason=")

    def test_replies_of_the_wrong_kind(self):
        self.against(b"*3\r\n$1\r\na\r\n:7\r\n$-1\r\n" * 3, r"reason=")

    def test_ok_to_everything(self):
        self.against(b"+OK\r\n+OK\r\n+OK\r\n", r"reason=")

    def test_nobody_there(self):
        daemon = self.daemon(merged(SHORT, {"store": "redis", "redis": {"nodes": ["unix:/nonexistent/redis.sock", ]}}))
        self.client(daemon).err("LOCK a", ("QUORUM", "UNAVAILABLE"))
        daemon.logged(r"/nonexistent/redis\.sock")


class Turning(FuncTest):
    """A real Redis whose replies are replaced on the way, under a held lock; all recovers by itself."""
    COST = 14

    def setUp(self):
        super().setUp()
        self.server = self.redis()
        folder = temp_folder("redlockd-way-")
        self.way = fakes.Way(os.path.join(folder, "sock"), self.server.path).start()
        self.addCleanup(lambda: (self.way.stop(), os.unlink(self.way.path), os.rmdir(folder)))
        self.d = self.daemon(merged(SHORT, {"store": "redis", "redis": {"nodes": ["unix:" + self.way.path], "timeout": "50ms"}})).joined()

    def turned(self, instead, recovered=6):
        lease, c, w = Lease(self.client(self.d), "held"), self.client(self.d), self.client(self.d)
        w.send("LOCK held wait=60s")
        w.barrier()
        self.way.instead = instead
        answer = c.ask("LOCK other", 3)
        self.assertIn((answer.kind, answer.code), [("ERR", "QUORUM"), ("ERR", "UNAVAILABLE")], answer)
        lease.lost_in_time(self)
        w.barrier()
        self.assertEqual(w.inbox, [])
        self.way.instead = None
        granted = w.reply(timeout=recovered)
        self.assertGreater(granted.num("fence"), lease.fence)
        c.ok("LOCK other wait=6s")

    def test_garbage(self):
        self.turned(b"\0\1garbage\r\n\r\n")

    def test_silence(self):
        self.turned(lambda data: b"")

    def test_unknown_errors(self):
        self.turned(b"-WEIRD something new\r\n")

    def test_misconf(self):
        self.turned(b"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n")

    def test_loading(self):
        self.turned(b"-LOADING Redis is loading the dataset in memory\r\n")

    def test_readonly(self):
        self.turned(b"-READONLY You can't write against a read only replica.\r\n")

    def test_noscript_for_ever(self):
        self.turned(b"-NOSCRIPT No matching script. Please use EVAL.\r\n")

    def test_closing(self):
        self.turned(b"close")

    def test_arrays_of_nulls(self):
        self.turned(b"*2\r\n*-1\r\n$-1\r\n")

    def test_integers(self):
        self.turned(b":1\r\n")

    def test_a_late_acquire_of_an_abandoned_request_is_cleaned_up(self):
        c = self.client(self.d)
        self.way.hold_requests = True
        c.err("LOCK late", "QUORUM")
        self.way.release()
        c.ok("LOCK late wait=6s")
        c.ok("UNLOCK late sync=yes")
        until(lambda: not self.server.cli.exists("lock:late"), "no key stays behind", 5)


if __name__ == "__main__":
    from harness import main
    main()
