# SPDX-License-Identifier: BSD-2-Clause
"""One to nine servers: how many of each number must agree, and how many may fail."""
from daemon import on_redis
from harness import FuncTest
from process import until

MOST = 9


class Sizes(FuncTest):
    """Nine servers and nine daemons: the first daemon uses one server, the second uses two, and so on. Each daemon has a key prefix of its own."""
    COST = 7

    def setUp(self):
        super().setUp()
        self.servers = [self.redis() for _ in range(MOST)]
        self.daemons = {}
        for nodes in range(1, MOST + 1):
            self.daemons[nodes] = self.daemon(on_redis(self.servers[:nodes], {"redis": {"key_prefix": "n%d:" % nodes}}))
        self.clients = {nodes: self.client(daemon) for nodes, daemon in self.daemons.items()}
        self.fences = dict.fromkeys(self.clients, 0)

    def all_ask(self, request):
        for client in self.clients.values():
            client.send(request)
        return {nodes: client.reply() for nodes, client in self.clients.items()}

    def all_lock(self, gone):
        """So many of the first servers are gone: daemons that still have more than half of theirs grant, and the others answer ERR QUORUM."""
        for nodes, answer in self.all_ask("LOCK a").items():
            quorum, left = nodes // 2 + 1, max(0, nodes - gone)
            if left >= quorum:
                self.assertEqual(answer.kind, "OK", "%d of %d: %s" % (left, nodes, answer))
                self.assertGreater(answer.num("fence"), self.fences[nodes])
                self.fences[nodes] = answer.num("fence")
                self.clients[nodes].ok("UNLOCK a sync=yes")
            else:
                self.assertIn(answer.code, ("QUORUM", "UNAVAILABLE"), "%d of %d: %s" % (left, nodes, answer))

    def test_each_number_survives_the_loss_of_less_than_half(self):
        for nodes, client in self.clients.items():
            until(lambda: client.joined() == nodes, "%d are joined" % nodes)
            hello = client.ok("HELLO 1")
            self.assertEqual((hello.num("nodes"), hello.num("quorum")), (nodes, nodes // 2 + 1))
            self.assertEqual("an odd number is best" in self.daemons[nodes].log(), nodes % 2 == 0)
        self.all_lock(0)
        for gone in range(1, MOST // 2 + 2):
            self.servers[gone - 1].freeze()
            self.all_lock(gone)
        for server in self.servers[:MOST // 2 + 1]:
            server.thaw()
        for client in self.clients.values():
            until(lambda: client.ask("LOCK back").kind == "OK", "grants come back by themselves")
        self.all_lock(0)
