# SPDX-License-Identifier: BSD-2-Clause
"""No restart and no reload opens the daemon to the network: what a start refuses they refuse as well, and the daemon carries on."""
import os
import signal
import socket

from manager import Manager
from process import merged, private, yaml
from restarts import RestartTest
from web import Web, free_web

EVERYBODY = "everybody who reaches this address could take and release locks"


class Passed(RestartTest):
    """Sockets that the service manager passes: the configuration does not name them."""
    COST = 6

    def passed(self, text, address="0.0.0.0"):
        """A daemon that gets a socket at this address, with this text behind its configuration. Returns it, and a client that holds a lock."""
        daemon = self.begin(start=False)
        daemon.sound = daemon.config
        self.say(daemon, text)
        sock = socket.create_server((address, 0))
        self.addCleanup(sock.close)
        daemon.manager = Manager(daemon, [sock], keeps=False)
        self.addCleanup(daemon.manager.close)
        daemon.manager.start().ready()
        daemon.addr = ("127.0.0.1", sock.getsockname()[1])
        client = self.client(daemon)
        client.ok("LOCK a")
        return daemon, client

    def say(self, daemon, text):
        daemon.config = daemon.sound + text
        daemon.write_config()

    def carries_on(self, daemon, client, number, pattern):
        mark = daemon.log_size()
        daemon.send_signal(number)
        daemon.logged(pattern, mark)
        self.assertNotIn("restarted", daemon.log(mark))
        client.ok("CHECK a")
        self.client(daemon).busy("LOCK a")

    def test_one_that_loses_its_protection_is_not_restarted_and_not_reloaded(self):
        daemon, client = self.passed("insecure: yes\n")
        self.say(daemon, "")
        self.carries_on(daemon, client, signal.SIGUSR2, "error restart .*the configuration has a mistake")
        self.assertIn("a socket was passed: " + EVERYBODY, daemon.log())
        self.carries_on(daemon, client, signal.SIGHUP, 'error reload error="a socket was passed: %s.*nothing was changed' % EVERYBODY)
        self.say(daemon, "rules: [{allow: [lock, look]}]\n")
        self.restart(daemon, quietly=False)
        client.ok("CHECK a")
        self.say(daemon, "")
        self.carries_on(daemon, client, signal.SIGUSR2, "error restart .*the configuration has a mistake")

    def test_one_within_this_host_needs_none(self):
        daemon, client = self.passed("insecure: yes\n", "127.0.0.1")
        self.say(daemon, "")
        self.restart(daemon, quietly=False)
        client.ok("CHECK a")

    def test_a_first_start_and_one_by_the_service_manager_say_the_same(self):
        daemon, _ = self.passed("insecure: yes\n")
        self.say(daemon, "")
        self.assertEqual(daemon.manager.end(), 0)
        mark = daemon.log_size()
        daemon.manager.start()
        daemon.expect_dead = True
        self.assertEqual(daemon.process.wait(10), 78)
        self.assertIn("error listen passed=socket fd=3 error=\"" + EVERYBODY, daemon.log(mark))


class Former(RestartTest):
    """Where the new address cannot be had, the former one goes on: but only if the new configuration protects it."""
    COST = 4

    def restarted_elsewhere(self, protection):
        """A daemon at 0.0.0.0 is restarted with an address that cannot be had. Returns it, and whether it still listens where it did."""
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        with socket.create_server(("0.0.0.0", 0)) as free:
            port = free.getsockname()[1]
        daemon = self.begin({"listen": {"tcp": "0.0.0.0:%d" % port}}, start=False)
        sound = daemon.config
        daemon.config = sound + "insecure: yes\n"
        daemon.start()
        client = self.client(daemon)
        client.ok("LOCK a")
        daemon.config = sound.replace("0.0.0.0:%d" % port, "127.0.0.1:%d" % taken.getsockname()[1]) + protection
        daemon.write_config()
        self.restart(daemon, quietly=False)
        client.ok("CHECK a")
        self.client(daemon).busy("LOCK a")
        with socket.socket() as probe:
            return daemon, probe.connect_ex(("127.0.0.1", port)) == 0

    def test_a_former_address_without_protection_is_closed(self):
        daemon, listens = self.restarted_elsewhere("")
        self.assertFalse(listens)
        self.assertIn("everybody who reaches the former address could take and release locks: it is closed", daemon.log())

    def test_one_with_protection_goes_on(self):
        self.assertTrue(self.restarted_elsewhere("insecure: yes\n")[1])


class FormerWeb(RestartTest):
    """The same of the web listener."""
    COST = 4

    def restart_with(self, daemon, **listen):
        daemon.config = yaml(merged(daemon.tree, {"listen": listen}))
        daemon.write_config()
        self.restart(daemon, quietly=False)

    def taken(self):
        sock = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(sock.close)
        return sock, "127.0.0.1:%d" % sock.getsockname()[1]

    def test_it_goes_on_while_a_new_address_cannot_be_had(self):
        web, (sock, address) = free_web(), self.taken()
        daemon = self.begin({"listen": {"http": web.listen}})
        for listen in ({"tcp": address}, {"http": address}, {"tcp": address, "http": address}):
            self.restart_with(daemon, **listen)
            self.assertEqual(web.ask("/livez").status, 200, listen)
            daemon.reload()
            self.assertEqual(self.client(daemon).stats()["config_last_reload_successful"], 0, listen)
        sock.close()
        self.restart_with(daemon, http=address)
        self.assertEqual(Web(("127.0.0.1", int(address.split(":")[1]))).ask("/livez").status, 200)
        self.assertEqual(self.client(daemon).stats()["config_last_reload_successful"], 1)
        with self.assertRaises(ConnectionRefusedError):
            web.ask("/livez")

    def test_the_same_address_in_other_words(self):
        folder, web = self.folder(), free_web()
        port, file = web.at[1], Web(os.path.join(folder, "web"))
        daemon = self.begin({"listen": {"http": web.listen}})
        for words in ("localhost:%d" % port, "127.0.0.1:%d" % port):
            self.restart_with(daemon, http=words)
            self.assertEqual(web.ask("/livez").status, 200, words)
        for words in ("unix:" + folder + "/web", "unix:" + folder + "/./web", "unix:" + folder + "/web"):
            self.restart_with(daemon, http=words)
            self.assertEqual(file.ask("/livez").status, 200, words)
        for words in (folder + "/lock", folder + "/./lock"):
            self.restart_with(daemon, unix=words, http="no")
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(folder + "/lock")
        self.assertNotIn("error listen", daemon.log())
        self.restart_with(daemon)
        self.assertEqual(os.listdir(folder), [])

    def test_a_former_address_that_other_hosts_reach_is_closed_without_a_token(self):
        folder, (_, address) = self.folder(), self.taken()
        with socket.create_server(("0.0.0.0", 0)) as free:
            web = Web(("127.0.0.1", free.getsockname()[1]))
        with open(os.path.join(folder, "token"), "w", opener=private) as out:
            out.write("one\n")
        daemon = self.begin({"listen": {"http": "0.0.0.0:%d" % web.at[1]}, "http": {"token_file": os.path.join(folder, "token")}})
        self.restart_with(daemon, http=address)
        self.assertEqual(web.ask("/livez").status, 200)
        del daemon.tree["http"]
        self.restart_with(daemon, http=address)
        with self.assertRaises(ConnectionRefusedError):
            web.ask("/livez")
        self.assertIn("there is no http.token_file", daemon.log())

    def test_the_file_of_a_former_socket_is_removed(self):
        folder = self.folder()
        first, second = (Web(os.path.join(folder, name)) for name in ("first", "second"))
        daemon = self.begin({"listen": {"http": first.listen}})
        self.restart_with(daemon, http=second.listen)
        self.assertEqual((os.listdir(folder), second.ask("/livez").status), (["second"], 200))
        self.restart_with(daemon, http="unix:/nowhere/sock")
        self.assertEqual((os.listdir(folder), second.ask("/livez").status), (["second"], 200))
        self.restart_with(daemon, http="no")
        self.assertEqual(os.listdir(folder), [])
