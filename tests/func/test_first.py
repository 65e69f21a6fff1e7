# SPDX-License-Identifier: BSD-2-Clause
"""What an operator meets first: what the daemon says about itself, about mistakes, and to programs that have the wrong port; a client that is there earlier."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

from daemon import on_redis
from harness import FuncTest
from process import LATE, REDLOCK, REDLOCKD, ROOT, call, free_port, private, until
from wire import Client


class Words(FuncTest):
    """What the daemon says about itself, and about mistakes."""

    def test_the_memory_store_says_that_it_is_for_this_host_only(self):
        daemon = self.daemon()
        self.assertIn('store=memory note="this host only', daemon.log())
        self.assertRegex(self.client(daemon).ok("LIST nodes").rows[0]["reason"], "^this host only")
        self.assertIn("this host only", self.call_redlock(daemon, "nodes")[1])

    def test_a_redis_store_does_not(self):
        daemon = self.redis_daemon(self.redis())
        self.assertNotIn("this host only", daemon.log())
        self.assertNotIn("reason", self.client(daemon).ok("LIST nodes").rows[0].fields)

    def test_sigusr1_logs_how_things_are_and_ends_nothing(self):
        daemon = self.daemon()
        c = self.client(daemon)
        c.ok("LOCK a")
        daemon.send_signal(signal.SIGUSR1)
        daemon.logged(r'status version=\S+ pid=%d up_s=\d+ store=memory now="1/1 stores, 1 sessions, 1 locks, 0 waiters" connections=1' % daemon.process.pid)
        daemon.logged(r"status metric=grants_total value=1\n")
        c.ok("CHECK a")

    def test_a_missing_password_file_is_told_once_with_its_place(self):
        server = self.redis()
        daemon = self.refused(on_redis([server], {"redis": {"password_file": "no-such-file"}}), "", status=78)
        self.assertEqual(daemon.log().count("no-such-file: cannot be read: No such file or directory; $CREDENTIALS_DIRECTORY is not set"), 1, daemon.log())
        self.assertRegex(daemon.log(), r"^\S+redlockd.yaml:\d+:\d+: error: \S*no-such-file: cannot be read: ")
        self.assertEqual(daemon.log().count("error"), 1, daemon.log())

    def test_the_check_of_a_configuration_reads_the_password_file(self):
        folder = self.folder()
        path, password = os.path.join(folder, "c.yaml"), os.path.join(folder, "secret")
        with open(path, "w") as out:
            out.write("store: redis\nredis:\n  nodes: [127.0.0.1:1]\n  password_file: secret\n")
        status, _, err = call(REDLOCKD, "--config", path, "--check-config")
        self.assertEqual((status, err.splitlines()[0]), (78, "%s:4:18: error: %s: cannot be read: No such file or directory; "
                                                            "$CREDENTIALS_DIRECTORY is not set" % (path, password)))
        for text, says in (("", "holds no secret"), ("one\ntwo\n", "holds no secret"), ("geheim\n", None)):
            with open(password, "w", opener=private) as out:
                out.write(text)
            status, _, err = call(REDLOCKD, "--config", path, "--check-config")
            self.assertEqual(status, 78 if says else 0, err)
            self.assertIn(says or "", err)
            self.assertNotIn("geheim", err)

    def test_a_reload_with_a_missing_password_file_changes_nothing(self):
        server = self.redis()
        folder = self.folder()
        path = os.path.join(folder, "secret")
        with open(path, "w", opener=private) as out:
            out.write("x\n")
        server.cli.config_set("requirepass", "x")
        server.password = "x"
        daemon = self.daemon(on_redis([server], {"redis": {"password_file": path}})).joined()
        os.unlink(path)
        daemon.send_signal(signal.SIGHUP)
        daemon.logged(r'reload errors=1 note="nothing was changed"')
        self.client(daemon).ok("LOCK a")

    def test_a_file_at_the_path_of_the_socket_is_named_as_what_is_wrong(self):
        path = os.path.join(self.folder(), "file")
        with open(path, "w") as out:
            out.write("precious")
        daemon = self.refused({"listen": {"unix": path}}, 'error="the file at this path is not a socket: remove it, or name another path"')
        self.assertEqual(daemon.log().count(" error "), 1, daemon.log())
        with open(path) as kept:
            self.assertEqual(kept.read(), "precious")

    def test_a_passed_descriptor_that_is_no_socket_is_named_as_what_is_wrong(self):
        daemon = self.daemon(start=False)
        daemon.argv = ["sh", "-c", 'exec 3</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"', *daemon.command()]
        daemon.launch().expect_dead = True
        self.assertNotEqual(daemon.process.wait(10), 0)
        self.assertIn('passed=unknown fd=3 error="this is no stream socket that listens: the unit needs ListenStream="', daemon.log())
        self.assertEqual(daemon.log().count(" error "), 1, daemon.log())

    def test_a_node_that_is_no_redis_is_named_as_what_is_wrong(self):
        with socket.create_server(("127.0.0.1", 0)) as babbler:
            daemon = self.daemon({"store": "redis", "redis": {"nodes": ["127.0.0.1:%d" % babbler.getsockname()[1]]}})
            end, _ = babbler.accept()
            with end:
                end.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                daemon.logged("what answers there is no Redis server, or no sound one")

    def test_a_node_that_accepts_nobody_is_named_as_what_is_wrong(self):
        path = os.path.join(self.folder(), "full")
        with socket.socket(socket.AF_UNIX) as full, socket.socket(socket.AF_UNIX) as first:
            full.bind(path)
            full.listen(0)
            first.connect(path)
            daemon = self.daemon({"store": "redis", "redis": {"nodes": ["unix:" + path]}})
            daemon.logged("too many connections wait to be accepted there")
            self.assertNotIn("temporarily", daemon.log())

    def test_http_is_answered_in_http(self):
        daemon = self.daemon(tcp=True)
        for request in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"):
            with socket.create_connection(daemon.tcp) as end:
                end.sendall(request)
                answer = b"".join(iter(lambda: end.recv(4096), b""))
            head, _, body = answer.decode().partition("\r\n\r\n")
            self.assertEqual(head.split("\r\n")[0], "HTTP/1.1 400 Bad Request")
            self.assertIn("Content-Length: %d" % len(body), head)
            self.assertIn("listen.http", body)

    def test_a_text_with_a_colon_needs_no_quotes_in_set(self):
        status, out, err = call(REDLOCKD, "--set", "redis.key_prefix=q3:", "--set", "redis.set=a: b", "--dump-config")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r'key_prefix: "q3:" +# --set\n')
        self.assertRegex(out, r'set: "a: b" +# --set\n')


class SocketUnit(FuncTest):
    """redlockd.socket."""

    def streams(self):
        with open(os.path.join(ROOT, "redlockd.socket")) as unit:
            return re.findall(r"^ListenStream=(.*)$", unit.read(), re.M)

    def test_it_listens_where_clients_look_and_comes_before_the_service(self):
        self.assertEqual(self.streams(), ["/run/redlockd/redlockd.sock", "127.0.0.1:7420"])
        with open(os.path.join(ROOT, "redlockd.service")) as unit:
            self.assertRegex(unit.read(), r"(?m)^After=.*\bredlockd\.socket\b")

    @unittest.skipUnless(shutil.which("systemd-socket-activate"), "without systemd")
    def test_the_first_client_starts_the_daemon_and_is_served(self):
        port = free_port()
        daemon = self.daemon({"listen": {"unix": "/tmp/elsewhere", "tcp": "127.0.0.1:%d" % free_port()}}, start=False)
        listens = [{"/": daemon.addr}.get(stream[0], "127.0.0.1:%d" % port) for stream in self.streams()]
        daemon.argv = ["systemd-socket-activate", *(word for stream in listens for word in ("-l", stream)), *daemon.command()]
        daemon.launch()
        daemon.logged("^Listening on 127.0.0.1:%d " % port)  # the last of them
        with Client(daemon.addr) as one, Client(("127.0.0.1", port)) as two:
            one.ok("LOCK a", timeout=10)
            two.busy("LOCK a")
        log = daemon.log()
        self.assertIn('listen listen.unix=/tmp/elsewhere note="not used, since sockets are passed', log)
        self.assertIn("listen listen.tcp=127.0.0.1:", log)
        self.assertRegex(log, r"ready .* unix=no tcp=no passed=2 ")

    def test_with_a_mistake_in_its_configuration_it_turns_away_who_waits(self):
        """Whoever waits at the socket would start it again and again."""
        path = os.path.join(self.folder(), "socket")
        with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
            listening.bind(path)
            listening.listen(10)
            for end in (first, second):
                end.connect(path)
                end.settimeout(5)
            status, _, err = call("bash", "-c", 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" --set leese=1s 3<&%d' % listening.fileno(), REDLOCKD,
                                  pass_fds=[listening.fileno()])
            self.assertEqual(status, 78)
            self.assertIn("unknown key 'leese'", err)
            self.assertNotIn("not started", err)
            for end in (first, second):
                self.assertEqual(end.recv(100), b"")


    def test_with_a_mistake_it_says_how_the_next_restart_is_checked_first(self):
        """systemd gives each start of a unit an id."""
        path = os.path.join(self.folder(), "x.yaml")
        with open(path, "w") as out:
            out.write("leese: 1s\n")
        status, _, err = call(REDLOCKD, "--config", path, env=dict(os.environ, INVOCATION_ID="x"))
        self.assertEqual(status, 78)
        self.assertRegex(err, r"redlockd: not started; before the next restart, .*: redlockd --config %s --check-config\n$" % re.escape(path))


class Tool(FuncTest):
    """redlock while the daemon is away, and for cron."""

    def test_run_with_a_wait_waits_for_the_daemon(self):
        daemon = self.daemon()
        daemon.finish()
        process = self.start_redlock(daemon, "run", "-w", "20s", "a", "--", "echo", "mine")
        time.sleep(0.6)
        self.assertIsNone(process.poll())
        daemon.start()
        self.assertEqual(process.wait(10), 0)
        with Client(daemon.addr) as c:
            self.assertEqual(c.ok("SHOW a").rows, [])

    def test_hold_and_work_with_a_wait_wait_for_the_daemon(self):
        daemon = self.daemon()
        self.client(daemon).ok("DEFER q text")
        daemon.finish()
        holder = self.start_redlock(daemon, "hold", "-w", "20s", "a", stdin=subprocess.PIPE)
        worker = self.start_redlock(daemon, "work", "-w", "20s", "q", "--", "cat")
        time.sleep(0.6)
        self.assertEqual((holder.poll(), worker.poll()), (None, None))
        daemon.start()
        self.assertRegex(holder.stdout.readline(), rb"^\d+\n$")
        self.assertEqual(worker.stdout.read(4), b"text")
        holder.stdin.close()
        self.assertEqual(holder.wait(10), 0)
        worker.terminate()
        self.assertIn(worker.wait(10), (128 + signal.SIGTERM, -signal.SIGTERM))  # between two jobs the signal ends it

    def test_hold_that_waits_for_the_daemon_ends_with_its_script_and_by_a_signal(self):
        daemon = self.daemon()
        daemon.finish()
        for end, status in ((lambda p: p.stdin.close(), 125), (lambda p: p.send_signal(signal.SIGTERM), 128 + signal.SIGTERM)):
            process = self.start_redlock(daemon, "hold", "-w", "1h", "a", stdin=subprocess.PIPE)
            time.sleep(0.3)
            self.assertIsNone(process.poll())
            end(process)
            self.assertEqual(process.wait(5), status)

    def test_run_with_a_wait_gives_up_at_its_end_and_without_one_at_once(self):
        folder = self.folder()
        for argv, least in ((["-w", "1s"], 1), (["-w", "0"], 0), ([], 0)):
            before = time.monotonic()
            status, out, err = call(REDLOCK, "--addr", folder + "/none", "run", *argv, "a", "--", "echo", "x")
            took = time.monotonic() - before
            self.assertEqual((status, out), (125, ""))
            self.assertEqual(err, "redlock: cannot reach redlockd at %s/none: No such file or directory; is it running? See systemctl status "
                                  "redlockd on its host\n" % folder)
            self.assertTrue(least <= took < least + LATE, took)

    def test_an_address_that_is_wrong_is_not_waited_for(self):
        before, folder = time.monotonic(), self.folder()
        self.assertEqual(call(REDLOCK, "--addr", "x:y", "run", "-w", "20s", "a", "--", "true")[0], 125)
        status, _, err = call(REDLOCK, "--addr", folder, "run", "-w", "20s", "a", "--", "true")
        self.assertEqual((status, err), (125, "redlock: cannot reach redlockd at %s: the file at this path is not a socket\n" % folder))
        self.assertLess(time.monotonic() - before, LATE)

    def test_who_lost_the_race_is_told_that_the_name_is_kept_and_since_when(self):
        server = self.redis()
        one, other = self.redis_daemon(server), self.redis_daemon(server)
        self.assertEqual(self.call_redlock(one, "run", "--keep", "20s", "nightly", "--", "true")[0], 0)
        for daemon, end in ((one, r"\n"), (other, r" on @\S+\n")):
            status, _, err = self.call_redlock(daemon, "try", "--keep", "20s", "nightly", "--", "true")
            self.assertEqual(status, 124)
            self.assertRegex(err, r"^redlock: nightly is kept for 1\ds more since it ran \d+m?s ago" + end)
            self.assertEqual(self.call_redlock(daemon, "try", "--quiet", "nightly", "--", "true"), (124, "", ""))
            self.assertIn("KEPT", self.call_redlock(daemon, "show", "nightly")[1])

    def test_who_lists_nothing_on_a_terminal_is_told_that_there_is_nothing(self):
        daemon = self.daemon()
        said = {("ls",): "through this daemon nobody holds a lock, or waits for one", ("jobs", "mail"): "there are no jobs of mail",
                ("ls", "a/\x1b"): "through this daemon nobody holds a lock, or waits for one, whose name begins with a/\\x1b",
                ("queues",): "there are no queues"}
        for argv, text in said.items():
            _, slave = self.terminal()
            process = self.start_redlock(daemon, *argv, stdout=slave)
            os.close(slave)
            self.assertEqual(process.stderr.read().decode(), "redlock: %s\n" % text)
            self.assertEqual(process.wait(10), 0)
            self.assertEqual(self.call_redlock(daemon, *argv), (0, "", ""))
        _, slave = self.terminal()
        process = self.start_redlock(daemon, "ls", "--json", stdout=slave)
        os.close(slave)
        self.assertEqual((process.stderr.read(), process.wait(10)), (b"", 0))
        self.client(daemon).ok("LOCK a")
        master, slave = self.terminal()
        process = self.start_redlock(daemon, "ls", stdout=slave)
        os.close(slave)
        self.assertEqual((process.stderr.read(), process.wait(10)), (b"", 0))

    def test_ls_shows_the_holder_in_full_and_long_tells_all(self):
        daemon = self.daemon()
        c = self.client(daemon)
        c.ok('HELLO 1 name="%s"' % ("a long label of a worker that does a lot " * 3))
        c.ok("LOCK a-name-of-some-length/of-an-order/4711")
        _, out, _ = self.call_redlock(daemon, "ls")
        self.assertRegex(out, r"^NAME +HOLDER +HELD +WAITERS\na-name-of-some-length/of-an-order/4711 +(a long label [a-z ]+){3} *pid=\S+ uid=\S+ +\S+ +0\n$")
        _, out, _ = self.call_redlock(daemon, "ls", "-l")
        self.assertRegex(out, r"^NAME +HOLDER +HELD +VALID +FENCE +COUNT +WAITERS +SESSION\n")
        self.assertNotIn("...", out)
