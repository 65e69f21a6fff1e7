# SPDX-License-Identifier: BSD-2-Clause
"""SIGUSR2: another process goes on, and no client can tell: what sessions hold, what they wait for, and what is on its way."""
import os
import signal
import time

from process import LATE, until
from resumable import resume_fences, with_grace
from restarts import RestartTest, on_stores


@on_stores(0, 1, 3)
class Holds:
    """What is held and waited for."""
    COST = 8

    def test_locks_fences_and_deadlines_go_on(self):
        daemon = self.begin(tcp=True)
        unix, tcp = self.client(daemon, "unix"), self.client(daemon, "tcp", tcp=True)
        held = {c: c.ok("LOCK %s ttl=8s" % n) for c, n in ((unix, "a"), (tcp, "b"))}
        deadline = time.monotonic() + held[unix].num("valid_ms") / 1000
        self.restart(daemon, 3)
        for c, name in ((unix, "a"), (tcp, "b")):
            answer = c.ok("CHECK " + name)
            self.assertEqual(answer["fence"], held[c]["fence"])
        self.assertLess(time.monotonic() + unix.ok("CHECK a").num("valid_ms") / 1000, deadline + 8)
        self.assertEqual(tcp.busy("LOCK a").num("waiters"), 0)
        self.assertEqual(unix.ok("UNLOCK a").num("count"), 0)
        again = tcp.ok("LOCK a")
        self.assertGreater(again.num("fence"), held[unix].num("fence"))
        self.assertEqual(tcp.ok("EXTEND b ttl=9s")["fence"], held[tcp]["fence"])

    def test_a_lock_is_renewed_by_the_next_process(self):
        daemon = self.begin({"lease": "2s", "max_lease": "4s"})
        c = self.client(daemon)
        fence = c.ok("LOCK a").num("fence")
        self.restart(daemon)
        self.assertEqual([line for line in c.listen(3.5) if "LOST" in str(line)], [])  # a busy machine may be late: RISK, then SAFE
        self.assertEqual(c.ok("CHECK a").num("fence"), fence)

    def test_requests_that_wait_keep_their_places_and_tags(self):
        daemon = self.begin()
        holder = self.client(daemon)
        fence = holder.ok("LOCK a").num("fence")
        waiters = [self.client(daemon, "w%d" % i) for i in range(4)]
        for i, w in enumerate(waiters):
            w.begin("@tag%d LOCK a wait=60s" % i)
        waiters[1].close()
        self.restart(daemon, 2)
        self.assertEqual(daemon.client().roles("a"), ["holder"] + ["waiter"] * 3)
        holder.ok("UNLOCK a")
        for i in (0, 2, 3):
            answer = waiters[i].reply("@tag%d" % i)
            self.assertGreater(answer.num("fence"), fence)
            fence = answer.num("fence")
            self.assertEqual([w.inbox for w in waiters[i + 1:]], [[]] * (3 - i))
            waiters[i].ok("UNLOCK a")

    def test_a_wait_ends_in_time(self):
        daemon = self.begin()
        holder, waiter = self.client(daemon), self.client(daemon)
        holder.ok("LOCK a")
        begin = time.monotonic()
        waiter.begin("LOCK a wait=1s")
        self.restart(daemon, 2)
        self.assertEqual(waiter.reply().kind, "TIMEOUT")
        self.assertTrue(0.95 < time.monotonic() - begin < 1 + LATE)

    def test_several_names_readers_and_permits(self):
        daemon = self.begin()
        c, other, any_ = self.client(daemon, "c"), self.client(daemon, "other"), self.client(daemon, "any")
        c.ok("LOCK read mode=shared")
        c.ok("LOCKALL x y")
        permit = c.ok("ACQUIRE s limit=1")
        other.ok("LOCK read mode=shared")
        other.begin("@all LOCKALL y z wait=60s", "@permit ACQUIRE s limit=1 wait=60s")
        any_.begin("@any LOCKANY x y wait=60s")
        writer = self.client(daemon)
        writer.begin("@w LOCK read wait=60s")
        self.restart(daemon, 2)
        self.assertEqual(other.inbox + any_.inbox, [])
        c.ok("UNLOCK y")
        self.assertEqual(other.reply("@all").kind, "OK")
        c.ok("UNLOCK x")
        self.assertEqual(any_.reply("@any")["name"], "x")
        c.ok("RELEASE s permit=" + permit["permit"])
        self.assertEqual(other.reply("@permit").kind, "OK")
        c.ok("UNLOCK read")
        self.assertEqual(writer.inbox, [])
        other.ok("UNLOCK read")
        self.assertEqual(writer.reply("@w").kind, "OK")

    def test_jobs_and_rates(self):
        daemon = self.begin()
        worker, idle, c = self.client(daemon), self.client(daemon), self.client(daemon)
        c.ok("DEFER q first id=a")
        self.assertEqual(worker.ok("TAKE q")["job"], "a")
        self.assertEqual(idle.begin("@t TAKE q wait=60s"), [])
        c.ok("RATE r limit=2 per=1h cost=2")
        self.restart(daemon, 2)
        if self.STORES:  # the memory store forgets uses with each process
            c.busy("RATE r limit=2 per=1h")
        self.assertEqual([row["state"] for row in c.ok("LIST jobs prefix=q").rows], ["leased"])
        worker.ok("DONE a")
        c.ok("DEFER q second id=b")
        self.assertEqual(idle.reply("@t")["job"], "b")
        idle.ok("DONE b")
        self.assertEqual(c.ok("LIST queues").rows, [])

    def test_a_session_that_is_detached_is_resumed(self):
        daemon = self.begin()
        c = self.client(daemon)
        ticket = with_grace(c)
        fence = c.ok("LOCK a").num("fence")
        c.close()
        self.restart(daemon)
        self.assertEqual(resume_fences(self.client(daemon), ticket), {"a": fence})

    def test_another_runtime_directory_in_the_configuration(self):
        """It stays where it is, with its journal and the state of the memory store. Who stops it and moves the directory finds all of it there."""
        daemon = self.begin()
        c, graceful = self.client(daemon), self.client(daemon)
        ticket, former = with_grace(graceful), daemon.runtime_dir
        fences = [c.ok("LOCK a").num("fence"), graceful.ok("LOCK b").num("fence")]
        moved = os.path.join(daemon.folder, "moved")
        daemon.config = daemon.config.replace(former, moved)
        daemon.write_config()
        for _ in range(2):
            mark = daemon.log_size()
            self.restart(daemon, quietly=False)
            self.assertRegex(daemon.log(mark), r"error restart runtime=%s configured=%s " % (former, moved))
            self.assertEqual(c.ok("CHECK a").num("fence"), fences[0])
        self.assertFalse(os.path.exists(moved))
        daemon.kill()
        os.rename(former, moved)
        daemon.runtime_dir = moved
        daemon.start()
        with daemon.client() as other:
            if not self.STORES:
                other.busy("LOCK a")
            self.assertEqual(resume_fences(other, ticket), {"b": fences[1]})

    def test_what_there_is_is_counted_and_the_rest_begins_anew(self):
        daemon = self.begin()
        c = self.client(daemon)
        c.ok("LOCK a")
        until(lambda: c.stats()["names"] == 1, "each server has confirmed the UNLOCK of the harness")
        before = c.stats()
        self.restart(daemon)
        after = c.stats()
        self.assertEqual(after["handover_clients_total"], 1)
        for metric in ("locks_held", "sessions", "names"):
            self.assertEqual(after[metric], before[metric], metric)

    def test_watchers_are_told(self):
        daemon = self.begin()
        watcher, subscriber, c = self.client(daemon), self.client(daemon), self.client(daemon)
        watcher.ok("WATCH a")
        subscriber.ok("SUBSCRIBE")
        subscriber.ok("LOCK a")
        watcher.push("EVENT", "a")
        self.restart(daemon)
        c.begin("@w LOCK a wait=60s")
        subscriber.push("CONTENDED", "a")
        subscriber.ok("UNLOCK a")
        watcher.push("EVENT", "a")


@on_stores(0, 1)
class Lines:
    """What is on its way between clients and daemon."""
    COST = 6

    def test_half_a_line_is_completed_afterwards(self):
        daemon = self.begin()
        c = self.client(daemon)
        c.barrier()
        c.raw(b"@x LOCK half")
        self.client(daemon).ok("PING")
        self.restart(daemon)
        c.raw(b"-line\n")
        self.assertEqual(c.reply("@x")["name"], "half-line")

    def test_lines_that_come_meanwhile_are_answered_once_each_in_order(self):
        daemon = self.begin()
        clients = [self.client(daemon) for _ in range(20)]
        for round_ in range(3):
            mark = daemon.log_size()
            daemon.send_signal(signal.SIGUSR2)
            sent = 0
            while "notice restarted " not in daemon.log(mark):
                for c in clients:
                    c.send("@%d.%d PING" % (round_, sent), "LOCK n%d" % id(c), "UNLOCK n%d" % id(c))
                sent += 1
            for c in clients:
                for i in range(sent):
                    answers = [c.line() for _ in range(3)]
                    self.assertEqual([line.kind for line in answers], ["OK"] * 3, "%r: %d of %d" % (answers, i, sent))
                self.assertEqual(c.inbox, [])
        for c in clients:
            c.barrier()
            self.assertEqual(c.inbox, [])

    def test_answers_that_nobody_has_read_yet_arrive_whole(self):
        daemon = self.begin({"limits": {"output": "7m"}})
        c, lazy = self.client(daemon), self.client(daemon)
        for i in range(300):
            c.ok("LOCK %s/%d" % ("n" * 400, i))
        lazy.send("LIST locks limit=300", *["@%d SHOW %s/%d" % (i, "n" * 400, i) for i in range(3000)], "LIST locks limit=300")
        self.restart(daemon, 2)
        self.assertEqual(len(lazy.reply().rows), 300)
        for i in range(3000):
            lazy.reply("@%d" % i)
        self.assertEqual(len(lazy.reply().rows), 300)

    def test_who_connects_meanwhile_is_served(self):
        daemon = self.begin(tcp=True)
        for _ in range(3):
            mark = daemon.log_size()
            daemon.send_signal(signal.SIGUSR2)
            while "notice restarted " not in daemon.log(mark):
                for tcp in (False, True):
                    with daemon.client(tcp=tcp) as c:
                        c.ok("PING")

    def test_who_hangs_up_meanwhile_is_gone(self):
        daemon = self.begin()
        c, other = self.client(daemon), self.client(daemon)
        c.ok("LOCK a")
        other.begin("@w LOCK a wait=60s")
        daemon.freeze()
        c.close()
        daemon.send_signal(signal.SIGUSR2)
        daemon.thaw()
        self.assertEqual(other.reply("@w").kind, "OK")


class Many(RestartTest):
    COST = 10

    def test_five_restarts_under_load(self):
        """Each client counts: a request that fails, or is answered twice, shows."""
        daemon = self.begin()
        clients = [self.client(daemon) for _ in range(50)]
        asked = 0
        for _ in range(5):
            mark = daemon.log_size()
            daemon.send_signal(signal.SIGUSR2)
            while "notice restarted " not in daemon.log(mark):
                for i, c in enumerate(clients):
                    c.send("@%d LOCK k%d" % (asked, i), "@%d.u UNLOCK k%d" % (asked, i))
                for c in clients:
                    c.reply("@%d" % asked)
                    c.reply("@%d.u" % asked)
                asked += 1
        self.assertGreater(asked, 5)
        for c in clients:
            self.assertEqual(c.barrier(), [])


class Signals(RestartTest):
    COST = 4

    @staticmethod
    def pack(daemon):
        """Returns while a restart packs. A busy machine may look too late: then there is another one."""
        handover = os.path.join(daemon.runtime_dir, "handover")
        while not os.path.exists(handover):
            mark, until = daemon.log_size(), time.monotonic() + 2
            daemon.send_signal(signal.SIGUSR2)
            while not os.path.exists(handover) and time.monotonic() < until:
                pass
            if time.monotonic() >= until:
                daemon.logged("notice restarted ", mark)

    def test_a_signal_while_the_state_is_packed_takes_effect(self):
        """The file says that it is: with so many sessions it takes some milliseconds."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            daemon = self.begin()
            clients = [self.client(daemon) for _ in range(600)]
            self.pack(daemon)
            self.assertEqual(daemon.finish(number)[0], 0)
            for c in clients:
                c.close()
