# SPDX-License-Identifier: BSD-2-Clause
"""Alarms and the slow log: what a daemon logs and counts of long holds and waits, of LOCKs that fail, and of a server that is slow."""
import json
import signal

from harness import FuncTest
from process import merged, yaml
from web import Metrics, free_web

CONF = {"lease": "2s", "max_lease": "3s"}


class Alarms(FuncTest):
    COST = 3

    def test_a_long_hold_and_a_long_wait_are_told_once(self):
        web = free_web()
        daemon = self.daemon({**CONF, "listen": {"http": web.listen}, "alarm": {"held": "400ms", "waited": "300ms"}})
        holder, waiter = self.client(daemon, "worker"), self.client(daemon, "other")
        holder.ok('LOCK a note="nightly export"')
        waiter.begin("LOCK a wait=30s")
        daemon.logged(r'alarm kind=waited name=a waiter="other pid=\d+ uid=\d+" session=\d+ peer=unix waited_ms=\d+$')
        daemon.logged(r'alarm kind=held name=a holder="worker pid=\d+ uid=\d+" session=\d+ peer=unix held_ms=\d+ fence=\d+ note="nightly export"$')
        holder.listen(0.6)
        alarms = {row["kind"]: row.num("value") for row in holder.ok("STATS").rows if row["metric"] == "alarms_total"}
        self.assertEqual(alarms, {"held": 1, "waited": 1, "failures": 0})
        metrics = Metrics(web.ask("/metrics").text)
        self.assertEqual([metrics.value("redlockd_alarms_total", kind=kind) for kind in ("held", "waited", "failures")], [1, 1, 0])
        self.assertEqual([name for name in metrics.families if "alarms" in name], ["redlockd_alarms_total"])
        self.assertEqual(daemon.log().count(" alarm kind="), 2)
        status, out, _ = self.call_redlock(daemon, "ls", "--json")
        self.assertEqual((status, json.loads(out)["alarm"]), (0, "held"))
        self.assertRegex(self.call_redlock(daemon, "ls")[1], r"(?m)^NAME .* ALARM$(.*\n)*^a .* held$")
        status, out, _ = self.call_redlock(daemon, "show", "a", "--json")
        self.assertEqual([json.loads(line)["alarm"] for line in out.splitlines()], ["held", "waited"])
        holder.ok("UNLOCK a")
        self.assertEqual(waiter.reply().kind, "OK")
        self.assertNotIn("alarm", waiter.ok("LIST").rows[0].fields)

    def test_a_reload_switches_them_on(self):
        daemon = self.daemon(CONF)
        holder = self.client(daemon)
        holder.ok("LOCK b")
        daemon.config = yaml(merged(daemon.tree, {"alarm": {"held": "100ms"}}))
        daemon.write_config()
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r"reload key=alarm.held from=0s to=100ms$")
        daemon.logged(r"alarm kind=held name=b ")

    def test_LOCKs_without_a_quorum_are_told(self):
        server = self.redis()
        daemon = self.redis_daemon(server, {**CONF, "alarm": {"failures": 30}})
        client = self.client(daemon)
        server.stop()
        daemon.logged(r"state=down")
        for i in range(25):
            client.err("LOCK n%d" % i, ("QUORUM", "UNAVAILABLE"))
        daemon.logged(r"alarm kind=failures percent=\d+ failed=25 of=\d+ seconds=60$")
        self.assertEqual(client.stats()["alarms_total"], 1)


class Slow(FuncTest):
    COST = 3

    def test_waits_holds_and_calls(self):
        server = self.redis()
        daemon = self.redis_daemon(server, {**CONF, "redis": {"timeout": "2s"}, "slow": {"wait": "300ms", "hold": "400ms", "store": "250ms"}})
        holder, waiter = self.client(daemon), self.client(daemon)
        holder.ok("LOCK a")
        waiter.begin("LOCK a wait=30s")
        holder.listen(0.5)
        holder.ok("UNLOCK a")
        self.assertEqual(waiter.reply().kind, "OK")
        daemon.logged(r'slow kind=hold name=a peer="pid=\d+ uid=\d+" session=\d+ held_ms=\d+ outcome=released$')
        daemon.logged(r'slow kind=wait name=a peer="pid=\d+ uid=\d+" session=\d+ waited_ms=\d+ outcome=granted$')
        server.freeze()
        waiter.begin("LOCK b wait=5s")
        waiter.listen(0.4)
        server.thaw()
        self.assertEqual(waiter.reply().kind, "OK")
        daemon.logged(r"slow kind=store node=\S+ name=b took_ms=\d+ outcome=executed$")
        self.assertNotIn("alarm", daemon.log())
