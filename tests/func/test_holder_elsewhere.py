# SPDX-License-Identifier: BSD-2-Clause
"""Who holds a lock at another daemon: in SHOW, by redlock, and on the page; BUSY and TIMEOUT name the host. Two daemons on one server, and on three."""
import os
import socket
import time

from process import LATE, until
from quorum import QuorumTest
from web import free_web

HOST = "@" + socket.gethostname()[:40]
NOTE = "nightly export, ask ops"


class OnThree(QuorumTest):
    COST = 12

    def setUp(self):
        super().setUp()
        self.taken, self.holder = self.name(), self.client(self.a, "worker-7")
        self.holder.ok('LOCK %s note="%s"' % (self.taken, NOTE))
        self.pid = "pid=%d uid=%d" % (os.getpid(), os.getuid())
        time.sleep(0.05)

    def test_BUSY_and_TIMEOUT_name_the_host_and_ask_nobody(self):
        client, before = self.client(self.b), self.published()
        answer = client.busy("LOCK " + self.taken)
        self.assertEqual((answer["holder"], "who" in answer.fields), (HOST, False))
        self.assertEqual(self.published(), before)
        self.assertTrue(40 <= answer.num("held_ms") < 10000, answer)  # 50 ms later, by the clocks of two processes
        client.send("LOCK %s wait=300ms" % self.taken)
        answer = client.reply()
        self.assertEqual((answer.kind, answer["holder"], "who" in answer.fields), ("TIMEOUT", HOST, False))
        self.assertTrue(300 <= answer.num("waited_ms") < 1000, answer)

    def test_BUSY_tells_what_SHOW_has_learnt(self):
        client = self.client(self.b)
        client.ok("SHOW " + self.taken)
        answer = client.busy("LOCK " + self.taken)
        self.assertEqual((answer["holder"], answer["who"], answer["note"]), (HOST, "worker-7 " + self.pid, NOTE))
        self.assertTrue(40 <= answer.num("held_ms") < 10000, answer)  # 50 ms later, by the clocks of two processes

    def test_SHOW_tells_who_it_is_whether_somebody_waits_or_not(self):
        waiter = self.client(self.b)
        for waits in (False, True):
            if waits:
                waiter.begin("LOCK %s wait=60s" % self.taken)
                self.queued(self.taken, 1)
            row = self.client(self.b).ok("SHOW " + self.taken).rows[0]
            self.assertEqual((row["role"], row["holder"], row["name"], row["peer"]), ("holder", HOST, "worker-7", "unix"))
            self.assertEqual((row.num("pid"), row.num("uid"), row["note"]), (os.getpid(), os.getuid(), NOTE))
            self.assertTrue(row.num("held_ms") >= 50 and 0 < row.num("ttl_ms") <= 2000, row)

    def test_redlock_tells_who_it_is(self):
        shown = self.call_redlock(self.b, "show", self.taken)[1]
        for word in (HOST, "worker-7", str(os.getpid()), NOTE):
            self.assertIn(word, shown)
        for wait in ("0", "300ms"):
            status, _, err = self.call_redlock(self.b, "run", "--wait=" + wait, self.taken, "--", "true")
            self.assertNotEqual(status, 0)
            self.assertIn("%s is held by worker-7 %s %s for " % (self.taken, self.pid, HOST), err)

    def test_a_terminal_shows_who_it_is_while_redlock_waits(self):
        master, slave = self.terminal()
        self.start_redlock(self.b, "run", self.taken, "--", "true", stderr=slave)
        os.close(slave)
        self.assertIn(b"held by worker-7 " + self.pid.encode(), self.terminal_shows(master, HOST.encode()))

    def test_SHOW_without_end_asks_once_a_second(self):
        client, before, begin = self.client(self.b), self.published(), time.monotonic()
        for _ in range(300):
            self.assertIn("note", client.ok("SHOW " + self.taken).rows[0].fields)
        seconds = time.monotonic() - begin
        self.assertLessEqual(self.published() - before, 2 * len(self.servers) * (seconds + 2))  # one each second, or at each store

    def published(self):
        return sum(server.calls().get("publish", 0) for server in self.servers)

    def test_the_page_tells_who_it_is(self):
        web = free_web()
        third = self.host({"listen": {"http": web.listen}})
        self.client(third).begin("LOCK %s wait=60s" % self.taken)
        self.queued(self.taken, 1)

        def told():
            [lock] = web.ask("/api/v1/snapshot?prefix=" + self.taken).json["locks"]
            [held] = lock["holders"]
            return (held["label"], held.get("host"), held.get("pid"), held["note"]) == ("worker-7", HOST, os.getpid(), NOTE)
        until(told, "the snapshot tells who it is")


class OnOne(OnThree):
    STORES = 1


class WithoutMessages(QuorumTest):
    """The user of the daemons may not publish: they tell each other nothing."""
    COST = 4

    def test_the_host_is_known(self):
        for server in self.servers:
            server.cli.execute_command("ACL", "SETUSER", "default", "-publish")
        holder, name = self.client(self.a, "worker-7"), self.name()
        holder.ok("LOCK " + name)
        client = self.client(self.b)
        begin, busy = time.monotonic(), client.busy("LOCK " + name)
        self.assertEqual((busy["holder"], "who" in busy.fields), (HOST, False))
        self.assertLess(time.monotonic() - begin, LATE)
        self.assertEqual(client.ok("SHOW " + name).rows[0]["holder"], HOST)
        shown = self.call_redlock(self.b, "show", name)[1]
        self.assertIn(HOST, shown)
