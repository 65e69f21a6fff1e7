# SPDX-License-Identifier: BSD-2-Clause
"""What the daemon does for a service manager: NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS. The tests need no systemd."""
import fcntl
import os
import signal
import socket
import subprocess
import time

from daemon import Notify
from harness import FuncTest
from process import LATE, REDLOCKD, ROOT, call, free_port, spawn, until, yaml
from resumable import resume, with_grace
from wire import Client

UNIT = os.path.join(ROOT, "redlockd.service")


class Notified(FuncTest):
    COST = 5

    def test_READY_and_STOPPING_are_sent_once(self):
        daemon = self.daemon()
        daemon.finish()
        until(lambda: "STOPPING=1" in daemon.notify.said, "STOPPING=1 is sent")
        self.assertEqual([daemon.notify.said.count(word) for word in ("READY=1", "STOPPING=1")], [1, 1])
        self.assertLess(daemon.notify.said.index("READY=1"), daemon.notify.said.index("STOPPING=1"))

    def test_ready_means_that_connections_are_served(self):
        for _ in range(5):
            daemon = self.daemon(tcp=True)
            for addr in (daemon.addr, daemon.tcp):
                with Client(addr) as c:
                    c.ok("LOCK a wait=5s")

    def test_READY_is_sent_while_redis_is_down(self):
        daemon = self.daemon({"store": "redis", "redis": {"nodes": ["unix:/nonexistent/redis.sock"]}})
        self.assertIn("READY=1", daemon.notify.said)
        self.client(daemon).ok("PING")

    def test_the_watchdog_is_fed_in_time(self):
        daemon = self.daemon(env={"WATCHDOG_USEC": "2000000"})
        self.assertIn("READY=1", daemon.notify.said)
        begin = time.monotonic()
        for _ in range(3):
            daemon.notify.forget()
            daemon.notify.wait("WATCHDOG=1", daemon.process)
        seconds = time.monotonic() - begin
        self.assertLess(seconds, 3 * 2, "the watchdog is fed too late")
        self.assertGreater(seconds, 3 * 0.1, "the watchdog is fed without a pause")

    def test_no_watchdog_is_fed_when_none_is_asked_for(self):
        daemon = self.daemon(env={"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"})
        self.client(daemon).listen(0.6)
        self.assertNotIn("WATCHDOG=1", daemon.notify.said)

    def test_RELOADING_is_sent(self):
        daemon = self.daemon()
        daemon.reload()
        self.assertIn("RELOADING=1", daemon.notify.said)

    def test_a_manager_that_does_not_read_stalls_nobody(self):
        """The socket of the manager holds few datagrams. One that does not fit must not keep the daemon from renewing leases."""
        daemon = self.daemon({"lease": "3s"}, env={"WATCHDOG_USEC": "20000"})
        c = self.client(daemon)
        c.ok("LOCK held")
        daemon.notify.stopped.set()
        slowest, end, next_reload = 0, time.monotonic() + 2, 0
        while time.monotonic() < end:
            if time.monotonic() > next_reload:
                daemon.send_signal(signal.SIGHUP)
                next_reload = time.monotonic() + 0.1
            begin = time.monotonic()
            c.ok("CHECK held")
            slowest = max(slowest, time.monotonic() - begin)
            c.listen(0.01)
        self.assertLess(slowest, LATE)
        self.assertEqual(c.inbox, [])

    def test_a_notify_socket_that_does_not_exist_is_survived(self):
        folder = self.folder()
        daemon = self.daemon(start=False, argv=["env", "NOTIFY_SOCKET=%s/nowhere" % folder, REDLOCKD, "--set", "listen.tcp=no",
                                                "--set", "listen.unix=%s/sock" % folder, "--set", "runtime_dir=%s" % folder]).launch()
        daemon.logged(r" notice ready ")
        with Client(folder + "/sock") as c:
            c.ok("PING")
        self.assertEqual(daemon.finish()[0], 0)


class Activated(FuncTest):
    """Socket activation: the daemon is passed its listening sockets."""

    def activated(self, listeners):
        """Starts the daemon with these sockets as descriptors 3, 4, and so on, by way of bash, whose pid it keeps."""
        daemon = self.daemon(start=False)
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
            sock.bind(os.path.join(self.folder(), "sock"))
        else:
            sock.bind(("127.0.0.1", 0))
        sock.listen(16)
        return sock

    def test_passed_sockets_are_served(self):
        unix, tcp = self.listener(), self.listener(socket.AF_INET)
        waiting = socket.socket(socket.AF_UNIX)
        self.addCleanup(waiting.close)
        waiting.connect(unix.getsockname())
        waiting.sendall(b"PING\n")  # before the daemon starts
        daemon = self.activated([unix, tcp])
        self.assertTrue(daemon.notify.wait("READY=1", daemon.process), daemon.log())
        self.assertRegex(daemon.log(), r"ready .* unix=no tcp=no passed=2 ", "the daemon listens elsewhere, too")
        waiting.settimeout(5)
        self.assertEqual(waiting.recv(10), b"OK\n")
        with Client(unix.getsockname()) as a, Client(tcp.getsockname()) as b:
            a.ok("LOCK x")
            self.assertEqual(b.busy("LOCK x").num("waiters"), 0)
        self.assertEqual(daemon.finish()[0], 0)
        self.assertTrue(os.path.exists(unix.getsockname()), "the daemon has removed a socket that it was passed")

    def test_another_file_in_the_place_of_a_passed_socket_is_told(self):
        unix, tcp = self.listener(), self.listener(socket.AF_INET)
        daemon = self.activated([unix, tcp])
        self.assertTrue(daemon.notify.wait("READY=1", daemon.process), daemon.log())
        c = Client(tcp.getsockname())
        self.addCleanup(c.close)
        self.assertEqual(c.stats()["sockets_lost"], 0)
        os.unlink(unix.getsockname())
        with open(unix.getsockname(), "w"):
            pass
        until(lambda: c.stats()["sockets_lost"] == 1, "nobody can connect there")
        daemon.logged("socket=%s error=\"a file that is no socket" % unix.getsockname())

    def test_a_descriptor_that_is_no_listener_is_refused(self):
        plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(plain.close)
        daemon = self.activated([plain])
        daemon.expect_dead = True
        self.assertNotEqual(daemon.process.wait(5), 0)
        self.assertTrue(daemon.log().strip())


class Sandboxed(FuncTest):
    """The daemon in a mount namespace in which /proc shows only what the unit file allows."""
    COST = 3

    def options(self):
        """The mount options that systemd derives from ProtectProc= and ProcSubset= of the unit file."""
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

    def test_the_log_warns_of_a_boot_that_cannot_be_identified(self):
        daemon = self.inside(self.daemon(start=False), "subset=pid")
        self.assertIn("warn journal boot=unknown", daemon.log())
        self.client(daemon).ok("LOCK a")
