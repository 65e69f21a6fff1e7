# SPDX-License-Identifier: BSD-2-Clause
"""RATE: at most so many uses in any time of a length, over clients and daemons; what happens when the server that counts is lost."""
import json
import signal

from harness import FuncTest, on_each_store
from process import merged, until, yaml
from quorum import QuorumTest

LIMIT = " limit=20 per=60s"


@on_each_store
class Uses:
    COST = 3

    def test_twenty_are_admitted_and_no_more_whoever_asks(self):
        name, clients = self.name(), self.two()
        for i in range(20):
            answer = clients[i % 2].ok("RATE " + name + LIMIT)
            self.assertEqual(answer.num("left"), 19 - i)
            self.assertTrue(0 < answer.num("reset_ms") <= 60000, answer)
        for client in clients * 3:
            answer = client.busy("RATE " + name + LIMIT)
            self.assertTrue(50000 < answer.num("retry_ms") <= 60000, answer)
        clients[0].ok("LOCK " + name)

    def test_what_leaves_the_window_is_admitted_again_and_what_was_refused_consumed_nothing(self):
        name, client = self.name(), self.connect()
        client.ok("RATE %s limit=5 per=500ms cost=3" % name)
        for _ in range(20):
            answer = client.busy("RATE %s limit=5 per=500ms cost=3" % name)
        client.listen(answer.num("retry_ms") / 1000)
        self.assertEqual(client.ok("RATE %s limit=5 per=500ms cost=3" % name).num("left"), 2)

    def test_many_at_a_time(self):
        name, client = self.name(), self.connect()
        client.send(*["@t%d RATE %s limit=100 per=1h" % (i, name) for i in range(150)])
        kinds = [client.reply("@t%d" % i).kind for i in range(150)]
        self.assertEqual((kinds.count("OK"), kinds.count("BUSY")), (100, 50))

    def test_the_command(self):
        name = self.name()
        for i in range(2):
            status, out, _ = self.call_redlock(self.d, "rate", name, "--limit", "2", "--per", "60s")
            self.assertEqual(status, 0)
            self.assertRegex(out, r"^admitted: %d left, all of them in " % (1 - i))
        status, out, _ = self.call_redlock(self.d, "rate", name, "--limit", "2", "--per", "60s", "--json")
        self.assertEqual(status, 1)
        self.assertTrue(0 < json.loads(out)["retry_ms"] <= 60000)
        self.assertEqual(self.call_redlock(self.d, "rate", name, "--limit", "2")[0], 64)
        self.assertEqual(self.call_redlock(self.d, "rate", name, "--limit", "2", "--per", "60s", "--cost", "3")[0], 64)

    def test_the_command_waits_in_turn(self):
        name = self.name()
        for wait in ((), ("--wait", "forever")):
            status, out, _ = self.call_redlock(self.d, "rate", name, "--limit", "1", "--per", "1s", *wait)
            self.assertEqual((status, out.split(":")[0]), (0, "admitted"))
        status, out, _ = self.call_redlock(self.d, "rate", name, "--limit", "1", "--per", "60s", "--wait", "10ms")
        self.assertEqual(status, 1)
        self.assertRegex(out, r"^refused: the wait is over; again in ")


class Moved(FuncTest):
    """The clock of the server is set while daemons go on."""
    COST = 6

    def admitted(self, client):
        """How many of 25 uses are admitted. While the daemon looks at a clock that has jumped, a use may be refused for a moment."""
        kinds = []
        while len(kinds) < 25:
            answer = client.ask("RATE n" + LIMIT)
            if answer.kind == "ERR":
                self.assertEqual(answer.code, "UNAVAILABLE")
                client.listen(0.05)
            else:
                kinds.append(answer.kind)
        return kinds.count("OK")

    def test_twenty_in_sixty_seconds(self):
        server = self.redis(clock=True)
        client = self.client(self.redis_daemon(server))
        self.assertEqual(self.admitted(client), 20)
        server.clock.set(58)
        self.assertEqual(self.admitted(client), 0)
        server.clock.set(-3600)
        self.assertEqual(self.admitted(client), 0)
        server.clock.set(-3541)
        self.assertEqual(self.admitted(client), 0, "a clock that is set back frees nothing")
        server.clock.set(-3538)
        self.assertEqual(self.admitted(client), 20)


class Home(QuorumTest):
    """Two daemons on three servers."""
    COST = 12

    def setUp(self):
        super().setUp()
        self.one, self.other = self.client(self.a), self.client(self.b)

    def home(self):
        """The server that counts."""
        return [server for server in self.servers if server.runs() and server.cli.exists("redlockd:lock:r:n")]

    def uses_up(self):
        kinds = [client.ask("RATE n" + LIMIT).kind for client in (self.one, self.other) * 12]
        self.assertEqual((kinds.count("OK"), kinds.count("BUSY")), (20, 4))

    def loses_home(self):
        self.uses_up()
        home, = self.home()
        home.kill()
        return home

    def reload(self, setting):
        """The daemons read another configuration."""
        for daemon in self.daemons:
            daemon.config = yaml(merged(daemon.tree, {"rate": {"home_lost": setting}}))
            daemon.write_config()
            daemon.send_signal(signal.SIGHUP)
            daemon.logged(r" reload ")

    def test_all_daemons_count_at_one_server(self):
        self.uses_up()
        self.assertEqual(len(self.home()), 1)

    def test_closed(self):
        home = self.loses_home()
        self.assertIn("the store that keeps this limit cannot be used", str(self.one.err("RATE n" + LIMIT, "UNAVAILABLE")))
        self.one.ok("LOCK n")
        home.restart()
        until(lambda: self.one.ask("RATE n" + LIMIT).kind == "OK", "the server counts again, from nothing")

    def test_open(self):
        self.reload("open")
        self.loses_home()
        self.assertEqual(self.one.ok("RATE n" + LIMIT).fields["unmetered"], "yes")

    def test_next(self):
        self.reload("next")
        self.loses_home()
        self.uses_up()
        self.assertEqual(len(self.home()), 1)
