# SPDX-License-Identifier: BSD-2-Clause
"""LOCK priority=: a higher one stands before all lower ones, at one daemon and over daemons; equals are served first come first served."""
from harness import on_each_store
from process import until
from quorum import QuorumTest


class InOrder(QuorumTest):
    """Three daemons. Each waiter has a ttl of its own, so that no daemon hands the lock over by itself."""
    COST, DAEMONS, STORES = 5, 3, 3
    PRIORITIES = [0, 0, 3, 9, 0, 3, 5, 5, 9, 1, 0, 9]

    def wait_in_turn(self, priorities):
        """Each asks when the one before is queued, at the daemons in turn."""
        clients = self.clients(len(priorities))
        for i, (client, priority) in enumerate(zip(clients, priorities)):
            client.begin("LOCK queue wait=60s ttl=%dms priority=%d" % (1500 + 10 * i, priority))
            client.listen(0.005)  # two requests within one round trip have no order
        return clients

    def test_a_higher_one_stands_before_all_lower_ones(self):
        holder = self.client(self.a)
        holder.ok("LOCK queue ttl=1s")
        clients = self.wait_in_turn(self.PRIORITIES)
        self.queued("queue", self.DAEMONS - 1)
        order = self.order(holder, clients)
        right = sorted(range(len(clients)), key=lambda i: (-self.PRIORITIES[i], i))
        places = [abs(order.index(i) - right.index(i)) for i in right]
        self.figure("%d of %d are served in their place" % (places.count(0), len(places)))
        self.assertLessEqual(max(places), 2, "%s instead of %s" % (order, right))  # a head of the queue that is slow to come may be passed once
        for daemon in range(self.DAEMONS):
            own = [i for i in order if i % self.DAEMONS == daemon]
            self.assertEqual(own, [i for i in right if i % self.DAEMONS == daemon], "within a daemon the order is strict")

    def test_one_that_comes_last_at_another_daemon_is_the_next(self):
        def wait(name):
            holder, low, high = self.client(self.a), self.client(self.a), self.client(self.b)
            holder.ok("SUBSCRIBE")
            holder.ok("LOCK " + name)
            low.begin("LOCK %s wait=60s" % name)
            high.begin("LOCK %s wait=60s ttl=1s priority=1" % name)
            self.queued(name, 1)
            while holder.push("CONTENDED", name)["waiters"] != "2":
                pass  # the daemon of the holder has yet to hear that another one wants the lock: then it ends its hand-overs
            return holder, [high, low]
        name, (high, low) = self.in_turn(wait)
        high.reply()
        high.ok("UNLOCK " + name)
        self.assertEqual(low.reply().kind, "OK")

    def test_who_waits_behind_it_keeps_its_place(self):
        """The first waiter of b leaves. The lock goes to the one that waits longest, at a."""
        def wait(name):
            holder, early, late = self.client(self.a), self.client(self.daemons[1]), self.client(self.b)
            holder.ok("LOCK " + name)
            early.begin("LOCK %s wait=60s" % name)
            self.queued(name, 1)

            def heads():
                return [server.cli.zrange("redlockd:lock:q:" + name, 0, 0) for server in self.servers]
            first = heads()
            late.begin("@low LOCK %s wait=60s" % name)
            late.begin("@high LOCK %s wait=300ms owner=high priority=9" % name)
            until(lambda: heads() != first, "the ticket of b is the first")
            self.assertEqual(late.reply("@high").kind, "TIMEOUT")
            until(lambda: heads() == first, "the daemon of the one that left has asked again")
            return holder, [early, late]
        self.in_turn(wait)

    def test_readers_of_a_higher_priority_pass_a_writer_elsewhere(self):
        """Also by a LOCKALL, which gives back no name that it has got: it would get the other one at once."""
        readers = [self.client(daemon) for daemon in self.daemons[:2]]
        writers = [self.client(self.b) for _ in "ab"]
        late, group = self.client(self.a), self.client(self.a)
        for name, writer in zip("ab", writers):
            for reader in readers:
                reader.ok("LOCK %s mode=shared" % name)
            writer.begin("LOCK %s wait=60s" % name)

        def is_passed(name):
            """With a priority alone: the daemon knows the place of the writer."""
            kinds = []
            for client, priority in ((late, 1), (group, 0)):
                kinds.append(client.ask("LOCK %s mode=shared priority=%d" % (name, priority)).kind)
                if kinds[-1] == "OK":
                    client.ok("UNLOCK " + name)
            return kinds == ["OK", "BUSY"]
        for name in "ab":
            until(lambda name=name: is_passed(name), "the writer is passed")
        self.assertEqual(group.ask("LOCKALL a b mode=shared wait=10s priority=1").kind, "OK")
        late.busy("LOCK b mode=shared")


class OnOneServer(InOrder):
    STORES = 1


@on_each_store
class AtOneDaemon:
    """The queue of one daemon."""
    COST = 1

    def test_show_has_the_order_of_the_queue(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        waiters = {}
        for priority in (0, 2, 9, 2):
            client = self.connect("p%d-%d" % (priority, len(waiters)))
            client.begin("LOCK %s wait=30s priority=%d" % (name, priority))
            waiters["p%d-%d" % (priority, len(waiters))] = client
        until(lambda: len(holder.roles(name)) == 5, "all wait")
        rows = [row for row in holder.ok("SHOW " + name).rows if row["role"] == "waiter"]
        self.assertEqual([(row["name"], row.fields.get("priority")) for row in rows], [("p9-2", "9"), ("p2-1", "2"), ("p2-3", "2"), ("p0-0", None)])
        for row in rows:
            holder.ok("UNLOCK " + name)
            holder = waiters[row["name"]]
            self.assertEqual(holder.reply().kind, "OK")

    def test_run_takes_a_priority(self):
        name, holder = self.name(), self.connect()
        holder.ok("LOCK " + name)
        low = self.start_redlock(self.d, "run", name, "--", "echo", "low")
        until(lambda: len(holder.roles(name)) == 2, "the first waits")
        high = self.start_redlock(self.d, "run", "--priority", "3", name, "--", "sh", "-c", "echo high; read line", stdin=-1)
        until(lambda: len(holder.roles(name)) == 3, "both wait")
        holder.ok("UNLOCK " + name)
        self.assertEqual(high.stdout.readline(), b"high\n")
        self.assertIsNone(low.poll())
        high.stdin.close()
        high.stdin = None
        self.assertEqual((high.wait(10), low.wait(10)), (1, 0))
