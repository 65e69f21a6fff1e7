# SPDX-License-Identifier: BSD-2-Clause
"""A restart that cannot be: the daemon carries on; or it starts as after a crash, and never wrong."""
import os
import shutil
import signal
import socket
import stat
import time

from daemon import on_redis
from process import LATE, WAIT, merged, until, yaml
from redis_server import Redis
from resumable import resume_fences, with_grace
from restarts import RestartTest, on_stores


class CarriesOn(RestartTest):
    """The program or the configuration on disk does not start."""
    COST = 10

    def carries_on(self, daemon, c, pattern, timeout=WAIT):
        mark = daemon.log_size()
        waiter = self.client(daemon)
        waiter.begin("@w LOCK a wait=60s")
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged(pattern, mark, timeout)
        self.assertNotIn("restarted", daemon.log(mark))
        self.assertEqual(waiter.inbox, [])
        c.ok("UNLOCK a")
        self.assertEqual(waiter.reply("@w").kind, "OK")
        waiter.ok("UNLOCK a")
        c.ok("LOCK a")

    def test_a_program_that_does_not_start(self):
        daemon = self.begin(start=False)
        path = self.own_program(daemon)
        daemon.start()
        c = self.client(daemon)
        c.ok("LOCK a")
        os.rename(path, path + ".old")
        self.carries_on(daemon, c, r"error restart .*No such file or directory")
        for script, why in (("exit 1", "does not start"), ("echo strange >&2; kill -SEGV $$", "ended by a signal")):
            with open(path, "w") as out:
                out.write("#!/bin/sh\n%s\n" % script)
            os.chmod(path, 0o755)
            self.carries_on(daemon, c, r"error restart .*%s" % why)
        self.assertRegex(daemon.log(), "(?m)^strange$")
        with open(path, "w") as out:
            out.write("no program\n")
        os.chmod(path, stat.S_IRUSR)
        self.carries_on(daemon, c, r"error restart .*(Permission denied|Exec format error|does not start)")
        os.replace(path + ".old", path)
        self.restart(daemon)
        c.ok("CHECK a")

    def test_a_check_that_takes_too_long(self):
        daemon = self.begin(start=False)
        path = self.own_program(daemon)
        daemon.start()
        c = self.client(daemon)
        c.ok("LOCK a")
        os.unlink(path)
        with open(path, "w") as out:
            out.write("#!/bin/sh\nexec sleep 1000\n")
        os.chmod(path, 0o755)
        self.carries_on(daemon, c, r"error restart .*takes too long", 10 + LATE)  # a trial may take 10 s

    def test_a_mistake_in_the_configuration(self):
        daemon = self.begin()
        c = self.client(daemon)
        c.ok("LOCK a")
        good = daemon.config
        daemon.config = good + "leese: 3s\n"
        daemon.write_config()
        self.carries_on(daemon, c, r"error restart .*the configuration has a mistake")
        self.assertIn("unknown key 'leese'", daemon.log())
        daemon.config = good
        daemon.write_config()
        self.restart(daemon)
        c.ok("CHECK a")

    def test_another_runtime_directory(self):
        daemon, other = self.begin(), self.begin()
        c = self.client(daemon)
        c.ok("LOCK a")
        good = daemon.config
        for folder in ("/nowhere/at/all", other.runtime_dir):
            daemon.config = good.replace(daemon.runtime_dir, folder)
            daemon.write_config()
            mark = daemon.log_size()
            self.restart(daemon, quietly=False)
            self.assertRegex(daemon.log(mark), "error restart runtime=%s configured=%s " % (daemon.runtime_dir, folder))
            c.ok("CHECK a")
        daemon.config = good
        daemon.write_config()
        self.restart(daemon)
        c.ok("CHECK a")

    def test_an_audit_log_that_cannot_be_opened(self):
        """It may have been moved, or the configuration may name another: its lines are left out until it can be opened."""
        folder = self.folder()
        for begin in (None, {"audit": {"file": os.path.join(folder, "audit")}}):
            daemon = self.begin(begin)
            c = self.client(daemon)
            c.ok("LOCK a")
            path = os.path.join(folder, "moved", "audit")
            daemon.config = yaml(merged(daemon.tree, {"audit": {"file": path}}))
            daemon.write_config()
            mark = daemon.log_size()
            self.restart(daemon, quietly=False)
            self.assertRegex(daemon.log(mark), "error audit file=.*No such file")
            c.ok("UNLOCK a")
            os.mkdir(os.path.dirname(path))
            c.ok("LOCK a")
            with open(path) as audit:
                self.assertIn('"left_out":', audit.readline())
            shutil.rmtree(os.path.dirname(path))

    def test_a_file_of_jobs_that_cannot_be_read(self):
        """Jobs are refused until it can be. Whoever has one keeps it as long as its lease lasts."""
        daemon = self.begin({"max_lease": "2m"})
        c = self.client(daemon)
        c.ok("LOCK a")
        c.ok("DEFER q x id=1")
        c.ok("DEFER q x id=2")
        c.ok("TAKE q ttl=2m")
        path = os.path.join(daemon.runtime_dir, "jobs.db")
        os.rename(path, path + ".moved")
        os.symlink("jobs.db.moved", path)  # which the daemon does not follow
        mark = daemon.log_size()
        self.restart(daemon, quietly=False)
        c.ok("CHECK a")
        until(lambda: c.ok("LIST nodes").rows[0].fields.get("cause") == "jobs", "LIST nodes says so")
        daemon.logged("error jobs .*symbolic links.*refused until it can be read", mark)
        for line in ("DEFER q x id=2", "TAKE q", "LIST jobs prefix=q"):
            self.assertIn("symbolic links", str(c.ask(line)), line)
        self.restart(daemon, quietly=False)
        c.ok("CHECK a")
        self.assertEqual(c.ask("CHECK q job=1").code, "UNAVAILABLE")
        os.rename(path + ".moved", path)
        daemon.logged("jobs .*is written again", mark)
        until(lambda: "cause" not in c.ok("LIST nodes").rows[0].fields, "all is well")
        c.ok("CHECK q job=1")
        c.ok("DONE 1")
        self.assertEqual(c.ok("TAKE q")["job"], "2")
        self.assertNotIn("LOST", str(c.inbox))

    def test_what_came_through_a_pipe(self):
        """The next process would find nothing there, and go elsewhere, or wait for ever."""
        daemon = self.begin(start=False, env={"RUNTIME_DIRECTORY": self.folder()})
        daemon.argv = ["bash", "-c", "exec %s --config <(cat %s)" % (daemon.command()[0], daemon.write_config())]
        daemon.start()
        c = self.client(daemon)
        c.ok("LOCK a")
        self.carries_on(daemon, c, "error restart file=/dev/fd/.* error=.no regular file")

    def test_servers_that_would_take_no_connection_of_the_next_process(self):
        """It would have no quorum, and all that is held would be lost. Its password, not that of this process, is the one that counts."""
        path = os.path.join(self.folder(), "password")
        with open(path, "w") as out:
            out.write("word\n")
        os.chmod(path, 0o600)
        servers = [self.redis() for _ in range(3)]
        for server in servers:
            server.cli.execute_command("ACL", "SETUSER", "u", "on", ">word", "~*", "&*", "+@all")
        daemon = self.daemon(on_redis(servers, {"lease": "5s", "max_lease": "10s", "redis": {"user": "u", "password_file": path}})).joined()
        c = self.client(daemon)
        c.ok("LOCK a")
        servers[0].cli.execute_command("ACL", "SETUSER", "u", "resetpass", ">another")
        self.restart(daemon, quietly=False)  # the other two are a quorum
        c.ok("CHECK a")
        for server in servers[1:]:
            server.cli.execute_command("ACL", "SETUSER", "u", "resetpass", ">another")
        self.carries_on(daemon, c, r"error restart .*error=\"too few servers would take its connections\"")
        self.assertRegex(daemon.log(), r"(?m)^redlockd: error: unix:.*sock: .*WRONGPASS")
        with open(path, "w") as out:
            out.write("another\n")
        self.restart(daemon, quietly=False)
        c.ok("CHECK a")

    def test_a_server_that_has_no_room_for_one_more_connection(self):
        """The trial connects while this process is connected."""
        server = self.redis()
        daemon = self.daemon(on_redis([server], {"lease": "5s", "max_lease": "10s"})).joined()
        c = self.client(daemon)
        c.ok("LOCK a")
        server.cli.config_set("maxclients", server.cli.info("clients")["connected_clients"])
        self.carries_on(daemon, c, r"error restart .*error=\"too few servers would take its connections\"")
        self.assertRegex(daemon.log(), r"(?m)^redlockd: error: .*: ERR max number of clients reached; fix: raise maxclients at the server")
        server.cli.config_set("maxclients", 100)
        self.restart(daemon, quietly=False)
        c.ok("CHECK a")

    def test_without_a_quorum_it_restarts_whatever_its_servers_do(self):
        server = self.redis()
        daemon = self.daemon(on_redis([server], {"lease": "5s", "max_lease": "10s"})).joined()
        server.stop()
        daemon.logged("node .*state=down")
        self.restart(daemon, quietly=False)

    def test_a_directory_in_the_place_of_a_password(self):
        path = os.path.join(self.folder(), "password")
        with open(path, "w") as out:
            out.write("word\n")
        os.chmod(path, 0o600)
        server = Redis(args=["--requirepass", "word"])
        server.password = "word"
        self.addCleanup(server.stop)
        daemon = self.daemon(on_redis([server.start()], {"redis": {"password_file": path}})).joined()
        os.unlink(path)
        os.mkdir(path)
        c = self.client(daemon)
        c.ok("LOCK a")
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGHUP)
        daemon.logged("error reload .*nothing was changed", mark)
        self.carries_on(daemon, c, "error restart .*")

    def test_a_mistake_in_the_configuration_at_standard_input(self):
        daemon = self.begin(start=False)
        daemon.argv = ["bash", "-c", "exec %s --config /dev/stdin <%s" % (daemon.command()[0], daemon.write_config())]
        daemon.start()
        c = self.client(daemon)
        c.ok("LOCK a")
        self.restart(daemon)
        daemon.config += "leese: 3s\n"
        daemon.write_config()
        self.carries_on(daemon, c, r"error restart .*the configuration has a mistake")

    def test_an_address_that_cannot_be_had(self):
        """The check binds none: the next process goes on where it listened."""
        daemon = self.begin()
        c = self.client(daemon)
        c.ok("LOCK a")
        good, taken = daemon.config, socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        port = taken.getsockname()[1]
        for key in ("tcp: 127.0.0.1:%d" % port, "unix: /nowhere/sock", "http: 127.0.0.1:%d" % port):
            lines = [line for line in good.splitlines() if key.split(":")[0] + ":" not in line]
            lines.insert(lines.index("listen:") + 1, "  " + key)
            daemon.config = "\n".join(lines) + "\n"
            daemon.write_config()
            mark = daemon.log_size()
            self.restart(daemon, quietly=False)
            self.assertRegex(daemon.log(mark), "error listen ")
            c.ok("CHECK a")
            self.assertEqual(self.client(daemon).ask("LOCK a").kind, "BUSY")
        daemon.config = good
        daemon.write_config()
        self.restart(daemon)
        c.ok("CHECK a")

    def test_a_runtime_directory_that_takes_no_file(self):
        daemon = self.begin()
        c = self.client(daemon)
        c.ok("LOCK a")
        os.mkdir(os.path.join(daemon.runtime_dir, "handover.new"))
        self.carries_on(daemon, c, 'warn restart error="Is a directory"')
        os.rmdir(os.path.join(daemon.runtime_dir, "handover.new"))
        self.restart(daemon)
        c.ok("CHECK a")

    def test_a_program_that_passes_its_check_and_cannot_be_run(self):
        """All is packed by then: this process goes on from it itself."""
        daemon = self.begin(start=False)
        path = self.own_program(daemon)
        daemon.start()
        c = self.client(daemon)
        fence = c.ok("LOCK a").num("fence")
        os.unlink(path)
        with open(path, "w") as out:
            out.write("#!/bin/sh\nrm \"$0\"\n")
        os.chmod(path, 0o755)
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged("notice restarted ", mark)
        self.assertRegex(daemon.log(mark), r"error restart program=.*No such file")
        self.assertEqual(c.ok("CHECK a").num("fence"), fence)
        c.ok("UNLOCK a")


@on_stores(0, 1)
class AsAfterACrash:
    COST = 8

    def prepared(self, **options):
        daemon = self.begin(start=False, **options)
        self.path = self.own_program(daemon)
        daemon.start().joined()
        graceful, plain = self.client(daemon), self.client(daemon)
        ticket = with_grace(graceful)
        return daemon, ticket, graceful.ok("LOCK a").num("fence"), [graceful, plain], plain.ok("LOCK b")

    @staticmethod
    def refuses(daemon, told):
        """The next program cannot use the state, says so, and goes on."""
        mark = daemon.log_size()
        daemon.notify.forget()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged(told, mark)
        daemon.notify.wait("READY=1", daemon.process)

    def crashed(self, daemon, ticket, fence, clients, _):
        for c in clients:
            c.eof(5)
        with daemon.client() as other, daemon.client() as third:
            third.busy("LOCK b")
            self.assertEqual(resume_fences(other, ticket), {"a": fence})
            other.ok("UNLOCK a")
            self.assertGreater(third.ok("LOCK a wait=5s").num("fence"), fence)

    def test_a_program_that_cannot_read_the_state(self):
        state = self.prepared(tcp=True)
        daemon = state[0]
        self.replace(self.path, self.without_state(daemon.folder))
        self.refuses(daemon, r"warn restart error=.*cannot be used")
        self.crashed(*state)
        self.client(daemon, tcp=True).ok("PING")

    def test_a_program_that_cannot_read_the_state_and_another_runtime_directory(self):
        """Nobody knows where the process before has run: what its clients believe in is granted to nobody meanwhile."""
        daemon, _, _, clients, held = self.prepared()
        until = time.monotonic() + held.num("valid_ms") / 1000
        daemon.config = daemon.config.replace(daemon.runtime_dir, os.path.join(daemon.folder, "moved"))
        daemon.write_config()
        self.replace(self.path, self.without_state(daemon.folder))
        self.refuses(daemon, r"warn restart error=.*cannot be used")
        for c in clients:
            c.eof(5)
        with daemon.client() as other:
            self.assertGreater(other.ok("LOCK b wait=20s", 21).num("fence"), held.num("fence"))
            self.assertGreater(time.monotonic(), until)

    def test_other_keys_in_the_configuration(self):
        """What is held stands at keys of the former prefix: it is lost, and the sessions stay."""
        if not self.STORES:
            return
        daemon, _, _, clients, _ = self.prepared()
        daemon.config = daemon.config.replace("  timeout:", "  key_prefix: \"other:\"\n  timeout:", 1)
        daemon.write_config()
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged("notice restarted", mark)
        for c in clients:
            c.push("LOST", timeout=20)
            c.ok("PING")

    def test_the_new_process_is_killed_before_it_is_ready(self):
        """Once the program was exchanged, /proc shows the other file."""
        state = self.prepared()
        daemon = state[0]
        for _ in range(3):
            self.replace(self.path, self.path)
            old = os.stat("/proc/%d/exe" % daemon.pid).st_ino
            daemon.send_signal(signal.SIGUSR2)
            until(lambda: os.stat("/proc/%d/exe" % daemon.pid).st_ino != old, "the other program runs")
            daemon.kill()
            daemon.start().joined()
            self.crashed(*state)
            graceful, plain = self.client(daemon), self.client(daemon)
            ticket = with_grace(graceful)
            state = daemon, ticket, graceful.ok("LOCK a wait=9s").num("fence"), [graceful, plain], plain.ok("LOCK b wait=9s", 10)


class Others(RestartTest):
    COST = 4

    def test_a_variable_for_another_process_is_not_used(self):
        for value in ("1:3:4", "x", "%d" % os.getpid(), "::"):
            daemon = self.begin(env={"REDLOCKD_CARRIED": value})
            self.client(daemon).ok("LOCK a")
            self.assertNotIn("warn", daemon.log())
            with open("/proc/%d/environ" % daemon.pid, "rb") as environ:
                self.assertIn(b"REDLOCKD_CARRIED", environ.read())
