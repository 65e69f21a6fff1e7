# SPDX-License-Identifier: BSD-2-Clause
"""A restart beside other things: signals, TLS, the web listener, secrets, passed sockets, stores that do not answer."""
import contextlib
import http.client
import os
import signal
import socket
import threading
import time

from authority import Authority, TlsClient
from guard import SECRET, crypt_line
from manager import Manager
from process import descriptors_of, free_port, until
from resumable import resume_fences, with_grace
from restarts import RestartTest, on_stores
from web import Events, Metrics, free_web


@on_stores(0, 1)
class Signals:
    """Signals that come while a restart is under way."""
    COST = 8

    def test_SIGUSR2_twice_at_once(self):
        daemon = self.begin()
        c = self.client(daemon)
        fence = c.ok("LOCK a").num("fence")
        for gap in (0, 0.001, 0.01, 0.03, 0.06):
            mark = daemon.log_size()
            daemon.send_signal(signal.SIGUSR2)
            time.sleep(gap)
            daemon.send_signal(signal.SIGUSR2)
            daemon.logged("notice restarted ", mark)
            self.assertEqual(c.ok("CHECK a").num("fence"), fence)
        until(lambda: daemon.log().count("restarted ") >= daemon.log().count("signal=USR2"), "all restarts are over")
        self.assertEqual(c.ok("CHECK a").num("fence"), fence)

    def test_SIGTERM_meanwhile_ends_the_daemon_as_always(self):
        for gap in (0, 0.005, 0.02, 0.05):
            daemon = self.begin()
            holder, waiter = self.client(daemon), self.client(daemon)
            holder.ok("LOCK a")
            waiter.begin("@w LOCK a wait=60s")
            daemon.send_signal(signal.SIGUSR2)
            time.sleep(gap)
            self.assertEqual(daemon.finish()[0], 0)
            self.assertEqual([(line.tag, line.code) for line in waiter.eof(5)], [("@w", "DRAINING")])
            holder.eof(5)

    def test_where_SIGCHLD_was_ignored_before_the_start(self):
        """The kernel then keeps no child for whoever waits for it. Some programs start others so."""
        daemon = self.begin(start=False)
        daemon.argv = ["env", "--ignore-signal=CHLD", *daemon.command()]
        daemon.start()
        self.restart(daemon, 2)

    def test_SIGHUP_meanwhile(self):
        daemon = self.begin()
        c = self.client(daemon)
        fence = c.ok("LOCK a").num("fence")
        for gap in (0, 0.01, 0.05):
            mark = daemon.log_size()
            daemon.send_signal(signal.SIGUSR2)
            time.sleep(gap)
            daemon.send_signal(signal.SIGHUP)
            daemon.logged("notice restarted ", mark)
            self.assertEqual(c.ok("CHECK a").num("fence"), fence)

    def test_a_daemon_that_drains_is_not_restarted(self):
        daemon = self.begin()
        holder, other = self.client(daemon), self.client(daemon)
        holder.ok("LOCK a")
        other.ok("DRAIN in=60s")
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged('error restart error="the daemon drains"', mark)
        holder.ok("CHECK a")
        daemon.expect_dead = True
        holder.ok("UNLOCK a")
        self.assertEqual(daemon.process.wait(10), 0)

    def test_a_configuration_that_has_changed_takes_effect(self):
        daemon = self.begin()
        c = self.client(daemon)
        c.ok("LOCK a")
        daemon.config += "limits: {locks: 2}\n"
        daemon.write_config()
        self.restart(daemon)
        c.ok("LOCK b")
        c.err("LOCK c", "LIMIT")

    def test_an_address_that_has_changed(self):
        """What was listened at is closed; sessions stay."""
        daemon = self.begin(tcp=True)
        unix, tcp, before = self.client(daemon), self.client(daemon, tcp=True), daemon.tcp
        tcp.ok("LOCK a")
        daemon.tcp = ("127.0.0.1", free_port())
        daemon.config = daemon.config.replace(str(before[1]), str(daemon.tcp[1]))
        daemon.write_config()
        self.restart(daemon)
        with self.assertRaises(OSError):
            socket.create_connection(before, 1)
        self.client(daemon, tcp=True).busy("LOCK a")
        unix.busy("LOCK a")
        tcp.ok("CHECK a")


@on_stores(0, 3)
class Leaks:
    COST = 6

    def test_many_restarts_leave_nothing_behind(self):
        daemon = self.begin()
        clients = [self.client(daemon) for _ in range(10)]
        for i, c in enumerate(clients):
            c.ok("LOCK n%d" % i)
        for _ in range(4):  # by then the daemon has made all that it makes once
            clients[0].listen(1)
            self.restart(daemon)
        before = descriptors_of(daemon.pid)
        self.restart(daemon, 15)
        self.assertEqual(descriptors_of(daemon.pid), before)
        self.assertEqual(len([name for name in os.listdir(daemon.runtime_dir) if name.startswith(("keys", "handover"))]), not self.STORES)
        for i, c in enumerate(clients):
            c.ok("UNLOCK n%d" % i)


class Tls(RestartTest):
    COST = 4

    def test_a_session_inside_TLS_is_told_and_resumes(self):
        ca = Authority()
        self.addCleanup(ca.remove)
        cert, key = ca.sign("/CN=localhost")
        address = ("127.0.0.1", free_port())
        daemon = self.begin({"listen": {"tls": "%s:%d" % address}, "tls": {"cert_file": cert, "key_file": key}})
        secure, plain = TlsClient(address, ca.client_context()), self.client(daemon)
        self.addCleanup(secure.close)
        ticket = with_grace(secure)
        fence = secure.ok("LOCK a").num("fence")
        plain.begin("@w LOCK a wait=60s")
        for _ in range(2):
            self.restart(daemon)
            self.assertEqual([str(line) for line in secure.eof(5)], ["! DRAIN in_ms=0"])
            secure = TlsClient(address, ca.client_context())
            self.addCleanup(secure.close)
            self.assertEqual(resume_fences(secure, ticket), {"a": fence})
        self.assertEqual(plain.inbox, [])
        secure.ok("UNLOCK a")
        self.assertEqual(plain.reply("@w").kind, "OK")


class Pages(RestartTest):
    COST = 4

    def test_the_web_listener_goes_on(self):
        web = free_web()
        daemon = self.begin({"listen": {"http": web.listen}})
        c = self.client(daemon)
        c.ok("LOCK a")
        up = web.ask("/api/v1/snapshot").json["server"]["uptime_ms"]
        for _ in range(3):
            stream = Events(web)
            mark = daemon.log_size()
            daemon.send_signal(signal.SIGUSR2)
            while "notice restarted " not in daemon.log(mark):
                self.assertEqual(web.ask("/livez").status, 200)  # nobody is refused meanwhile
            self.assertTrue(stream.ended())
            stream.close()
            self.assertEqual([row["name"] for row in web.ask("/api/v1/snapshot").json["locks"]], ["a"])
            self.assertEqual(Metrics(web.ask("/metrics").text).value("redlockd_locks_held"), 1)
            self.assertGreater(web.ask("/api/v1/snapshot").json["server"]["uptime_ms"], up)
        self.assertEqual(len(c.ok("LIST sessions").rows), 1)
        c.ok("CHECK a")

    def test_a_snapshot_that_is_being_made(self):
        """It takes many passes of the loop, and ends with an error. Its session of the service ends as well."""
        web = free_web()
        daemon = self.begin({"listen": {"http": web.listen}, "limits": {"locks": 6000}})
        c, faults, stopped = self.client(daemon), [], threading.Event()
        for i in range(0, 6000, 500):
            c.send(*["LOCK %s/%d" % ("n" * 100, k) for k in range(i, i + 500)])
            for _ in range(500):
                c.reply()

        def look():
            while not stopped.is_set():
                try:
                    answer = web.ask("/api/v1/snapshot?limit=6000")
                    if answer.status not in (200, 503):
                        faults.append(answer.status)
                except (OSError, http.client.HTTPException):  # cut off
                    pass
        thread = threading.Thread(target=look)
        thread.start()
        with contextlib.ExitStack() as stack:
            stack.callback(thread.join)
            stack.callback(stopped.set)
            self.restart(daemon, 6)
        self.assertEqual(faults, [])
        until(lambda: len(c.ok("LIST sessions").rows) == 1, "the sessions of the web listener are over")

    def test_another_address_of_the_web_listener(self):
        one, two = free_web(), free_web()
        daemon = self.begin({"listen": {"http": one.listen}})
        self.assertEqual(one.ask("/livez").status, 200)
        daemon.config = daemon.config.replace(one.listen, two.listen)
        daemon.write_config()
        self.restart(daemon)
        self.assertEqual(two.ask("/livez").status, 200)
        with self.assertRaises(OSError):
            one.ask("/livez")


class Secrets(RestartTest):
    """AUTH takes its time."""
    COST = 8

    def test_no_AUTH_fails_through_a_restart(self):
        daemon = self.begin(start=False)
        with open(os.path.join(daemon.folder, "users"), "w") as users:
            users.write(crypt_line("ann", SECRET))
        daemon.config += "auth: {users_file: users}\n"
        daemon.start()
        clients = [self.client(daemon) for _ in range(12)]
        for _ in range(2):
            for i, c in enumerate(clients):
                c.send('AUTH ann "%s"' % (SECRET if i % 4 else "wrong"))
            self.restart(daemon)
            for i, c in enumerate(clients):
                answer = c.reply(timeout=30)
                self.assertEqual(answer.kind, "OK" if i % 4 else "ERR", answer)

    def test_a_restart_while_a_secret_is_verified(self):
        """Each is another one, so that each takes its time; SIGUSR2 comes at any moment."""
        daemon = self.begin(start=False)
        with open(os.path.join(daemon.folder, "users"), "w") as users:
            users.write("".join(crypt_line("u%d" % i, SECRET) for i in range(8)))
        daemon.config += "auth: {users_file: users}\n"
        daemon.start()
        clients = [self.client(daemon) for _ in range(8)]
        for i, c in enumerate(clients):
            c.send('@a AUTH u%d "%s"' % (i, SECRET))
        self.restart(daemon, 3)
        for c in clients:
            self.assertEqual(c.reply("@a", 30).kind, "OK")

    def test_those_that_wait_to_be_verified_hold_nothing_up(self):
        """A wrong secret is verified each time. The restart waits for the one that is being verified, and for no other."""
        daemon = self.begin(start=False)
        with open(os.path.join(daemon.folder, "users"), "w") as users:
            users.write(crypt_line("ann", SECRET))
        daemon.config += "auth: {users_file: users}\n"
        daemon.start()
        clients = [self.client(daemon) for _ in range(60)]
        for c in clients:
            c.send('AUTH ann "wrong"')
        self.restart(daemon)
        waiting = [c for c in clients if not c.fill(0)]
        self.assertGreater(len(waiting), 20)
        for c in clients:
            self.assertEqual(c.reply(timeout=60).code, "AUTH")


class Passed(RestartTest):
    COST = 4

    def passed(self, daemon):
        """Starts the daemon with a socket that is passed to it. Returns the stand-in for the service manager."""
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        sock.bind(os.path.join(daemon.folder, "passed"))
        sock.listen(64)
        manager = Manager(daemon, [sock], keeps=False)
        self.addCleanup(manager.close)
        manager.start().ready()
        daemon.addr = sock.getsockname()
        return manager

    def test_passed_sockets_stay_and_nobody_listens_elsewhere(self):
        daemon = self.begin(start=False)
        manager = self.passed(daemon)
        c = self.client(daemon)
        c.ok("LOCK a")
        for _ in range(3):
            mark = daemon.log_size()
            manager.said.clear()
            daemon.send_signal(signal.SIGUSR2)
            daemon.logged("notice ready .* unix=no tcp=no passed=1 ", mark)
            until(lambda: manager.heard("READY"), "the manager hears from it")
            self.client(daemon).busy("LOCK a")
        c.ok("CHECK a")
        self.assertEqual(daemon.finish()[0], 0)
        self.assertTrue(os.path.exists(daemon.addr))

    def test_a_state_that_cannot_be_read_leaves_the_passed_sockets_open(self):
        daemon = self.begin(start=False)
        path = self.own_program(daemon)
        self.passed(daemon)
        c = self.client(daemon)
        self.replace(path, self.without_state(daemon.folder))
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged("notice ready .* passed=1 ", mark)
        c.eof(5)
        self.client(daemon).ok("PING")

    def test_the_watchdog_is_fed_by_the_next_program(self):
        daemon = self.begin(env={"WATCHDOG_USEC": "400000"})
        for _ in range(2):
            self.restart(daemon)
            daemon.notify.forget()
            for _ in range(3):
                daemon.notify.wait("WATCHDOG=1", daemon.process)
                daemon.notify.forget()
