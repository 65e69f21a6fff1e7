# SPDX-License-Identifier: BSD-2-Clause
"""The figures at /metrics of the web listener, which are those of STATS."""
import os
import re
import shutil
import signal
import subprocess
import time

from harness import FuncTest, on_each_store
from process import until
from web import Events, Metrics, OnWeb, free_web

UP_AND_DOWN = ("timers", "event_loop_lag_seconds")  # as time passes, whoever asks


@on_each_store
class Figures(OnWeb):
    COST = 3

    def metrics(self):
        answer = self.web.ask("/metrics")
        self.assertEqual(answer["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        return answer

    def test_STATS_and_the_page_tell_the_same_names_labels_and_values(self):
        client, name = self.connect(), self.name()
        self.traffic(client, name)
        names, moved = None, []
        for _ in range(3):
            before = Metrics(self.metrics().text).samples()
            rows = [row.fields for row in client.ok("STATS all").rows]
            after = Metrics(self.metrics().text).samples()
            stats = {(row["metric"], *[item for item in row.items() if item[0] not in ("metric", "value")]): float(row["value"]) for row in rows}
            self.assertEqual(len(stats), len(rows), "no row stands twice")
            self.assertEqual(set(stats) ^ set(after), set())
            self.assertEqual(list(stats), list(after), "the order is the same, too")
            self.assertIn(names, (None, list(stats)))
            names = list(stats)
            moved = [key for key in after if before[key] != after[key]]
            for key, value in stats.items():
                if key[0] in UP_AND_DOWN:
                    continue
                if key in moved:
                    self.assertTrue(before[key] <= value <= after[key], (key, before[key], value, after[key]))
                else:
                    self.assertEqual(value, after[key], key)
        self.assertLess(len(moved), len(names) / 4, "most stand still")
        self.assertGreater(sum(1 for value in stats.values() if value), 30, "there was traffic")

    def traffic(self, client, name):
        client.ok("LOCK %s note=x" % name)
        rival = self.connect()
        rival.busy("LOCK " + name)
        rival.ask("LOCK %s wait=20ms" % name)
        client.ok("LOCK " + name)
        client.ok("UNLOCK %s sync=yes" % name)
        client.ok("UNLOCK %s sync=yes" % name)
        client.ok("ACQUIRE %s-s limit=2" % name)
        client.ok("RATE %s-r limit=5 per=1m" % name)
        client.ok("DEFER %s-q x" % name)
        client.ok("TAKE %s-q wait=5s" % name)
        client.ask("NONSENSE")

    def test_times_are_in_seconds_and_in_histograms(self):
        client, name = self.connect(), self.name()
        before = Metrics(self.metrics().text)
        client.ok("LOCK " + name)
        time.sleep(0.03)
        client.ok("UNLOCK %s sync=yes" % name)
        client.ok("LOCK " + name)
        now = Metrics(self.metrics().text)
        self.assertEqual(now.value("redlockd_locks_held"), 1)
        for histogram, more in (("acquire_wait", 2), ("hold", 1)):
            self.assertEqual(now.value("redlockd_%s_seconds_count" % histogram) - before.value("redlockd_%s_seconds_count" % histogram), more)
        self.assertEqual(now.value("redlockd_hold_seconds_bucket", le="0.02"), before.value("redlockd_hold_seconds_bucket", le="0.02"))
        self.assertGreater(now.value("redlockd_hold_seconds_sum"), 0.03)
        self.assertGreater(now.value("redlockd_redis_round_trip_seconds_count"), 0)
        self.assertEqual((now.value("redlockd_quorum_available"), now.value("redlockd_redis_up"), now.value("redlockd_build_info")), (1, 1, 1))
        self.assertGreater(now.value("process_resident_memory_bytes"), 1 << 20)
        self.assertLess(abs(now.value("process_start_time_seconds") - time.time()), 600)

    def test_requests_are_counted_by_command_and_result(self):
        client, name = self.connect(), self.name()
        before = Metrics(self.metrics().text)
        client.ok("LOCK " + name)
        client.ok("lock " + name)
        self.connect().busy("LOCK " + name)
        client.ok("UNLOCK %s" % name)
        client.err("UNLOCK %s-other" % name, "NOTHELD")
        client.ask("NONSENSE")
        now = Metrics(self.metrics().text)

        def more(command, result):
            its = {"command": command, "result": result}
            return now.value("redlockd_requests_total", **its) - before.value("redlockd_requests_total", **its)
        self.assertEqual([more("lock", result) for result in ("ok", "busy", "timeout", "error")], [2, 1, 0, 0])
        self.assertEqual([more("unlock", "ok"), more("unlock", "error"), more("other", "error"), more("acquire", "ok")], [1, 1, 1, 0])
        total = client.stats()["requests_total"]
        self.assertEqual(total, sum(value for _, _, value in now.families["redlockd_requests_total"][1]))

    def test_the_figures_of_operators_are_there_with_their_labels(self):
        """Names and labels that boards and alerts rely on."""
        labels = {}
        for name, *its in Metrics(self.metrics().text).samples():
            labels.setdefault(name, set()).add(tuple(label for label, _ in its))
        for name, its in (
                ("build_info", "version store"), ("clients", "transport"), ("connections_total", "transport"), ("requests_total", "command result"),
                ("locks_held", ""), ("waiters", ""), ("acquire_wait_seconds_bucket", "result le"), ("acquire_wait_seconds_count", "result"),
                ("hold_seconds_bucket", "le"), ("releases_total", "reason"), ("leases_lost_total", "reason"), ("renewals_total", "result"),
                ("redis_up", "server"), ("redis_round_trip_seconds_bucket", "server le"), ("quorum_available", ""), ("event_loop_lag_seconds", ""),
                ("handover_clients_total", ""), ("journal_writable", ""), ("audit_writable", ""), ("sockets_lost", ""),
                ("config_last_reload_successful", ""),
                ("config_last_reload_success_timestamp_seconds", "")):
            self.assertEqual(labels.get(name), {tuple(its.split())}, name)
        self.assertEqual(labels.get("redis_errors_total"), {("server", "kind")} if getattr(self, "r", None) else None)

    def test_boards_and_alerts_use_figures_that_there_are(self):
        names = {"redlockd_" + name for name, *_ in Metrics(self.metrics().text).samples()} | {
            "redlockd_redis_errors_total", "redlockd_redis_trouble", "redlockd_certificate_expires_seconds"}  # which a healthy server without TLS has not
        names |= {"redlockd_group_" + one for one in ("requests_total", "losses_total", "wait_seconds_bucket", "hold_seconds_bucket")}  # nor one without groups
        for path in ("contrib/prometheus/redlockd.rules.yml", "contrib/prometheus/redlockd.test.yml", "contrib/grafana/redlockd.json"):
            with open(os.path.join(os.path.dirname(__file__), "..", "..", path), encoding="utf-8") as f:
                used = set(re.findall(r"redlockd_[a-z_]+(?=\\?[{\[ ])", f.read()))
            self.assertGreater(len(used), 3, path)
            self.assertEqual(used - names, set(), path)

    def test_ends_of_holds_are_counted_by_reason(self):
        client, admin, name = self.connect(), self.connect(), self.name()

        def reasons():
            return {row["reason"]: row.num("value") for row in admin.ok("STATS").rows if row["metric"] == "releases_total"}
        before = reasons()
        self.assertEqual(list(before), ["client", "disconnect", "forced", "expired"])
        client.ok("LOCK %s" % name)
        client.ok("UNLOCK %s" % name)
        client.ok("LOCK %s-1" % name)
        admin.ok("BREAK %s-1" % name)
        client.ok("LOCK %s-2" % name)
        client.close()
        until(lambda: reasons()["disconnect"] > before["disconnect"], "its hold has ended")
        now = reasons()
        self.assertEqual({reason: now[reason] - before[reason] for reason in now}, {"client": 1, "disconnect": 1, "forced": 1, "expired": 0})

    def test_who_asks_here_is_in_no_figure_and_in_no_list(self):
        client = self.connect()
        with_page = Events(self.web)
        self.addCleanup(with_page.close)
        before = client.stats()
        for _ in range(3):
            self.web.ask("/api/v1/snapshot")
        self.assertEqual(len(client.ok("LIST sessions").rows), 1)
        after = client.stats()
        for metric in ("sessions", "sessions_opened_total"):
            self.assertEqual(after[metric], before[metric], metric)
        self.assertEqual(int(after["requests_total"]) - int(before["requests_total"]), 2)

    def test_promtool_finds_no_fault(self):
        promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool is not installed (Debian package prometheus)")
        self.connect().ok("LOCK " + self.name())
        done = subprocess.run([promtool, "check", "metrics"], input=self.metrics().body, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))


class Groups(FuncTest):
    def test_figures_of_groups_of_names_are_those_of_the_configuration(self):
        web = free_web()
        daemon = self.daemon({"listen": {"http": web.listen}, "metrics": {"groups": {"orders": "orders/*", "rest": "*"}}})
        client, other = self.client(daemon), self.client(daemon)
        client.ok("LOCK orders/1")
        other.busy("LOCK orders/1")
        other.send("LOCK orders/1 wait=10s")
        until(lambda: client.stats()["waiters"] == 1, "it waits")
        time.sleep(0.03)
        client.ok("UNLOCK orders/1")
        self.assertEqual(other.reply().kind, "OK")
        client.ok("LOCK x")

        def figures():
            return Metrics(web.ask("/metrics").text)
        now = figures()
        self.assertEqual([now.value("redlockd_group_requests_total", group="orders", result=result) for result in ("ok", "busy", "timeout", "error")],
                         [2, 1, 0, 0])
        self.assertEqual(now.value("redlockd_group_requests_total", group="rest", result="ok"), 1)
        self.assertEqual(now.value("redlockd_group_wait_seconds_count", group="orders"), 3)
        self.assertGreater(now.value("redlockd_group_wait_seconds_sum", group="orders"), 0.03)
        self.assertEqual(now.value("redlockd_group_hold_seconds_count", group="orders"), 1)
        self.assertEqual(now.value("redlockd_group_losses_total", group="orders"), 0)
        daemon.config = daemon.config.replace("orders/*", "nothing/*")
        daemon.write_config()
        daemon.reload()
        client.ok("LOCK orders/2")
        now = figures()
        self.assertEqual((now.value("redlockd_group_requests_total", group="orders", result="ok"),
                          now.value("redlockd_group_requests_total", group="rest", result="ok")), (2, 2))

    def test_a_star_within_a_pattern_is_refused_at_a_start_and_at_a_reload(self):
        web = free_web()
        daemon = self.daemon({"listen": {"http": web.listen}, "metrics": {"groups": {"orders": "orders/*"}}})
        wrong = "metrics.groups: the pattern of 'orders' is a name, or a beginning of names and one * at its end"
        daemon.config = daemon.config.replace("orders/*", "*/orders")
        daemon.write_config()
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(re.escape(wrong), mark)
        daemon.logged(r'reload errors=1 note="nothing was changed"', mark)
        client = self.client(daemon)
        client.ok("LOCK orders/1")
        client.ok("LOCK x/orders")
        self.assertEqual(Metrics(web.ask("/metrics").text).value("redlockd_group_requests_total", group="orders", result="ok"), 1)
        self.refused({"metrics": {"groups": {"orders": "orders/*/1"}}}, wrong, 78)
