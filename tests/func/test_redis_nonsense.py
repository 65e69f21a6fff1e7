# SPDX-License-Identifier: BSD-2-Clause
"""Addresses at which no Redis answers, and a Redis whose replies are replaced on the way."""
import os
import re

import fakes
from daemon import on_redis
from harness import DEFAULT_TIMEOUT, LEASE_1S, FuncTest
from lease import Lease
from process import until

NO_STORE = ("QUORUM", "UNAVAILABLE")


class NoRedis(FuncTest):
    """A server at the address answers nonsense: the log names it, and the daemon goes on."""
    COST = 10

    def against(self, answer, pattern):
        server = fakes.Nonsense(os.path.join(self.folder("redlockd-fake-"), "sock"), answer).start()
        self.addCleanup(server.stop)
        daemon = self.daemon(on_redis(["unix:" + server.path], LEASE_1S, DEFAULT_TIMEOUT))
        c = self.client(daemon)
        c.err("LOCK a", NO_STORE)
        c.err("LOCK a wait=300ms", NO_STORE, 3)
        daemon.logged(re.escape(server.path) + r"\b.*" + pattern)
        c.ok("PING")
        c.ok("LIST nodes")
        before, began = daemon.cpu_seconds(), server.accepted
        c.listen(1)
        self.assertLess(daemon.cpu_seconds() - before, 0.5, "the daemon spins")
        self.assertLess(server.accepted - began, 60, "the daemon does not back off")
        self.assertLess(len(daemon.log().splitlines()), 200, "the daemon floods the log")

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

    def test_an_address_without_a_server(self):
        daemon = self.daemon(on_redis(["unix:/nonexistent/redis.sock"], LEASE_1S))
        self.client(daemon).err("LOCK a", NO_STORE)
        daemon.logged(r"/nonexistent/redis\.sock")


class Replaced(FuncTest):
    """The replies of a real Redis are replaced on the way while a lock is held. The daemon recovers by itself."""
    COST = 14

    def setUp(self):
        super().setUp()
        self.server = self.redis()
        self.relay = fakes.Relay(os.path.join(self.folder("redlockd-relay-"), "sock"), self.server.path).start()
        self.addCleanup(self.relay.stop)
        self.d = self.daemon(on_redis(["unix:" + self.relay.path], LEASE_1S, DEFAULT_TIMEOUT)).joined()

    def replaced_by(self, instead):
        """While every reply is replaced nothing is granted, the holder is told of its loss in time, and the waiter keeps its place."""
        lease, c, w = Lease(self.client(self.d), "held"), self.client(self.d), self.client(self.d)
        w.begin("LOCK held wait=60s")
        self.relay.instead = instead
        answer = c.ask("LOCK other", 3)
        self.assertIn((answer.kind, answer.code), [("ERR", "QUORUM"), ("ERR", "UNAVAILABLE")], answer)
        lease.lost_in_time(self)
        w.barrier()
        self.assertEqual(w.inbox, [])
        self.relay.instead = None
        granted = w.reply(timeout=6)
        self.assertGreater(granted.num("fence"), lease.fence)
        c.ok("LOCK other wait=6s")

    def test_garbage(self):
        self.replaced_by(b"\0\1garbage\r\n\r\n")

    def test_silence(self):
        self.replaced_by(lambda data: b"")

    def test_unknown_errors(self):
        self.replaced_by(b"-WEIRD something new\r\n")

    def test_misconf(self):
        self.replaced_by(b"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n")

    def test_loading(self):
        self.replaced_by(b"-LOADING Redis is loading the dataset in memory\r\n")

    def test_readonly(self):
        self.replaced_by(b"-READONLY You can't write against a read only replica.\r\n")

    def test_noscript_without_end(self):
        self.replaced_by(b"-NOSCRIPT No matching script. Please use EVAL.\r\n")

    def test_closing(self):
        self.replaced_by(b"close")

    def test_arrays_of_nulls(self):
        self.replaced_by(b"*2\r\n*-1\r\n$-1\r\n")

    def test_integers(self):
        self.replaced_by(b":1\r\n")

    def test_a_late_acquire_of_an_abandoned_request_is_cleaned_up(self):
        c = self.client(self.d)
        self.relay.hold_requests = True
        c.err("LOCK late", "QUORUM")
        self.relay.release()
        c.ok("LOCK late wait=6s")
        c.ok("UNLOCK late sync=yes")
        until(lambda: not self.server.cli.exists("lock:late"), "no key stays behind", 5)
