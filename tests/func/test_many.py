# SPDX-License-Identifier: BSD-2-Clause
"""LOCKALL and LOCKANY: all names or none, the first that is free; and redlock run with several names."""
import subprocess

from harness import on_each_store
from quorum import QuorumTest, next_served


@on_each_store
class Many:
    """One daemon."""
    COST, TCP = 8, True

    def names(self, count):
        name = self.name()
        return [name + "-" + c for c in "abcdefgh"[:count]]

    def free(self, *names):
        """Nobody holds these names: another session takes and releases each."""
        c = self.connect()
        for name in names:
            c.ok("LOCK " + name)
            c.ok("UNLOCK %s sync=yes" % name)

    def test_all_names_are_taken_or_none(self):
        a, b, d = self.names(3)
        one, two = self.connect("one"), self.connect("two")
        answer = one.ok("LOCKALL %s %s" % (b, a))
        self.assertEqual([row["name"] for row in answer.rows], [b, a])
        busy = two.busy("LOCKALL %s %s %s" % (d, b, a))
        self.assertEqual(busy["name"], a)
        self.assertIn("one", busy["holder"])
        self.assertIn("held_ms", busy)
        self.free(d)
        two.err("UNLOCK " + d, "NOTHELD")
        one.ok("UNLOCK " + b)
        self.free(b)
        two.busy("LOCK " + a)
        self.assertEqual(one.ok("CHECK " + a).num("count"), 1)

    def test_a_request_that_waits_keeps_nothing_from_others_and_is_served(self):
        a, b = self.names(2)
        holder, waiter = self.connect(), self.connect()
        holder.ok("LOCK " + a)
        self.assertEqual(waiter.begin("LOCKALL %s %s wait=30s" % (a, b)), [])
        self.free(b)
        holder.ok("UNLOCK " + a)
        answer = waiter.reply()
        self.assertEqual([row["name"] for row in answer.rows], [a, b])
        fences = [row.num("fence") for row in answer.rows]
        self.assertEqual([waiter.ok("CHECK " + name).num("fence") for name in (a, b)], fences)

    def test_the_end_of_a_session_frees_all_that_it_has_and_waits_for(self):
        a, b, d = self.names(3)
        holder, waiter = self.connect(), self.connect()
        holder.ok("LOCKALL %s %s" % (a, b))
        self.assertEqual(waiter.begin("LOCKALL %s %s wait=30s" % (b, d)), [])
        waiter.close()
        holder.close()
        late = self.connect()
        self.assertEqual(late.ok("LOCKALL %s %s %s wait=10s" % (a, b, d)).num("n"), 3)

    def test_any_takes_the_first_that_is_free_and_leaves_the_other_queues(self):
        a, b, d = self.names(3)
        holder, other, waiter = self.connect(), self.connect(), self.connect()
        holder.ok("LOCK " + a)
        self.assertEqual(other.ok("LOCKANY %s %s %s" % (a, b, d))["name"], b)
        self.free(d)
        self.assertEqual(waiter.begin("LOCKANY %s %s wait=30s" % (a, b)), [])
        other.ok("UNLOCK " + b)
        self.assertEqual(waiter.reply()["name"], b)
        self.assertEqual(holder.roles(a), ["holder"])
        holder.ok("UNLOCK " + a)
        self.free(a)

    def test_sessions_that_take_names_in_any_order_go_on(self):
        a, b, d = self.names(3)
        orders = [(a, b, d), (d, b, a), (b, d, a), (d, a, b)]
        clients = [self.connect() for _ in orders]
        for c, order in zip(clients, orders):
            c.send("LOCKALL %s %s %s wait=30s" % order)
        done = 0
        while done < 40:
            for c, order in zip(clients, orders):
                if not any(line.kind == "OK" for line in c.inbox) and not c.fill(0.01):
                    continue
                if not any(line.kind == "OK" for line in c.inbox):
                    continue
                self.assertEqual(c.reply().num("n"), 3)
                done += 1
                for name in order:
                    c.ok("UNLOCK " + name)
                c.send("LOCKALL %s %s %s wait=30s" % order)

    def test_run_tells_which_of_its_names_was_lost(self):
        a, b = self.names(2)
        for lost in (a, b):
            run = self.start_redlock(self.d, "run", a, b, "--", "sh", "-c", "echo; exec sleep 1000", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            run.stdout.readline()
            self.assertEqual(self.call_redlock(self.d, "break", lost)[0], 0)
            self.assertEqual(run.wait(10), 123)
            self.assertEqual(run.stderr.read().decode(), "redlock: %s was lost (broken); the command was stopped\n" % lost)
            run.stdout.close(), run.stderr.close()
            self.free(a, b)

    def test_run_with_several_names_and_with_any(self):
        a, b, d = self.names(3)
        c = self.connect()
        run = self.start_redlock(self.d, "run", a, b, "--", "sh", "-c", "echo $REDLOCK_NAME $REDLOCK_NAME_2; read line; exit 3",
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(run.stdout.readline().split(), [a.encode(), b.encode()])
        c.busy("LOCK " + a)
        c.busy("LOCK " + b)
        self.assertEqual(self.call_redlock(self.d, "try", d, b, "--", "true")[0], 124)
        status, out, _ = self.call_redlock(self.d, "try", "--any", a, b, d, "--", "sh", "-c", "echo $REDLOCK_NAME")
        self.assertEqual((status, out.split()), (0, [d]))
        run.stdin.close()
        self.assertEqual(run.wait(10), 3)
        self.free(a, b, d)


class ManyAcrossDaemons(QuorumTest):
    """Two daemons on three servers."""
    COST = 10

    def test_groups_of_two_daemons_in_opposite_orders_go_on_and_leave_nothing(self):
        one, two = self.client(self.a), self.client(self.b)
        for _ in range(10):
            one.send("LOCKALL x y z wait=30s")
            two.send("LOCKALL z y x wait=30s")
            first = next_served(self, [one, two])
            for c in (first, two if first is one else one):
                self.assertEqual(c.reply().num("n"), 3)
                for name in "xyz":
                    c.ok("UNLOCK %s sync=yes" % name)
        for server in self.servers:
            self.assertEqual(server.cli.keys("lock:*"), [])

    def test_a_group_that_is_refused_leaves_no_key_on_any_server(self):
        one, two = self.client(self.a), self.client(self.b)
        one.ok("LOCK y")
        busy = two.busy("LOCKALL x y z")
        self.assertEqual(busy["name"], "y")
        self.assertTrue(busy["holder"].startswith("@"))
        one.ok("LOCKALL x z")
        self.assertEqual(two.busy("LOCKANY x y z")["name"], "x")
        one.ok("UNLOCK z sync=yes")
        self.assertEqual(two.ok("LOCKANY x y z wait=5s")["name"], "z")

    def test_any_waits_for_names_of_another_daemon(self):
        one, two = self.client(self.a), self.client(self.b)
        one.ok("LOCKALL x y")
        self.assertEqual(two.begin("LOCKANY x y wait=30s"), [])
        one.ok("UNLOCK y")
        self.assertEqual(two.reply()["name"], "y")
        one.ok("UNLOCK x sync=yes")
        one.ok("LOCK x")

    def test_a_group_outlives_its_daemon(self):
        one = self.client(self.a)
        hello = one.ok("HELLO 1 grace=2s")
        fences = {row["name"]: row.num("fence") for row in one.ok("LOCKALL x y").rows}
        self.a.kill()
        self.a.start()
        back = self.client(self.a)
        rows = back.ok("RESUME %s %s" % (hello["session"], hello["secret"])).rows
        self.assertEqual({row["name"]: row.num("fence") for row in rows}, fences)
