# SPDX-License-Identifier: BSD-2-Clause
"""WATCH, SUBSCRIBE, BREAK and KILL, and redlock watch, break and kill."""
import json
import os
import re
import select
import socket
import subprocess
import time

from fakes import Server
from harness import FuncTest, on_each_store, safety
from process import LATE, REDLOCK, call, reap, until
from quorum import QuorumTest


@on_each_store
class Watch:
    """The events of one daemon. Whoever runs the tests is also the user of the daemon, and so an administrator over its Unix socket."""
    COST, TCP, CONFIG = 4, True, {"lease": "2s", "max_lease": "2s"}

    def watcher(self, name):
        watcher = self.connect("watcher")
        watcher.ok("WATCH " + name)
        return watcher

    def test_a_watcher_is_told_what_happens(self):
        (holder, waiter), name = self.two(), self.name()
        watcher = self.watcher(name)
        fence = holder.ok("LOCK " + name)["fence"]
        waiter.begin("LOCK %s wait=60s" % name)
        holder.ok("UNLOCK " + name)
        events = [watcher.push("EVENT", name) for _ in range(4)]
        self.assertEqual([event["kind"] for event in events], ["granted", "waiting", "released", "granted"])
        self.assertEqual([event["fence"] for event in events if event["kind"] == "released"], [fence])
        self.assertIn("pid=", events[0]["who"])
        waiter.close()
        self.assertEqual(watcher.push("EVENT", name)["kind"], "released")

    def test_a_holder_that_subscribed_is_told_who_waits(self):
        (holder, waiter), name = self.two(), self.name()
        holder.ok("SUBSCRIBE")
        holder.ok("LOCK " + name)
        waiter.begin("LOCK %s wait=60s" % name)
        self.assertEqual(holder.push("CONTENDED", name)["waiters"], "1")

    def test_redlock_watch_prints_each_event_at_once(self):
        name = self.name()
        tool = self.start_redlock(self.d, "watch", name, stdout=subprocess.PIPE)
        plain = self.start_redlock(self.d, "watch", name, "--json", stdout=subprocess.PIPE)
        client = self.connect("somebody")

        def told():
            client.ok("LOCK " + name)
            client.ok("UNLOCK " + name)
            return all(select.select([process.stdout], [], [], 0.05)[0] for process in (tool, plain))
        until(told, "both watch, and print what the client does")
        self.assertRegex(tool.stdout.readline().decode(), r"^\d\d:\d\d:\d\d\.\d\d\d  (granted |released)  %s  somebody pid=.*  fence=\d+.*\n$" % name)
        event = json.loads(plain.stdout.readline())
        self.assertEqual((event["name"], event["waiters"]), (name, 0))
        tool.stdout.close()
        self.assertEqual(tool.wait(10), 0, "its reader has gone")
        reap(plain)

    def test_redlock_watch_ends_when_nobody_reads_at_the_other_end_of_a_socket(self):
        """Some programs read the output of their children through one."""
        name, (near, far) = self.name(), socket.socketpair()
        tool = self.start_redlock(self.d, "watch", name, stdout=far)
        far.close()
        client = self.connect("somebody")

        def told():
            client.ok("LOCK " + name)
            client.ok("UNLOCK " + name)
            return select.select([near], [], [], 0.05)[0]
        until(told, "it watches")
        text = b""
        while not re.search(rb"  released .*\n$", text):
            text += near.recv(1 << 16)  # all of it: a write to a socket that nobody reads ends the process
        near.close()
        self.assertEqual(tool.wait(10), 0)

    def test_break_and_kill(self):
        (holder, waiter), name = self.two(), self.name()
        holder.ok("LOCK " + name)
        waiter.begin("LOCK %s wait=60s" % name)
        code, out, err = self.call_redlock(self.d, "break", name)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^%s is broken; it is free in \d+m?s, or when its holder has acknowledged the loss\n$" % name)
        self.assertEqual(holder.push("LOST", name)["reason"], "broken")
        holder.err("UNLOCK " + name, "LOST")
        self.assertEqual(waiter.reply().kind, "OK")
        session = [row for row in waiter.ok("SHOW " + name).rows][0]["session"]
        self.assertEqual(self.call_redlock(self.d, "kill", session), (0, "session %s is ended; it held 1\n" % session, ""))
        self.assertEqual(waiter.push("LOST", name)["reason"], "broken")
        waiter.eof()
        begin = time.monotonic()
        with safety():
            self.assertEqual(holder.ask("LOCK " + name).kind, "BUSY")
        holder.ok("LOCK %s wait=5s" % name, 6)
        self.assertGreater(time.monotonic() - begin, 1.0, "the one that was killed may have believed for so long")
        self.assertEqual(self.call_redlock(self.d, "kill", session)[0], 1)
        self.assertEqual(self.call_redlock(self.d, "break", "nobody-holds-this")[0], 1)

    def test_others_are_denied(self):
        far = self.connect(tcp=True)
        far.err("KILL session=1", "DENIED")
        far.err("BREAK a", "DENIED")


class Slow(FuncTest):
    COST = 6

    def test_a_watcher_that_does_not_read_is_cut_off_and_nobody_waits_for_it(self):
        daemon = self.daemon({"limits": {"output": "64k"}})
        slow, busy = self.client(daemon), self.client(daemon)
        slow.ok("WATCH")
        longest, mark, deadline = 0.0, daemon.log_size(), time.monotonic() + 30
        while "overflow" not in daemon.log(mark):
            self.assertLess(time.monotonic(), deadline, "the slow watcher is not cut off")
            for _ in range(200):
                begin = time.monotonic()
                busy.ok("LOCK a")
                busy.ok("UNLOCK a")
                longest = max(longest, time.monotonic() - begin)
        self.assertLess(longest, LATE)
        busy.ok("LOCK a")


class Across(QuorumTest):
    """BREAK of what another daemon holds, on three servers."""
    COST, CONFIG = 6, {"lease": "4s", "max_lease": "30s"}

    def test_the_holder_is_told_at_once_and_frees_the_lock_by_UNLOCK(self):
        name, holder, admin = self.name(), self.client(self.a), self.client(self.b)
        holder.ok("LOCK %s ttl=30s" % name)  # the next renewal is due in 10 s
        for server in self.servers:
            until(lambda: len(server.cli.execute_command("PUBSUB", "CHANNELS", "redlockd:lock:d:*")) == 2, "both daemons have subscribed")
        begin = time.monotonic()
        self.assertGreater(admin.ok("BREAK " + name).num("free_in_ms"), 1000)
        self.assertEqual(holder.push("LOST", name)["reason"], "broken")
        self.assertLess(time.monotonic() - begin, LATE, "only a renewal has shown it")
        with safety():
            self.assertEqual(admin.ask("LOCK " + name).kind, "BUSY")
        holder.err("UNLOCK " + name, "LOST")
        admin.ok("LOCK %s wait=1s" % name)

    def test_a_lock_of_a_daemon_that_stands_still_is_free_when_its_lease_is_over(self):
        name, holder, admin = self.name(), self.client(self.a), self.client(self.b)
        valid = holder.ok("LOCK " + name).num("valid_ms") / 1000
        granted = time.monotonic()
        self.a.freeze()
        self.addCleanup(self.a.thaw)
        admin.ok("BREAK " + name)
        admin.ok("LOCK %s wait=10s" % name, 11)
        with safety():
            self.assertGreater(time.monotonic() - granted, valid - 0.1)
        self.a.thaw()
        holder.push("LOST", name)

    def test_the_key_of_another_program_is_deleted(self):
        name, admin = self.name(), self.client(self.b)
        for server in self.servers:
            server.cli.set("lock:" + name, "0123456789abcdef")
        admin.busy("LOCK " + name)
        self.assertEqual(admin.ok("BREAK " + name)["free_in_ms"], "0")
        admin.ok("LOCK " + name)


class Stranger(Server):
    """In the place of a daemon: one event, and the end."""

    def took(self, sock, data):
        sock.sendall(b'OK\n! EVENT kind="\\x1b[2J" name="\\x1b[2J" who="\\x1b[2J" note="\\x1b[2J"\n')
        self.drop(sock)


class StrangeEvents(FuncTest):
    """A daemon that is not ours."""

    def test_what_an_event_tells_moves_no_cursor(self):
        stranger = Stranger(os.path.join(self.folder(), "sock")).start()
        self.addCleanup(stranger.stop)
        _, out, _ = call(REDLOCK, "--addr", stranger.path, "watch")
        self.assertEqual((out.count("[2J"), out.count("\x1b")), (4, 0), out)
