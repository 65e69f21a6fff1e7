# SPDX-License-Identifier: BSD-2-Clause
"""How a row ends: after the last fault each daemon recovers, clients and daemons stop, nothing is left of them, and the history is judged."""
import contextlib
import os
import signal
import time

import wire
from checker import Verdict
from history import History, now
from process import until


class Ending:
    """A part of World."""

    def recovery_bound(self):
        """Seconds for a quarantine, the rest of leases and reconnecting, and for how late this machine is."""
        return self.max_lease_ms / 1000 * 1.02 + self.lease_ms / 1000 + 2 + 5 + 10 * self.worst_gap

    def settle(self):
        """After the last fault each daemon must grant again within the bound (L1, L2, L4). Returns the seconds that the slowest needs."""
        begin, worst, bound = time.monotonic(), 0.0, self.recovery_bound()
        for daemon in [daemon for daemon in self.daemons if daemon.alive()]:
            try:
                with wire.Client(daemon.addr) as probe:
                    answer = probe.ask("LOCK faults/probe wait=%dms" % (bound * 1000), bound + 10)
                    if answer.kind != "OK":
                        self.fail("L1", "daemon %d does not grant a free name within %.1f s of the last heal: %s" % (daemon.index, bound, answer))
                    else:
                        probe.ask("UNLOCK faults/probe sync=yes")
            except (OSError, AssertionError) as error:
                self.fail("L1", "daemon %d does not serve after the last heal: %s" % (daemon.index, error))
            worst = max(worst, time.monotonic() - begin)
        return worst

    def stop_clients(self):
        everybody = {**self.processes, **self.watchers}
        for worker in everybody.values():
            if worker.is_alive():
                worker.terminate()
        deadline = time.monotonic() + 30
        for i, worker in everybody.items():
            while worker.is_alive() and time.monotonic() < deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGCONT)  # clients that stop themselves do so to the end
                worker.join(0.2)
            if worker.is_alive():
                self.fail("L7", "client %d does not end" % i)
                self.log.tell("kill", c=i)
                worker.kill()

    def quiescent(self):
        """S21: without clients there are no locks and no sessions."""
        for daemon in self.daemons:
            if not daemon.alive():
                continue
            with wire.Client(daemon.addr) as probe:
                def empty():
                    return not [str(row) for what in ("locks", "sessions") for row in probe.ask("LIST " + what).rows][1:]
                try:
                    until(empty, "empty", self.max_lease_ms / 1000 + 5)
                except AssertionError:
                    self.fail("S21", "daemon %d is not empty without clients: %s" % (daemon.index, [
                        str(row) for what in ("locks", "sessions") for row in probe.ask("LIST " + what).rows][:5]))

    def stop_daemons(self):
        for daemon in self.daemons:
            try:
                if daemon.alive():
                    status, _ = daemon.finish()
                    if status:
                        self.fail("S21", "daemon %d ended with status %d\n%s" % (daemon.index, status, daemon.log()[-3000:]))
                daemon.sane()
            except AssertionError as error:
                self.fail("S21", str(error))

    def left_in_redis(self):
        return ["%s on node %d" % (key, node.index) for node in self.nodes if node.serves() for key in node.lock_keys()]

    def longest_ms(self, key):
        """How long a key of a daemon may last; None: for ever."""
        if key.startswith("lock:"):
            return self.max_lease_ms
        kind = key[len("redlockd:lock:"):]
        if kind == "!deferred":
            return 15000
        if kind.startswith(("!", "j:", "jd:", "jl:", "jx:")):
            return None
        return 3 * 3000

    def check_times(self):
        """S16: every key of a daemon but marker, fence and jobs expires: a lock within the longest lease, a queue within three times the time of a
        ticket."""
        for node in self.nodes:
            for key in node.lock_keys("lock:") + node.lock_keys("redlockd:lock:") if node.serves() else ():
                ttl, most = node.cli.pttl(key), self.longest_ms(key)
                if most is not None and (ttl == -1 or ttl > most):
                    self.fail("S16", "%s on node %d expires in %d ms" % (key, node.index, ttl))

    def check_orphans(self):
        """L8: all keys expire in time."""
        self.check_times()
        try:
            until(lambda: not self.left_in_redis(), "expiry", self.max_lease_ms / 1000 * 1.02 + 1 + 4 * self.worst_gap)
        except AssertionError:
            self.fail("L8", "these keys are left after the longest lease: %s" % ", ".join(self.left_in_redis()[:5]))

    def finish(self, kind, orphans=True):
        """The faults are over. Judges the recovery, what is left, and the history. Returns (verdict, seconds of the longest recovery)."""
        took = self.settle()
        self.pause(0.5)
        self.log.tell("window", at=self.began, to=now())
        if orphans:
            self.check_times()
        self.stop_clients()
        self.quiescent()
        self.stop_daemons()
        if orphans:
            self.check_orphans()
        verdict = Verdict(History.of(self.folder), kind, self.registers.fenced_state(), self.registers.counts(), answer_ms=self.answer_ms())
        if self.options.get("client", {}).get("grace_ms"):
            self.note("%d locks resumed" % verdict.resumed)
            if not verdict.resumed:
                self.fail("S12", "no lock was resumed")
        for rows in verdict.history.clients.values():
            for row in rows:
                if row["e"] == "failed":
                    self.fail("S21", "a client gave up: " + row["text"][-1200:])
        if self.watchers and not any(row["e"] == "event" for c in self.watchers for row in verdict.history.clients.get(c, ())):
            self.fail("blind", "no watcher was told of an event")
        self.violations += [str(violation) for violation in verdict.violations]
        return verdict, max(took, verdict.recovery())

    def answer_ms(self):
        """How long a request may take beyond its wait: three rounds of two timeouts each, and how late this machine is."""
        return 6 * self.options.get("timeout_ms", 100) + 50 + 1500 + 10 * self.worst_gap * 1000
