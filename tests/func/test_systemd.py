# SPDX-License-Identifier: BSD-2-Clause
"""The service manager's side: NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS, without systemd."""
import fcntl
import os
import signal
import socket
import subprocess
import time

from harness import Daemon, FuncTest, Notify
from process import REDLOCKD, call, free_port, spawn, temp_folder, until, yaml
from resumable import resume, with_grace
from wire import Client

UNIT = os.path.join(os.path.dirname(__file__), "..", "..", "redlockd.service")


class Notified(FuncTest):
    COST = 5

    def test_READY_and_STOPPING_are_said_once(self):
        daemon = self.daemon()
        daemon.finish()
        until(lambda: "STOPPING=1" in daemon.notify.said, "STOPPING=1 is said")
        self.assertEqual([daemon.notify.said.count(word) for word in ("READY=1", "STOPPING=1")], [1, 1])
        self.assertLess(daemon.notify.said.index("READY=1"), daemon.notify.said.index("STOPPING=1"))

    def test_ready_means_that_connections_are_served(self):
        for _ in range(5):
            daemon = self.daemon(tcp=True)
            for addr in (daemon.addr, daemon.tcp):
                with Client(addr) as c:
                    c.ok("LOCK a wait=5s")

    def test_ready_is_said_while_redis_is_down(self):
        daemon = self.daemon({"store": "redis", "redis": {"nodes": ["unix:/nonexistent/redis.sock"]}})
        self.assertIn("READY=1", daemon.notify.said)
        self.client(daemon).ok("PING")

    def test_the_watchdog_is_fed_in_time(self):
        daemon = self.daemon(env={"WATCHDOG_USEC": "400000"})
        self.assertIn("READY=1", daemon.notify.said)
        begin = time.monotonic()
        for _ in range(5):
            daemon.notify.forget()
            daemon.notify.wait("WATCHDOG=1", daemon.process)
        seconds = time.monotonic() - begin
        self.assertLess(seconds, 5 * 0.4, "often enough")
        self.assertGreater(seconds, 5 * 0.02, "not without end")

    def test_no_watchdog_is_fed_when_none_is_asked_for(self):
        daemon = self.daemon(env={"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"})
        self.client(daemon).listen(0.6)
        self.assertNotIn("WATCHDOG=1", daemon.notify.said)

    def test_a_reload_is_told(self):
        daemon = self.daemon()
        daemon.notify.forget()
        daemon.send_signal(signal.SIGHUP)
        daemon.notify.wait("READY=1", daemon.process)
        self.assertIn("RELOADING=1", daemon.notify.said)

    def test_a_manager_that_does_not_listen_stalls_nobody(self):
        """Its socket holds few datagrams; what does not fit must not keep the loop from renewing leases."""
        daemon = self.daemon({"lease": "500ms"}, env={"WATCHDOG_USEC": "20000"})
        c = self.client(daemon)
        c.ok("LOCK held")
        daemon.notify.deaf.set()
        slowest, end, next_reload = 0, time.monotonic() + 2, 0
        while time.monotonic() < end:
            if time.monotonic() > next_reload:
                daemon.send_signal(signal.SIGHUP)
                next_reload = time.monotonic() + 0.1
            begin = time.monotonic()
            c.ok("CHECK held")
            slowest = max(slowest, time.monotonic() - begin)
            c.listen(0.01)
        self.assertLess(slowest, 0.3)
        self.assertEqual(c.inbox, [])

    def test_a_socket_that_does_not_exist_ends_nothing(self):
        folder = temp_folder()
        daemon = Daemon(argv=["env", "NOTIFY_SOCKET=%s/nowhere" % folder, REDLOCKD, "--set", "listen.tcp=no", "--set", "listen.unix=%s/sock" % folder,
                              "--set", "runtime_dir=%s" % folder])
        self.addCleanup(lambda: [os.unlink(os.path.join(folder, f)) for f in os.listdir(folder)] and os.rmdir(folder))
        self.addCleanup(daemon.stop)
        daemon.launch()
        until(lambda: os.path.exists(folder + "/sock"), "the socket")
        with Client(folder + "/sock") as c:
            c.ok("PING")
        self.assertEqual(daemon.finish()[0], 0)


class Activated(FuncTest):
    """Listening sockets that were passed."""

    def activated(self, listeners):
        """The daemon with these sockets as descriptors 3, 4, …; bash knows the pid that its exec keeps."""
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        daemon.tree["listen"] = {"tcp": "127.0.0.1:%d" % free_port()}
        daemon.config = yaml(daemon.tree)
        path = os.path.join(daemon.folder, "notify")
        daemon.notify = Notify(path)
        high = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 200) for s in listeners]
        moves = " ".join("%d<&%d %d<&-" % (3 + i, fd, fd) for i, fd in enumerate(high))
        script = "export LISTEN_PID=$$ LISTEN_FDS=%d; exec %s --config %s %s" % (len(high), REDLOCKD, daemon.write_config(), moves)
        with open(daemon.log_path, "ab") as log:
            daemon.process = spawn(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=high,
                                   env=dict(daemon.env, NOTIFY_SOCKET=path))
        for fd in high:
            os.close(fd)
        return daemon

    def listener(self, family=socket.AF_UNIX):
        sock = socket.socket(family)
        self.addCleanup(sock.close)
        if family == socket.AF_UNIX:
            folder = temp_folder()
            path = os.path.join(folder, "sock")
            self.addCleanup(lambda: (os.path.exists(path) and os.unlink(path), os.rmdir(folder)))
            sock.bind(path)
        else:
            sock.bind(("127.0.0.1", 0))
        sock.listen(16)
        return sock

    def test_passed_sockets_are_served(self):
        unix, tcp = self.listener(), self.listener(socket.AF_INET)
        waiting = socket.socket(socket.AF_UNIX)
        self.addCleanup(waiting.close)
        waiting.connect(unix.getsockname())
        waiting.sendall(b"PING\n")  # before the daemon even starts
        daemon = self.activated([unix, tcp])
        self.assertTrue(daemon.notify.wait("READY=1", daemon.process), daemon.log())
        self.assertRegex(daemon.log(), r"ready .* unix=no tcp=no passed=2 ", "nothing else is listened on")
        waiting.settimeout(5)
        self.assertEqual(waiting.recv(10), b"OK\n")
        with Client(unix.getsockname()) as a, Client(tcp.getsockname()) as b:
            a.ok("LOCK x")
            self.assertEqual(b.busy("LOCK x").num("waiters"), 0)
        self.assertEqual(daemon.finish()[0], 0)
        self.assertTrue(os.path.exists(unix.getsockname()), "a passed socket is not the daemon's to unlink")

    def test_a_descriptor_that_is_no_listener_is_refused_by_name(self):
        plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(plain.close)
        daemon = self.activated([plain])
        daemon.expect_dead = True
        self.assertNotEqual(daemon.process.wait(5), 0)
        self.assertTrue(daemon.log().strip())


class Sandboxed(FuncTest):
    """A daemon that sees of /proc what the unit lets it see."""
    COST = 3

    def options(self):
        """Those of the mount that systemd.exec(5) makes of ProtectProc= and ProcSubset=."""
        with open(UNIT, encoding="utf-8") as unit:
            said = dict(line.rstrip().split("=", 1) for line in unit if "=" in line and not line.startswith("#"))
        return "hidepid=%s,subset=%s" % (said.get("ProtectProc", "default"), said.get("ProcSubset", "all"))

    def inside(self, daemon, options):
        daemon.argv = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o "$0" proc /proc && exec "$@"', options, *daemon.command()]
        return daemon.start()

    def setUp(self):
        super().setUp()
        if call("unshare", "--mount", "mount", "-t", "proc", "proc", "/proc")[0]:
            self.skipTest("no mount namespaces here")

    def test_a_session_is_resumed_after_a_restart(self):
        options = self.options().replace("hidepid=default", "hidepid=off").replace(",subset=all", "")
        daemon = self.inside(self.daemon(start=False), options)
        client = self.client(daemon)
        ticket = with_grace(client)
        fence = client.ok("LOCK a").num("fence")
        daemon.finish()
        held = resume(self.client(self.inside(daemon, options)), ticket)
        self.assertEqual([row.num("fence") for row in held.values()], [fence], daemon.log())
        self.assertNotIn("boot=unknown", daemon.log())

    def test_a_boot_that_cannot_be_named_is_warned_of(self):
        daemon = self.inside(self.daemon(start=False), "subset=pid")
        self.assertIn("warn journal boot=unknown", daemon.log())
        self.client(daemon).ok("LOCK a")


if __name__ == "__main__":
    from harness import main
    main()
