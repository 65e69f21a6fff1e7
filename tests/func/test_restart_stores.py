# SPDX-License-Identifier: BSD-2-Clause
"""A restart while Redis servers do not answer, or while clients come and go."""
import contextlib
import signal
import threading
import time

from process import LATE, until
from restarts import RestartTest


class Stores(RestartTest):
    """Redis servers that do not answer while the daemon waits for them."""
    STORES, COST = 3, 10

    def test_a_server_that_stands_still_delays_and_fails_nothing(self):
        daemon = self.begin()
        c = self.client(daemon)
        fence = c.ok("LOCK a").num("fence")
        self.servers[1].freeze()
        c.ok("LOCK b")
        begin = time.monotonic()
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        c.ok("LOCK c", 20)
        daemon.logged("notice restarted ", mark)
        self.assertLess(time.monotonic() - begin, 3 + LATE)
        self.assertEqual(c.ok("CHECK a").num("fence"), fence)
        self.servers[1].thaw()
        until(lambda: c.joined() == 3, "the server counts again", 30)
        self.restart(daemon)
        self.assertEqual(c.ok("CHECK a").num("fence"), fence)

    def test_servers_that_may_be_slow_are_waited_for(self):
        """They answer after more than a second, and within redis.timeout."""
        daemon = self.begin({"redis": {"timeout": "5s"}, "lease": "20s", "max_lease": "30s"})
        c = self.client(daemon)
        c.ok("PING")
        for server in self.servers:
            server.freeze()
        c.begin("@lock LOCK a", "@rate RATE r limit=5 per=1h", "@job DEFER q body id=x")
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        c.listen(1.5)
        for server in self.servers:
            server.thaw()
        self.assertEqual([c.reply(tag).kind for tag in ("@lock", "@rate", "@job")], ["OK"] * 3)
        daemon.logged("notice restarted ", mark)
        self.assertNotRegex(daemon.log(mark), "state=down")

    def test_a_configuration_with_other_stores_is_noticed_and_what_was_held_there_is_lost(self):
        daemon, others = self.begin({"lease": "2s", "max_lease": "4s"}), [self.redis() for _ in range(3)]
        c = self.client(daemon)
        c.ok("LOCK a")
        for server, other in zip(self.servers, others, strict=True):
            daemon.config = daemon.config.replace(server.path, other.path)
        daemon.write_config()
        mark = daemon.log_size()
        self.restart(daemon, quietly=False)
        daemon.logged("warn restart note=\"the configuration names other stores", mark)
        until(lambda: c.ask("CHECK a").kind == "ERR", "the lock is lost", 30)

    def test_a_server_that_is_down(self):
        daemon = self.begin()
        c = self.client(daemon)
        c.ok("LOCK a")
        self.servers[0].kill()
        mark = daemon.log_size()
        daemon.send_signal(signal.SIGUSR2)
        daemon.logged("notice restarted ", mark)
        c.ok("LOCK b", 20)
        c.ok("CHECK a")
        self.servers[0].start()
        until(lambda: c.joined() == 3, "the server counts again", 30)

    def test_renewals_that_wait_for_the_next_process_are_sent(self):
        """One server stands still for longer than the others are asked to renew, so that renewals are kept."""
        daemon = self.begin({"lease": "4s", "max_lease": "6s"})
        c = self.client(daemon)
        for i in range(300):
            c.ok("LOCK n%d" % i)
        granted = time.monotonic()
        self.servers[1].freeze()
        c.ok("LOCK b")
        while time.monotonic() < granted + 5:  # longer than any lease that began before
            self.restart(daemon, quietly=False)
        for i in range(300):
            c.ok("CHECK n%d" % i)
        self.servers[1].thaw()
        until(lambda: c.joined() == 3, "the server counts again", 30)
        until(lambda: c.ask("LOCK fresh").kind == "OK" and c.ok("UNLOCK fresh sync=yes"), "all servers are asked again", 20)
        self.assertEqual(c.stats()["losses_total"], 0)

    def test_renewals_without_an_end(self):
        """So many locks are renewed that some call is under way at any time."""
        daemon = self.begin({"lease": "4s", "max_lease": "6s", "limits": {"renewals": 1000000}})  # three restarts take a second where the machine is busy
        clients = [self.client(daemon) for _ in range(4)]
        for k, c in enumerate(clients):
            c.send(*["LOCK n%d/%d" % (k, i) for i in range(1000)])
        for c in clients:
            for _ in range(1000):
                self.assertEqual(c.reply(timeout=30).kind, "OK")
        losses = clients[0].stats()["losses_total"]
        self.restart(daemon, 3, quietly=False)
        self.assertEqual(clients[0].stats()["losses_total"], losses)
        for c in clients:
            self.assertEqual([line for line in c.barrier() if line.code == "LOST"], [])


class Together(RestartTest):
    """Clients that come and go all the while."""
    COST = 6

    def test_connections_come_and_go(self):
        daemon = self.begin(tcp=True)
        faults, stopped = [], threading.Event()

        def come_and_go(number):
            while not stopped.is_set():
                try:
                    with daemon.client(tcp=number % 2) as c:
                        c.ok("LOCK x%d wait=10s" % (number % 3))
                except (OSError, AssertionError) as fault:
                    faults.append(fault)
        threads = [threading.Thread(target=come_and_go, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: [thread.join() for thread in threads])
            stack.callback(stopped.set)
            self.restart(daemon, 5)
        self.assertEqual(faults, [])
        until(lambda: daemon.client().stats()["locks_held"] == 0, "all is free again")
