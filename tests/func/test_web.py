# SPDX-License-Identifier: BSD-2-Clause
"""The web listener: health, metrics, the snapshot and the stream of events. The page itself: test_web_page.py."""
import contextlib
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from harness import FuncTest, StoreTest, on_each_store
from process import WAIT, memory_kib, sanitized, until
from web import Events, Metrics, Web, drain, free_web


class WebTest(FuncTest):
    def start(self, web=None, tree=None, **options):
        """A daemon with a web listener."""
        web = web or free_web()
        d = self.daemon({"listen": {"http": web.listen}, **(tree or {})}, **options)
        return d, web


class Asking(WebTest):
    COST = 10

    def test_health(self):
        d, web = self.start()
        d.joined()
        answer = web.ask("/livez")
        self.assertEqual((answer.status, answer.body), (200, b"ok\n"))
        answer = web.ask("/readyz")
        self.assertEqual((answer.status, answer.body), (200, b"memory joined\n"))
        for path in ("/livez", "/readyz", "/metrics", "/", "/api/v1/snapshot", "/api/v1/events"):
            answer = web.ask(path, "HEAD")
            self.assertEqual((answer.status, answer.body), (200, b""), path)
            self.assertIn("default-src 'none'", answer["Content-Security-Policy"])

    def test_readyz_names_each_store(self):
        d, web = self.start(tree={"store": "redis", "redis": {"nodes": ["red1=127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]}})
        answer = web.ask("/readyz")
        self.assertEqual(answer.status, 503)
        self.assertEqual(answer.text, "red1 down\n127.0.0.1:2 down\n127.0.0.1:3 down\n")
        self.assertEqual(web.ask("/livez").status, 200)
        self.assertTrue(d.alive())

    def test_clients_are_counted_by_transport(self):
        d, web = self.start(tcp=True)
        self.client(d).ok("PING")
        for _ in range(2):
            self.client(d, tcp=True).ok("PING")
        gone = self.client(d)
        gone.ok("PING")
        gone.close()
        until(lambda: Metrics(web.ask("/metrics").text).value("redlockd_clients", transport="unix") == 1, "the client is gone")
        now = Metrics(web.ask("/metrics").text)
        self.assertEqual([now.value("redlockd_clients", transport=over) for over in ("unix", "tcp", "tls")], [1, 2, 0])
        self.assertEqual([now.value("redlockd_connections_total", transport=over) for over in ("unix", "tcp", "tls")], [2, 2, 0])
        self.assertEqual(now.value("redlockd_connections_refused_total"), 0)

    def test_a_configuration_with_a_mistake_is_told_until_it_is_mended(self):
        d, web = self.start()

        def reloaded():
            now = Metrics(web.ask("/metrics").text)
            return now.value("redlockd_config_last_reload_successful"), now.value("redlockd_config_last_reload_success_timestamp_seconds")

        def reload(config):
            d.config, before = config, d.config
            d.write_config()
            d.notify.forget()
            d.send_signal(signal.SIGHUP)
            self.assertTrue(d.notify.wait("READY=1", d.process))
            return before
        successful, start = reloaded()
        self.assertEqual(successful, 1)
        self.assertLess(abs(start - time.time()), 600)
        good = reload("lease: never\n")
        self.assertEqual(reloaded()[0], 0)
        self.assertAlmostEqual(reloaded()[1], start, delta=1)
        reload(good)
        self.assertEqual(reloaded()[0], 1)
        self.assertGreater(reloaded()[1], start)

    def test_errors_of_a_redis_are_counted(self):
        server, web = self.redis(), free_web()
        self.redis_daemon(server, {"listen": {"http": web.listen}})

        def errors(kind):
            return Metrics(web.ask("/metrics").text).value("redlockd_redis_errors_total", kind=kind)
        self.assertEqual((errors("broken"), errors("attempt")), (0, 0))
        server.stop()
        until(lambda: errors("attempt") > 0, "an attempt fails")
        self.assertEqual(errors("broken"), 1)

    def test_what_is_refused(self):
        _, web = self.start()
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = web.ask("/metrics", method, body="x" if method != "OPTIONS" else None)
            self.assertEqual((answer.status, answer["Allow"]), (405, "GET, HEAD"), method)
        for path in ("/nothing", "/livez/", "/api/v1", "/%2e", "//"):
            self.assertEqual(web.ask(path).status, 404, path)
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::1]", "10.0.0.1", "localhost:x", "a:b:c", ""):
            self.assertEqual(web.ask("/", host=host).status, 421, host)
        for host in ("localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:%d" % web.at[1], "localhost."):
            self.assertEqual(web.ask("/", host=host).status, 200, host)
        self.assertIn(b" 421 ", web.raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n").split(b"\r\n")[0])
        self.assertIn(b" 421 ", web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").split(b"\r\n")[0])
        self.assertRegex(web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"x" * 9000)).split(b"\r\n")[0] + b" 400 ", b" (400|431) ")
        for path in ("/api/v1/snapshot?limit=x", "/api/v1/snapshot?limit=10001", "/api/v1/snapshot?prefix=%zz", "/api/v1/events?prefix=" + 600 * "x"):
            self.assertEqual(web.ask(path).status, 400, path)
        self.assertEqual(web.ask("/livez").status, 200)

    def test_a_slow_head_is_closed_in_5_s_and_harms_nobody(self):
        d, web = self.start()
        begin, slow = time.monotonic(), [web.connect(20) for _ in range(100)]
        for sock in slow:
            sock.sendall(b"GET / HT")
        client = self.client(d)
        while time.monotonic() - begin < 4:  # a byte now and then does not prolong it
            slow[0].sendall(b"x")
            begun = time.monotonic()
            client.ok("LOCK a wait=5s")
            client.ok("UNLOCK a")
            self.assertEqual(web.ask("/livez").status, 200)
            self.assertLess(time.monotonic() - begun, 2)
            time.sleep(0.5)
        for sock in slow:
            drain(sock)
            sock.close()
        took = time.monotonic() - begin
        self.assertTrue(4.5 < took < 9, "%.1f s" % took)

    def test_more_connections_than_are_accepted_leave_the_others_alone(self):
        d, web = self.start()
        held = [web.connect() for _ in range(400)]
        client = self.client(d)
        client.ok("LOCK a")
        self.assertLess(len(os.listdir("/proc/%d/fd" % d.pid)), 300)
        for sock in held:
            sock.close()
        until(lambda: web.ask("/livez").status == 200, "it answers again")

    def test_one_peer_cannot_take_all_connections(self):
        _, web = self.start()
        kept = [web.connect() for _ in range(128)]

        def answered():
            return select.select(kept, [], [], 0)[0]
        until(lambda: len(answered()) == 7, "the first ones make room, as their requests have not come")
        refused = answered()
        self.assertEqual(refused, kept[:7])
        self.assertRegex(drain(refused[0]), rb"(?s)^HTTP/1\.1 503 .*\r\n\r\ntoo many connections of this peer\n$")
        begun = time.monotonic()
        other = Web(web.at, source="127.0.0.2")
        self.assertEqual([other.ask("/livez").status for _ in range(20)], [200] * 20)
        self.assertLess(time.monotonic() - begun, 3)  # those of the first are closed in 5 s
        self.assertEqual(answered(), refused)  # none of the others
        self.assertEqual([web.ask("/livez").status for _ in range(3)], [200] * 3)
        self.assertEqual(answered(), kept[:len(answered())])

    def test_clients_that_do_not_read_their_answers_keep_no_probe_of_their_peer_waiting(self):
        d, web = self.start()
        slow = [self.reads_nothing(web) for _ in range(125)]
        for sock in slow:
            select.select([sock], [], [], WAIT)  # the answer has begun
        self.assertGreater(len(os.listdir("/proc/%d/fd" % d.pid)), 120)
        self.assertEqual([web.ask("/livez").status for _ in range(20)], [200] * 20)
        self.assertIn(b"\nredlockd_", drain(slow[-1]))  # the youngest goes on

    def reads_nothing(self, web):
        """A client so far away that the kernel takes no whole answer for it."""
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.settimeout(WAIT)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 100)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.connect(web.at)
        sock.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return sock

    def test_a_unix_socket(self):
        path = os.path.join(self.folder(), "http")
        d, web = self.start(Web(path))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o666)
        self.assertEqual(web.ask("/livez").status, 200)
        self.assertEqual(web.ask("/api/v1/snapshot").json["locks"], [])
        self.assertEqual(web.ask("/", host="evil.example").status, 421)
        d.stop()
        self.assertFalse(os.path.exists(path))

    def test_beyond_loopback_only_with_a_token(self):
        port = free_web().at[1]
        self.refused({"listen": {"http": "0.0.0.0:%d" % port}}, "error: other hosts may reach 0.0.0.0:%d: set http.token_file" % port, 78)
        token = os.path.join(self.folder(), "token")
        with open(token, "w"):
            pass
        tree = {"listen": {"http": "0.0.0.0:%d" % port}, "http": {"token_file": token, "hosts": ["locks.example", "other.example"]}}
        self.refused(tree, "error: the file holds no token", 78)
        with open(token, "w") as out:
            out.write("s3cret\n")
        d, web = self.start(Web(("127.0.0.1", port)), tree)
        for path in ("/", "/metrics", "/api/v1/snapshot", "/api/v1/events", "/nothing"):
            for headers in ({}, {"Authorization": "Bearer s3cre"}, {"Authorization": "Bearer s3crett"}, {"Authorization": "Basic s3cret"}):
                answer = web.ask(path, headers=headers)
                self.assertEqual((answer.status, answer["WWW-Authenticate"]), (401, 'Bearer realm="redlockd"'), (path, headers))
        bearer = {"Authorization": "Bearer s3cret"}
        for path in ("/", "/metrics", "/api/v1/snapshot"):
            self.assertEqual(web.ask(path, headers=bearer).status, 200)
        for path in ("/livez", "/readyz"):
            self.assertEqual(web.ask(path).status, 200)
        for host, status in (("10.1.2.3", 200), ("[2001:db8::1]:80", 200), ("OTHER.example", 200), ("db3", 421)):
            self.assertEqual(web.ask("/", headers=bearer, host=host).status, status, host)
        self.assertNotIn("s3cret", d.log())

    def test_sigterm_ends_streams_and_the_daemon_within_a_second(self):
        d, web = self.start()
        events, chunked = Events(web), web.connect()
        chunked.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertIn(b"text/event-stream", chunked.recv(4096))
        begin = time.monotonic()
        d.process.send_signal(signal.SIGTERM)
        self.assertTrue(events.ended())
        self.assertTrue(drain(chunked).endswith(b"0\r\n\r\n"), "the stream ends as HTTP has it")
        d.expect_dead = True
        self.assertEqual(d.process.wait(10), 0)
        self.assertLess(time.monotonic() - begin, 1 + 2)

    def test_no_web_listener_by_default(self):
        d = self.daemon()
        self.assertIn("http=no", d.log())


@on_each_store
class Figures:
    COST = 3

    @classmethod
    def setUpClass(cls):
        cls.web = free_web()
        cls.CONFIG = {"listen": {"http": cls.web.listen}}
        StoreTest.setUpClass.__func__(cls)

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
            rows = [row.fields for row in client.ok("STATS").rows]
            after = Metrics(self.metrics().text).samples()
            stats = {(row["metric"], *[item for item in row.items() if item[0] not in ("metric", "value")]): float(row["value"]) for row in rows}
            self.assertEqual(len(stats), len(rows), "no row stands twice")
            self.assertEqual(set(stats) ^ set(after), set())
            self.assertEqual(list(stats), list(after), "the order is the same, too")
            self.assertIn(names, (None, list(stats)))
            names = list(stats)
            moved = [key for key in after if before[key] != after[key]]
            for key, value in stats.items():
                if key in moved:
                    self.assertTrue(before[key] <= value <= after[key] or key[0] == "timers", (key, before[key], value, after[key]))
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
                ("handover_clients_total", ""), ("config_last_reload_successful", ""), ("config_last_reload_success_timestamp_seconds", "")):
            self.assertEqual(labels.get(name), {tuple(its.split())}, name)
        self.assertEqual(labels.get("redis_errors_total"), {("server", "kind")} if getattr(self, "r", None) else None)

    def test_boards_and_alerts_use_figures_that_there_are(self):
        names = {"redlockd_" + name for name, *_ in Metrics(self.metrics().text).samples()} | {"redlockd_redis_errors_total"}
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

    def test_the_snapshot_tells_who_holds_and_who_waits(self):
        holder, name = self.connect("worker-7"), self.name()
        fence = holder.ok('LOCK %s note="nightly export"' % name).num("fence")
        self.waiting(name, 2)
        snapshot = self.web.ask("/api/v1/snapshot?prefix=" + name).json
        self.assertEqual(set(snapshot), {"server", "stores", "totals", "locks", "more"})
        self.assertEqual([store["state"] for store in snapshot["stores"]], ["joined"])
        self.assertEqual(snapshot["totals"]["waiters"], 2)
        [lock] = snapshot["locks"]
        self.assertEqual((lock["name"], lock["kind"], lock["mode"], lock["fence"]), (name, "lock", "exclusive", fence))
        [held] = lock["holders"]
        self.assertEqual((held["label"], held["peer"], held["count"], held["note"]), ("worker-7", "unix", 1, "nightly export"))
        self.assertTrue(0 <= held["held_ms"] < 10000 and 0 < held["valid_ms"] <= 10000 and held["session"] > 0)
        self.assertEqual([waiter["label"] for waiter in lock["waiters"]], ["waiter-0", "waiter-1"])
        self.assertTrue(all(0 <= waiter["waited_ms"] < 10000 for waiter in lock["waiters"]))

    def test_the_snapshot_has_pages(self):
        client, name = self.connect(), self.name()
        for i in range(5):
            client.ok("LOCK %s-%d" % (name, i))
        seen, after, pages = [], "", 0
        while True:
            page = self.web.ask("/api/v1/snapshot?prefix=%s&limit=2&after=%s" % (name, after)).json
            seen += [lock["name"] for lock in page["locks"]]
            after, pages = page["locks"][-1]["name"], pages + 1
            if not page["more"]:
                break
        self.assertEqual((seen, pages), (["%s-%d" % (name, i) for i in range(5)], 3))

    def test_permits_and_readers(self):
        client, name = self.connect(), self.name()
        client.ok("ACQUIRE %s-s limit=3" % name)
        client.ok("LOCK %s-r mode=shared" % name)
        self.connect().ok("LOCK %s-r mode=shared" % name)
        readers, permits = self.web.ask("/api/v1/snapshot?prefix=" + name).json["locks"]
        self.assertEqual((readers["mode"], len(readers["holders"])), ("shared", 2))
        self.assertEqual((permits["kind"], permits["limit"], len(permits["holders"])), ("semaphore", 3, 1))
        self.assertNotIn("mode", permits)

    def test_queues_stand_among_the_locks(self):
        """In the order of names, on pages: a queue and a lock of one name on the same one."""
        client, name = self.connect(), self.name()
        for lock in "bdf":
            client.ok("LOCK %s-%s" % (name, lock))
        for queue in "adg":
            client.ok("DEFER %s-%s one" % (name, queue))
        client.ok("DEFER %s-d two delay=1h" % name)
        client.ok("TAKE %s-g" % name)
        for limit in (1, 2, 3, 4, 1000):
            seen, after = [], ""
            while True:
                page = self.web.ask("/api/v1/snapshot?prefix=%s&limit=%d&after=%s" % (name, limit, after)).json
                seen += page["locks"]
                after = page["locks"][-1]["name"]
                if not page["more"]:
                    break
            self.assertEqual([(row["name"][-1], row["kind"]) for row in seen],
                             [("a", "queue"), ("b", "lock"), ("d", "lock"), ("d", "queue"), ("f", "lock"), ("g", "queue")], limit)
        a, d, g = [row for row in seen if row["kind"] == "queue"]
        self.assertEqual([(row["due"], row["leased"], row["dead"]) for row in (a, d, g)], [(1, 0, 0), (2, 0, 0), (0, 1, 0)])
        self.assertEqual((a["holders"], a["waiters"], "mode" in a, "fence" in a), ([], [], False, False))

    def test_hostile_names(self):
        client, name = self.connect(), self.name()
        client.ok(r'LOCK "%s <img src=x>\"\xff\x00\n" note="</script>"' % name)
        raw = self.web.ask("/api/v1/snapshot?prefix=%s+%%3Cimg" % name)
        [lock] = raw.json["locks"]
        self.assertEqual(lock["name"], '%s <img src=x>"\udcff\x00\n' % name)
        self.assertEqual(lock["holders"][0]["note"], "</script>")
        again = self.web.ask("/api/v1/snapshot?prefix=%s%%20%%3Cimg%%20src=x%%3E%%22%%FF%%00" % name).json
        self.assertEqual(len(again["locks"]), 1)

    def test_events(self):
        (holder, waiter), name = self.two(), self.name()
        events = Events(self.web, "?prefix=" + name)
        self.addCleanup(events.close)
        self.assertTrue(events.headers["content-type"].startswith("text/event-stream"))
        holder.ok("LOCK another-" + name)
        fence = holder.ok("LOCK " + name).num("fence")
        waiter.begin("LOCK %s wait=60s" % name)
        holder.ok("UNLOCK " + name)
        got = [events.next() for _ in range(4)]
        self.assertEqual([kind for kind, _ in got], ["granted", "waiting", "released", "granted"])
        self.assertEqual({data["name"] for _, data in got}, {name})
        self.assertEqual(got[0][1]["fence"], fence)
        self.assertEqual([data["kind"] for _, data in got], [kind for kind, _ in got])


class Slow(WebTest):
    COST = 8

    def test_a_reader_that_does_not_read_gets_a_gap_and_delays_nobody(self):
        d, web = self.start(Web(os.path.join(self.folder(), "http")))
        client, events = self.client(d), Events(web)
        self.addCleanup(events.close)
        note = "x" * 250
        for _ in range(60):
            client.send(*["LOCK a note=%s\nUNLOCK a" % note] * 100)
            for _ in range(200):
                self.assertEqual(client.reply().kind, "OK")
        self.assertLess(memory_kib(d.pid), 64 << 10)
        kinds, missed = {}, 0
        while "gap" not in kinds:
            kind, data = events.next()
            kinds[kind] = kinds.get(kind, 0) + 1
            missed += data.get("missed", 0)
        self.assertEqual(sum(kinds.values()) - 1 + missed, 12000)

    def test_streams_have_a_bound_and_leave(self):
        d, web = self.start()
        other = Web(web.at, source="127.0.0.2")
        streams = [Events(web) for _ in range(31)]
        self.assertEqual(web.ask("/api/v1/events").status, 503)  # the last one is left for another peer
        streams.append(Events(other))
        self.assertEqual(other.ask("/api/v1/events").status, 503)
        self.assertEqual(web.ask("/api/v1/snapshot").status, 200)
        for stream in streams:
            stream.close()
        until(lambda: web.ask("/api/v1/snapshot").status == 200 and len(os.listdir("/proc/%d/fd" % d.pid)) < 40, "those who left are forgotten", WAIT)
        Events(web).close()

    def test_clients_that_leave_before_the_end_of_the_answer_leave_nothing(self):
        d, web = self.start()

        def come_and_go(times):
            for _ in range(times):
                for stream in [Events(web) for _ in range(30)]:
                    stream.close()
                until(lambda: len(os.listdir("/proc/%d/fd" % d.pid)) < 35, "those who left are forgotten", WAIT)
            return memory_kib(d.pid)
        before = come_and_go(10)
        after = come_and_go(30)
        if not sanitized():  # a sanitizer keeps freed memory
            self.assertLess(after - before, 500, "KiB for 900 clients")


VISITOR = """
import contextlib, socket, sys, time
while True:
    with contextlib.suppress(OSError), socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as sock:
        sock.sendall(b"GET %s HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n" % sys.argv[3].encode())
    time.sleep(0.002)
"""


class Crowd(WebTest):
    """Many ask for snapshots of many long names at a time."""
    COST = 10

    def start_with_locks(self, locks):
        d, web = self.start()
        client = self.client(d)
        for i in range(locks):
            client.ok('LOCK "%04d%s"' % (i, 500 * "\\xff"))
        return d, web, client

    def begin(self, web, query="", path="/api/v1/snapshot"):
        sock = web.connect()
        self.addCleanup(sock.close)
        sock.sendall(b"GET %s%s HTTP/1.0\r\nHost: localhost\r\n\r\n" % (path.encode(), query.encode()))
        return sock

    def answer(self, sock):
        head, _, body = drain(sock).partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    def visitor(self, web, path):
        """A process that asks for this path and closes at once, again and again."""
        process = subprocess.Popen([sys.executable, "-c", VISITOR, *map(str, web.at), path])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def beside(self, web, client, path):
        """While others ask for this path and leave: what LOCK and UNLOCK take in the median, and what /livez and /readyz take."""
        visitors, took = [self.visitor(web, path) for _ in range(2)], []
        end = time.monotonic() + 3
        while time.monotonic() < end or len(took) < 9:
            began = time.monotonic()
            client.ok("LOCK a")
            client.ok("UNLOCK a")
            took.append(time.monotonic() - began)
        began = time.monotonic()
        self.assertEqual([web.ask(probe).status for probe in ("/livez", "/readyz")], [200, 200])
        probe = time.monotonic() - began
        for visitor in visitors:
            visitor.kill()
            visitor.wait()
        return sorted(took)[len(took) // 2], probe

    def test_clients_that_ask_and_leave_keep_no_lock_and_no_probe_waiting(self):
        _, web, client = self.start_with_locks(1000)
        lone = []
        for _ in range(5):
            began = time.monotonic()
            answer = web.ask("/api/v1/snapshot")
            lone.append(time.monotonic() - began)
            self.assertGreater(len(answer.json["locks"]), 100)  # the answer has a bound
        lone = sorted(lone)[2]
        usual, _ = self.beside(web, client, "/nothing")
        median, probe = self.beside(web, client, "/api/v1/snapshot")
        self.figure("one snapshot: %.1f ms; LOCK and UNLOCK beside other requests: %.1f ms, beside many of snapshots: %.1f ms, /livez and /readyz: %.1f ms" %
                    (1e3 * lone, 1e3 * usual, 1e3 * median, 1e3 * probe))
        self.assertLess(median, lone + 10 * usual)
        self.assertLess(probe, 10 * lone + 2)

    def test_equal_requests_share_a_snapshot_that_begins_after_they_came(self):
        _, web, client = self.start_with_locks(500)
        first = self.begin(web, "?limit=1000")
        client.ok("LOCK !new")
        socks = [self.begin(web, "?limit=1000") for _ in range(30)]
        heads = [self.begin(web, "?limit=1"), self.begin(web, "?prefix=%21")]
        self.assertEqual(self.answer(first)[0], 200)
        answers = [self.answer(sock) for sock in socks]
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertLessEqual(len({body for _, body in answers}), 3)
        for body in {body for _, body in answers}:
            self.assertIn(b'{"name":"!new"', body)
            self.assertTrue(body.endswith(b"}\n"))
        for sock in heads:
            status, body = self.answer(sock)
            self.assertEqual((status, body.count(b'"kind":"lock"')), (200, 1))

    def test_requests_for_figures_that_come_at_once_share_a_text(self):
        """Each text of its own would keep the locks waiting."""
        d, web = self.start()
        socks = [web.connect() for _ in range(100)]
        until(lambda: len(os.listdir("/proc/%d/fd" % d.pid)) > 100, "all are accepted")
        d.freeze()
        for sock in socks:
            self.addCleanup(sock.close)
            sock.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        d.thaw()
        answers = [self.answer(sock) for sock in socks]
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertLess(len({body for _, body in answers}), 20)  # each tells the processor time of its moment

    def test_different_requests_are_all_answered_up_to_a_bound(self):
        _, web, client = self.start_with_locks(500)
        socks = [self.begin(web, "?limit=%d" % (i + 1)) for i in range(64)]
        late = [self.begin(web, "?limit=%d" % (100 + i)) for i in range(8)]
        self.assertEqual(web.ask("/livez").status, 200)
        client.ok("LOCK a")
        for i, sock in enumerate(socks):
            status, body = self.answer(sock)
            self.assertEqual((status, body.count(b'"kind":"lock"')), (200, i + 1))
        self.assertLessEqual({self.answer(sock)[0] for sock in late}, {200, 503})

    def test_many_short_requests_of_one_peer_are_all_answered(self):
        _, web = self.start()
        self.assertEqual({self.answer(self.begin(web, path="/livez"))[0] for _ in range(1000)}, {200})

    def test_the_daemon_ends_well_while_snapshots_are_asked_for(self):
        d, web, _ = self.start_with_locks(500)
        web.ask("/livez")
        socks = [self.begin(web, "?limit=%d" % (400 + i)) for i in range(60)]
        d.process.send_signal(signal.SIGTERM)
        d.expect_dead = True
        for sock in socks:
            drain(sock)
        self.assertEqual(d.process.wait(10), 0, d.log())

    def test_streams_that_the_daemon_has_no_time_for_miss_events_and_count_them(self):
        d, web = self.start()
        client, streams = self.client(d), [Events(web) for _ in range(24)]
        note = "x" * 250
        for _ in range(30):
            client.send(*["LOCK a note=%s\nUNLOCK a" % note] * 100)
            for _ in range(200):
                self.assertEqual(client.reply().kind, "OK")
        if not sanitized():
            self.assertLess(memory_kib(d.pid), 64 << 10)
        for stream in streams:
            self.addCleanup(stream.close)
            seen = 0
            while seen < 6000:
                kind, data = stream.next()
                seen += data["missed"] if kind == "gap" else 1
            self.assertEqual(seen, 6000)


class Nonsense(WebTest):
    COST = 8

    def test_garbage_harms_nobody(self):
        d, web = self.start()
        seed = random.randrange(10 ** 9)
        chance = random.Random(seed)
        client = self.client(d)
        client.ok("LOCK a")
        heads = [head + b"\r\n" for head in (
            b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"GET /api/v1/snapshot?prefix=%41&limit=5 HTTP/1.1\r\nHost: localhost\r\n",
            b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n", b"GET http://[::1]:7/%zz?a=%1 HTTP/1.1\r\nHost: a\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n",
            b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n", b"CONNECT a:1 HTTP/1.1\r\n",
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")]
        for _ in range(500):
            data = bytearray(chance.choice(heads) * chance.choice((1, 1, 2)))
            for _ in range(chance.choice((0, 1, 3, 10))):
                data[chance.randrange(len(data))] = chance.randrange(256)
            with contextlib.suppress(OSError), web.connect(0.2) as sock:
                sock.sendall(bytes(data[:chance.choice((len(data), chance.randrange(len(data))))]))
                if chance.random() < 0.3:
                    sock.recv(chance.choice((1, 65536)))
        self.assertTrue(d.alive(), "seed %d" % seed)
        until(lambda: web.ask("/livez").status == 200, "it answers, seed %d" % seed)
        client.ok("UNLOCK a")


class Stalled(FuncTest):
    def test_the_snapshot_comes_while_the_store_does_not_answer(self):
        web, server = free_web(), self.redis()
        daemon = self.redis_daemon(server, {"listen": {"http": web.listen}})
        client = self.client(daemon)
        client.ok("LOCK a")
        client.ok("DEFER b one")
        server.freeze()
        self.addCleanup(server.thaw)
        begin = time.monotonic()
        self.assertEqual([row["kind"] for row in web.ask("/api/v1/snapshot").json["locks"]], ["lock"])
        self.assertLess(time.monotonic() - begin, 3)
        server.thaw()
        until(lambda: [row["kind"] for row in web.ask("/api/v1/snapshot").json["locks"]] == ["lock", "queue"], "the queue is shown again")
