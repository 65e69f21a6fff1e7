# SPDX-License-Identifier: BSD-2-Clause
"""Who may do what: protected addresses, rules, the share of one peer."""
import os
import re
import shutil
import socket
import subprocess

from guard import GuardTest
from process import REDLOCKD, temp_folder, until


class Protected(GuardTest):
    """A TCP address beyond loopback needs something that protects it."""
    TREE = {"listen": {"tcp": "0.0.0.0:0"}}

    def test_an_unprotected_address_is_refused(self):
        daemon = self.refused(self.TREE, "error: everybody who reaches this address could take and release locks; set auth.users_file or rules", 78)
        self.assertRegex(daemon.log(), r"redlockd\.yaml:\d+:\d+: error: ")

    def test_rules_or_insecure_let_it_start(self):
        self.guarded("insecure: yes\n", self.TREE)
        self.guarded("rules: [{allow: [look]}]\n", self.TREE)

    def passed(self, text, address):
        """Starts a daemon that gets a listening socket from its service manager. Returns it."""
        daemon = self.guarded(text, start=False)
        listening = socket.create_server((address, 0))
        self.addCleanup(listening.close)
        script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec %s --config %s 3<&%d" % (REDLOCKD, daemon.write_config(), listening.fileno())
        os.set_inheritable(listening.fileno(), True)
        daemon.argv = ["bash", "-c", script]
        return daemon, listening

    def test_a_socket_that_was_passed_is_refused_as_well(self):
        for text, address, starts in (("", "0.0.0.0", False), ("insecure: yes\n", "0.0.0.0", True), ("", "127.0.0.1", True)):
            daemon, listening = self.passed(text, address)
            process = self.spawn_passed(daemon, listening)
            if starts:
                daemon.logged(r"ready .*passed=1")
                process.terminate()
                self.assertEqual(process.wait(10), 0)
            else:
                self.assertEqual(process.wait(10), 78, daemon.log())
                self.assertIn("everybody who reaches this address could take and release locks", daemon.log())

    def spawn_passed(self, daemon, listening):
        with open(daemon.log_path, "ab") as log:
            process = subprocess.Popen(daemon.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[listening.fileno()])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process


class Rules(GuardTest):
    RULES = """rules:
  - {uid: 33, names: "web/*", allow: [lock, look]}
  - {group: 4711, allow: [lock, look, admin]}
  - {user: worker, names: "jobs/*", allow: [lock]}
"""

    def test_uid_group_and_user(self):
        daemon = self.guarded(self.RULES, users={"worker": "w"})
        web, further = self.client_as(daemon, 33, 33), self.client_as(daemon, 1234, 1234, [1, 4711])
        main, nobody = self.client_as(daemon, 1235, 4711), self.client_as(daemon, 65534, 65534)
        worker, root = self.client(daemon), self.client(daemon)
        worker.ok("AUTH worker w")
        web.ok("LOCK web/1")
        line = web.err("LOCK jobs/1", "DENIED")
        worker.ok("LOCK jobs/1")
        self.assertIn("the rule in line", str(worker.err("SHOW jobs/1", "DENIED")))
        further.ok("SHOW jobs/1")
        main.ok("BREAK jobs/1")
        for c in (nobody, root):
            c.err("LOCK web/2", "DENIED")
            c.err("BREAK web/1", "DENIED")
            c.err("STATS", "DENIED")
            c.ok("PING")
        self.assertIn("no rule gives", str(line))

    def test_the_web_listener_asks_the_rules(self):
        def statuses(rule):
            daemon = self.guarded("rules:\n  - %s\n" % rule, {"listen": {"http": "unix:" + os.path.join(folder, "web")}})
            client = self.client(daemon)
            client.ask("LOCK web/1")
            client.ask("LOCK other/1")
            found = {}
            for path in ("/livez", "/", "/metrics", "/api/v1/snapshot"):
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect(os.path.join(folder, "web"))
                    sock.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())
                    answer = b"".join(iter(lambda: sock.recv(65536), b"")).decode()  # pylint: disable=cell-var-from-loop
                found[path] = int(answer.split()[1])
            daemon.finish()
            return list(found.values()), re.findall(r"(?:web|other)/1", answer)
        folder = temp_folder("guard")
        self.addCleanup(shutil.rmtree, folder, True)
        self.assertEqual(statuses("{uid: 0, allow: [lock]}"), ([200, 403, 403, 403], []))
        self.assertEqual(statuses('{uid: 0, names: "web/*", allow: [lock, look]}'), ([200, 200, 403, 200], ["web/1"]))
        self.assertEqual(statuses("{uid: 0, allow: [lock, look]}"), ([200, 200, 200, 200], ["other/1", "web/1"]))

    def test_rules_are_read_again(self):
        daemon = self.guarded("rules:\n  - {uid: 0, names: \"a*\", allow: [lock]}\n")
        c = self.client(daemon)
        c.ok("LOCK a")
        c.err("LOCK b", "DENIED")
        daemon.config = daemon.config.replace('"a*"', '"b*"')
        daemon.write_config()
        daemon.reload()
        c.ok("LOCK b")
        c.err("EXTEND a", "DENIED")
        c.ok("UNLOCK a")
        c.err("LOCK a", "DENIED")
        daemon.logged(r"reload key=rules")

    def test_rules_that_are_read_again_end_a_wait(self):
        daemon = self.guarded("rules:\n  - {uid: 0, allow: [lock]}\n")
        holder, waiter = self.client(daemon), self.client(daemon)
        holder.ok("LOCK a")
        waiter.begin("@w LOCK a wait=1m")
        daemon.config = daemon.config.replace("{uid: 0, allow", "{uid: 0, names: \"b*\", allow")
        daemon.write_config()
        daemon.reload()
        self.assertEqual(waiter.reply("@w").code, "DENIED")
        holder.ok("UNLOCK a")
        waiter.ok("LOCK b")

    def test_rules_do_not_vanish_without_a_restart(self):
        daemon = self.guarded("rules:\n  - {uid: 0, names: \"a*\", allow: [lock]}\n")
        c = self.client(daemon)
        daemon.config = daemon.config.partition("rules:")[0]
        daemon.write_config()
        daemon.reload()
        daemon.logged(r"reload key=rules .*effect=restart")
        c.err("LOCK b", "DENIED")


class Peers(GuardTest):
    def test_one_peer_has_so_many_sessions_and_no_more(self):
        daemon = self.guarded("", {"limits": {"peer": 2}})
        one, _ = self.client_as(daemon, 33, 33), self.client_as(daemon, 33, 33)
        self.assertIn("ERR LIMIT peer=2 this peer has as many connections as it may have", str(self.client_as(daemon, 33, 33).eof()[0]))
        self.client_as(daemon, 34, 34).ok("PING")
        for _ in range(3):
            self.client(daemon).ok("PING")  # root is not bound
        one.ok("QUIT")
        one.eof()
        until(lambda: self.client_as(daemon, 33, 33).ask("PING") is not None, "there is room again")
