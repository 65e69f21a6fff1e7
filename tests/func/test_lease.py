# SPDX-License-Identifier: BSD-2-Clause
"""Leases over time: the daemon renews them while the client lives, and frees the lock at once when it does not."""
import re
import select
import socket
import time

from harness import LEASE_1S, FuncTest, StoreTest, median, on_each_store
from lease import believed
from nc import Nc
from process import LATE, merged, until
from wire import Client


class Monitor:
    """The commands that one Redis executes, by its MONITOR."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.sock.sendall(b"MONITOR\r\n")
        self.sock.recv(5)  # +OK\r\n

    def watch(self, seconds):
        """The commands of the next seconds: [(whether a script sent it, [words])]."""
        data, deadline = b"", time.monotonic() + seconds
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.sock], [], [], max(0, deadline - time.monotonic()))
            data += self.sock.recv(1 << 20) if ready else b""
        self.sock.close()
        rows = []
        for line in data.decode("latin-1").splitlines()[:-1]:
            head = re.match(r"\+[0-9.]+ \[\d+ ([^\]]*)\] ", line)
            rows.append((head[1] == "lua", re.findall(r'"((?:[^"\\]|\\.)*)"', line[head.end():])))
        return rows


@on_each_store
class Kept:
    CONFIG, COST, TCP = LEASE_1S, 24, True

    def test_a_lease_of_2s_is_held_for_10s_against_waiting_rivals(self):
        name, holder = self.name(), self.connect()
        granted = holder.ok("LOCK %s ttl=2s" % name)
        self.assertEqual(granted.num("ttl_ms"), 2000)
        rivals = [(self.connect(), "a rival on the same daemon")]
        if self.r:
            rivals.append((self.client(self.redis_daemon(self.r, LEASE_1S)), "a rival on another daemon"))
        for rival, _ in rivals:
            rival.send("LOCK %s wait=10s" % name)
        end, lowest = time.monotonic() + 9.9, 2000
        while time.monotonic() < end:
            checked = holder.ok("CHECK " + name)
            self.assertEqual(checked.num("fence"), granted.num("fence"))
            lowest = min(lowest, checked.num("valid_ms"))
            holder.listen(0.05)
        self.assertEqual(holder.inbox, [], "the holder is pushed a RISK or a LOST")
        for rival, label in rivals:
            answer = rival.reply()
            self.assertEqual(answer.kind, "TIMEOUT", label)
            self.assertGreaterEqual(answer.num("waited_ms"), 10000)
        holder.ok("UNLOCK " + name)
        self.figure("the lowest valid_ms of a lease of 2000 ms within 10 s is %d" % lowest)

    def test_a_client_that_sends_nothing_keeps_its_lock(self):
        name, holder, rival = self.name(), self.connect(), self.connect()
        holder.ok("LOCK " + name)
        answer = rival.ask("LOCK %s wait=3s" % name)
        self.assertEqual(answer.kind, "TIMEOUT")
        holder.ok("UNLOCK " + name)
        self.assertEqual(holder.inbox, [])

    def test_a_heartbeat_that_is_kept_keeps_the_lock(self):
        name, holder, rival = self.name(), self.connect(), self.connect()
        holder.ok("HELLO 1 heartbeat=1s")
        holder.ok("LOCK " + name)
        rival.send("LOCK %s wait=3s" % name)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            holder.ok("PING")
            holder.listen(0.1)
        self.assertEqual(rival.reply().kind, "TIMEOUT")
        holder.ok("UNLOCK " + name)
        self.assertEqual(holder.inbox, [])

    def wedged(self, addr):
        """A client misses its heartbeat while a rival waits. Returns (client, name, seconds from its last request to the rival's grant)."""
        name, holder, rival = self.name(), Client(addr), self.connect()
        self.addCleanup(holder.close)
        holder.ok("HELLO 1 heartbeat=1500ms")
        holder.ok("LOCK %s ttl=2s" % name)
        rival.begin("LOCK %s wait=20s" % name)
        checked = holder.ok("CHECK " + name)
        granted = rival.reply(timeout=15)
        self.assertEqual(granted.kind, "OK")
        return holder, name, granted.at - checked.at

    def test_a_client_that_misses_its_heartbeat_loses_its_lock_then_and_not_before(self):
        for addr in (self.d.addr, self.d.tcp):
            holder, name, seconds = self.wedged(addr)
            lost = holder.push("LOST", name)
            self.assertEqual(lost["reason"], "idle")
            self.d.logged(r"heartbeat|idle", self.log_marks[self.d])
            # The daemon renews at least every half lease, so that about half a lease is left when the heartbeat is missed.
            self.assertGreaterEqual(seconds, 1.5 + 0.9, "freed too early")
            self.assertLessEqual(seconds, 1.5 + 2.0 + LATE, "freed too late")

    def test_the_wait_of_a_client_that_misses_its_heartbeat_is_withdrawn(self):
        name, holder, wedged = self.name(), self.connect(), self.connect()
        holder.ok("LOCK " + name)
        wedged.ok("HELLO 1 heartbeat=300ms")
        wedged.begin("LOCK %s wait=forever" % name)
        self.assertEqual(len(holder.roles(name)), 2)
        until(lambda: len(holder.roles(name)) == 1, "the waiter is withdrawn")


class OnlyRenewals(StoreTest):
    """A lock with waiters costs Redis its renewals and nothing else."""
    STORE, CONFIG, COST = "redis", LEASE_1S, 8

    def test_64_waiters_send_nothing_to_redis(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        value = self.r.cli.get("lock:" + name).decode()
        waiters = [self.connect() for _ in range(64)]
        for waiter in waiters:
            waiter.begin("LOCK %s wait=60s" % name)
        rows = Monitor(self.r.path).watch(4)
        ours = [words for lua, words in rows if lua and "lock:" + name in words]
        writes = [words for words in ours if words[0].upper() not in ("GET", "PTTL")]
        self.assertEqual({words[0].upper() for words in writes} - {"SET", "PEXPIRE", "PEXPIREAT"}, set(), "there are other writes than renewals")
        self.assertEqual({words[2] for words in writes if words[0].upper() == "SET"} - {value}, set(), "a renewal changes the value")
        self.assertTrue(4 <= len(writes) <= 24, "%d renewals of a lease of 1 s in 4 s" % len(writes))
        commands = [words for lua, words in rows if not lua]
        self.assertLessEqual(len(commands), 60, "there are more commands than renewals and health checks: %r" % commands[:10])
        self.figure("64 waiters, 4 s: %d renewals, %d commands in all" % (len(writes), len(commands)))
        holder.ok("UNLOCK " + name)
        for waiter in waiters:
            self.assertEqual(waiter.reply().kind, "OK")
            waiter.ok("UNLOCK " + name)

    def test_an_idle_daemon_sends_only_health_checks(self):
        before = self.r.calls()
        self.connect().listen(2)
        after = self.r.calls()
        scripts = sum(after.get(c, 0) - before.get(c, 0) for c in ("evalsha", "eval"))
        self.assertLessEqual(scripts, 8, "there are more than health checks: %r" % {k: after[k] - before.get(k, 0) for k in after})


@on_each_store
class Handover:
    """The next waiter is granted the lock when its holder ends, not when the lease of 10 s does. `make bench` measures how soon."""
    ROUNDS, COST, TCP = 10, 2, True

    def rounds(self, label, hold, end):
        """Measures from end(holder) until a waiter reads its OK. hold(name) returns a holder."""
        name, waiter, taken = self.name(), self.connect(), []
        for _ in range(self.ROUNDS):
            holder = hold(name)
            waiter.begin("LOCK %s wait=30s" % name)
            begin = time.monotonic()
            end(holder)
            granted = waiter.reply()
            self.assertEqual(granted.kind, "OK")
            taken.append(granted.at - begin)
            waiter.ok("UNLOCK %s sync=yes" % name)
            holder.close()
        self.figure("%s: median %.2f ms, longest %.2f ms" % (label, median(taken) * 1000, max(taken) * 1000))
        self.assertLess(max(taken), LATE, label)

    def nc_holder(self, *options, addr=None):
        def hold(name):
            nc = Nc(addr or self.d.addr, *options)
            nc.type("LOCK %s wait=5s" % name)
            nc.see("OK name=.*")
            return nc
        return hold

    def client_holder(self, name):
        c = Client(self.d.addr)
        c.ok("LOCK %s wait=5s" % name)
        return c

    def test_kill_9_of_the_holder(self):
        self.rounds("kill -9", self.nc_holder(), Nc.kill)

    def test_kill_9_of_the_holder_over_tcp(self):
        self.rounds("kill -9 over TCP", self.nc_holder(addr=self.d.tcp), Nc.kill)

    def test_nc_N_whose_input_ends(self):
        self.rounds("nc -N", self.nc_holder("-N"), lambda nc: nc.process.stdin.close())

    def test_a_closed_socket(self):
        self.rounds("close", self.client_holder, Client.close)

    def test_quit(self):
        self.rounds("QUIT", self.client_holder, lambda c: c.send("QUIT"))

    def test_unlock(self):
        def hold(name):
            c = self.client_holder(name)
            c.held = name
            return c
        self.rounds("UNLOCK", hold, lambda c: c.send("UNLOCK " + c.held))


class HandoverBetweenDaemons(FuncTest):
    """From a client of one daemon to a client of another, on one Redis. test_waiting_across_daemons does the same on three."""
    COST = 6

    def test_a_release_is_noticed_by_the_other_daemon_within_a_second(self):
        server = self.redis()
        a, b = self.redis_daemon(server), self.redis_daemon(server)
        name, taken = self.name(), []
        holder, waiter = self.client(a), self.client(b)
        for _ in range(10):
            holder.ok("LOCK %s wait=5s" % name)
            waiter.begin("LOCK %s wait=30s" % name)
            begin = time.monotonic()
            holder.ok("UNLOCK " + name)
            granted = waiter.reply()
            taken.append((granted.at - begin) * 1000)
            waiter.ok("UNLOCK %s sync=yes" % name)
        self.figure("median %.0f ms, longest %.0f ms" % (median(taken), max(taken)))
        self.assertLessEqual(max(taken), 1000 * LATE)

    def test_the_locks_of_a_killed_daemon_end_with_their_lease(self):
        server = self.redis()
        a, b = self.redis_daemon(server, LEASE_1S), self.redis_daemon(server, LEASE_1S)
        name, holder, waiter = self.name(), self.client(a), self.client(b)
        holder.ok("LOCK " + name)
        waiter.begin("LOCK %s wait=30s" % name)
        until_when = believed(holder, name)
        a.kill()
        killed, granted = time.monotonic(), waiter.reply()
        self.assertEqual(granted.kind, "OK")
        self.assertGreaterEqual(granted.at, until_when - 0.005, "granted while the holder could still believe in its lock")
        self.assertLess(granted.at - killed, 1.0 + LATE)

    def test_a_lease_below_that_of_the_configuration_is_renewed(self):
        server = self.redis()
        a, b = self.redis_daemon(server), self.redis_daemon(server, merged(LEASE_1S, {"max_lease": "30s"}))
        name, holder, waiter = self.name(), self.client(a), self.client(b)
        holder.ok("LOCK %s ttl=1s" % name)
        self.assertEqual(waiter.ask("LOCK %s wait=3s" % name).kind, "TIMEOUT")
        holder.ok("UNLOCK " + name)
        self.assertEqual(holder.inbox, [])
