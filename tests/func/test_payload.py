# SPDX-License-Identifier: BSD-2-Clause
"""Payloads of jobs up to 32 KiB, on each way that they take: lines, stores, the log of the memory store, restarts, libredlock and the command."""
import json
import random
import signal
import subprocess
import time

from daemon import on_redis
from harness import LEASE_1S, FuncTest, on_each_store
from process import REDLOCK, until
from quorum import QuorumTest
from wire import LINE_MOST, quoted, text

MOST = 32768
TEXTS = {"plain": b"p" * MOST, "escaped": b"\x01" * MOST, "quotes": b'"\\' * (MOST // 2), "any": random.Random(1).randbytes(MOST)}


def carried(reply, payload):
    return reply["payload"] == text(payload)


@on_each_store
class Payload:
    """One daemon."""
    COST, TCP = 15, True

    def test_32_kib_of_any_bytes_are_carried_whole(self):
        q = self.name()
        for tcp in (False, True):
            c = self.connect(tcp=tcp)
            for kind, payload in TEXTS.items():
                c.ok("DEFER %s %s id=%s lock=%s-l" % (q, quoted(payload), kind, q))
                self.assertTrue(carried(c.ok("LIST jobs prefix=" + q).rows[0], payload), kind)
                job = c.ok("TAKE %s wait=10s" % q)
                self.assertEqual(job["job"], kind)
                self.assertTrue(carried(job, payload), kind)
                c.ok("DONE " + kind)

    def test_a_longer_one_is_refused_with_the_bound(self):
        c = self.connect()
        for letter in (b"p", b"\x01"):
            error = c.ask("DEFER q %s" % quoted(letter * (MOST + 1)))
            self.assertEqual((error.code, error.text), ("LIMIT", "the payload may have at most 32768 bytes"))
        c.send("@t DEFER q " + "p" * LINE_MOST)
        self.assertEqual(c.reply("@t").code, "TOOLONG")
        self.assertEqual(c.ok("LIST queues prefix=q").rows, [])

    def test_many_of_them_come_in_pages_and_in_order(self):
        q, c = self.name(), self.connect()
        payloads = [bytes([65 + i % 26]) * MOST for i in range(70)]
        for i, payload in enumerate(payloads):
            c.send("@%d DEFER %s %s" % (i, q, text(payload)))
        for i in range(len(payloads)):
            self.assertEqual(c.reply("@%d" % i).kind, "OK")
        rows, page = [], c.ok("LIST jobs prefix=" + q)
        while True:
            rows += page.rows
            if "after" not in page:
                break
            page = c.ok("LIST jobs prefix=%s after=%s" % (q, page["after"]))
        self.assertTrue([row["payload"] for row in rows] == [text(payload) for payload in payloads])
        for i in range(len(payloads)):
            c.send("@%d TAKE %s wait=10s" % (i, q))
        taken = [c.reply("@%d" % i) for i in range(len(payloads))]
        self.assertEqual({job.kind for job in taken}, {"OK"})
        self.assertEqual(sorted(job["payload"] for job in taken), sorted(text(payload) for payload in payloads))
        for job in taken:
            c.ok("DONE " + job["job"])

    def test_who_waits_with_many_requests_gets_as_much_as_it_reads(self):
        """All are due at once, and take more than a session may have unsent. One that reads nothing keeps nobody from the rest."""
        q, deaf, c, other, count = self.name(), self.connect(), self.connect(), self.connect(), 60
        for i in range(count):
            deaf.send("@%d TAKE %s wait=60s" % (i, q))
        deaf.barrier()
        for i in range(count):
            c.send("@%d TAKE %s wait=60s" % (i, q))
        c.barrier()
        payload = quoted(TEXTS["escaped"])
        for i in range(2 * count):
            other.ok("DEFER %s %s id=j%d delay=2s" % (q, payload, i))
        taken = [c.reply("@%d" % i, 30) for i in range(count)]
        self.assertEqual({job.kind for job in taken}, {"OK"})
        rest = [deaf.reply("@%d" % i, 30) for i in range(count)]
        self.assertEqual({job.kind for job in rest}, {"OK"})
        self.assertEqual(len({job["job"] for job in taken + rest}), 2 * count)

    def test_the_command_carries_it(self):
        q, addr = self.name(), ("--addr", self.d.addr)
        for kind, payload in TEXTS.items():
            subprocess.run([REDLOCK, *addr, "defer", q], input=payload, stdout=subprocess.DEVNULL, check=True)
            rows = subprocess.run([REDLOCK, *addr, "jobs", "--json", q], stdout=subprocess.PIPE, check=True).stdout.splitlines()
            self.assertEqual(len(rows), 1)
            self.assertGreaterEqual(len(json.loads(rows[0])["payload"]), MOST / 2)
            done = subprocess.run([REDLOCK, *addr, "work", "--wait", "0", q, "cat"], stdout=subprocess.PIPE, check=True).stdout
            self.assertTrue(done == payload, kind)
        long = subprocess.run([REDLOCK, *addr, "defer", q], input=b"p" * (MOST + 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((long.returncode, long.stdout), (64, b""))
        self.assertIn(b"32768 bytes", long.stderr)


class PayloadKept(FuncTest):
    COST = 8

    def test_it_outlives_each_kind_of_end_and_a_line_that_is_half_sent(self):
        daemon = self.daemon(LEASE_1S)
        c = self.client(daemon)
        for kind, payload in TEXTS.items():
            c.ok("DEFER q %s id=%s" % (quoted(payload), kind))
        for how in ("kill", "restart", "term", "kill"):
            if how == "restart":
                mark = daemon.log_size()
                line = b"DEFER half " + quoted(TEXTS["escaped"]).encode() + b" id=half\n"
                c.raw(line[:100000])
                daemon.send_signal(signal.SIGUSR2)
                daemon.logged("notice restarted", mark)
                c.raw(line[100000:])
                self.assertEqual(c.reply()["job"], "half")
            else:
                daemon.kill() if how == "kill" else daemon.finish()
                c = self.client(daemon.start())
            rows = c.ok("LIST jobs prefix=q").rows
            self.assertTrue([row["payload"] for row in rows] == [text(payload) for payload in TEXTS.values()], how)
        self.assertTrue(carried(c.ok("LIST jobs prefix=half").rows[0], TEXTS["escaped"]))

    def test_a_session_takes_up_its_job_with_its_payload(self):
        daemon = self.daemon(LEASE_1S)
        c = self.client(daemon)
        hello = c.ok("HELLO 1 grace=10s")
        c.ok("DEFER q %s id=a lock=l" % quoted(TEXTS["any"]))
        c.ok("TAKE q")
        c.close()
        other = self.client(daemon)
        rows = other.ok("RESUME %s %s" % (hello["session"], hello["secret"])).rows
        self.assertEqual([row["job"] for row in rows if "job" in row], ["a"])
        self.assertTrue(carried(other.ok("TAKE q"), TEXTS["any"]), "the answer that the client may not have read comes again")


class PayloadAcrossDaemons(QuorumTest):
    """Two daemons on three servers."""
    COST = 10

    def test_it_is_carried_from_one_daemon_to_another(self):
        one, two = self.client(self.a), self.client(self.b)
        for kind, payload in TEXTS.items():
            two.begin("TAKE far wait=20s")
            one.ok("DEFER far %s id=%s lock=far-l" % (quoted(payload), kind))
            self.assertTrue(carried(two.reply(), payload), kind)
            two.ok("DONE " + kind)


class PayloadMoves(FuncTest):
    """Two daemons, each with a Redis of its own."""
    COST = 5

    def test_it_is_moved_to_another_daemon(self):
        old, new = (self.daemon(on_redis([self.redis()], {"redis": {"timeout": "2s"}})).joined() for _ in range(2))
        source, target = self.client(old), self.client(new)
        for kind, payload in TEXTS.items():
            source.ok("DEFER now %s id=%s" % (quoted(payload), kind))
            source.ok("DEFER later %s id=%s delay=1h" % (quoted(payload), kind))
        self.assertEqual(self.call_redlock(new, "move", "--from", old.addr), (0, "8 jobs are moved\n", ""))
        for kind in TEXTS:
            target.ok("RETRY %s queue=later" % kind)
        for queue in ("now", "later"):
            for _ in TEXTS:
                taken = target.ok("TAKE " + queue)
                self.assertTrue(carried(taken, TEXTS[taken["job"]]), taken["job"])
                target.ok("DONE %s queue=%s" % (taken["job"], queue))


class PayloadsUnderWay(FuncTest):
    """Of limits.waiting requests at the stores one of 32 KiB counts as five."""
    COST = 3

    def test_few_are_under_way_at_a_time(self):
        server = self.redis()
        daemon = self.redis_daemon(server, {"limits": {"waiting": 50}})
        client = self.client(daemon)
        client.ok("DEFER q x")
        server.freeze()
        self.addCleanup(server.thaw)
        for i in range(11):
            client.send("@%d DEFER q %s" % (i, "p" * MOST))
        last = client.reply("@10")
        self.assertEqual(last.code, "LIMIT")
        self.assertIn("at most 50 requests in flight at the stores", last.text)
        self.assertEqual([line.tag for line in client.inbox if line.code == "LIMIT"], [])
