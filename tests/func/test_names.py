# SPDX-License-Identifier: BSD-2-Clause
"""COMPLETE, RECENT and FORGET, and the commands of redlock that ask them."""
from daemon import on_redis
from harness import FuncTest, on_each_store
from process import until

def names(client, line):
    """The names of an answer with rows."""
    return [row["name"] for row in client.ask(line).rows]


def takes(client, *wanted):
    for name in wanted:
        client.ok("LOCK %s wait=10s" % name)
        client.ok("UNLOCK " + name)


@on_each_store
class Names:
    def test_names_are_completed_in_their_order(self):
        c, p = self.connect(), self.name()
        takes(c, p + "/b", p + "/a", p + "/c")
        self.assertEqual(names(c, "COMPLETE %s/" % p), [p + "/a", p + "/b", p + "/c"])
        self.assertEqual(names(c, "COMPLETE %s/ limit=2" % p), [p + "/a", p + "/b"])
        self.assertEqual(names(c, "COMPLETE %s/b" % p), [p + "/b"])

    def test_the_newest_comes_first_and_a_name_can_be_forgotten(self):
        c, p = self.connect(), self.name()
        takes(c, p + "/1", p + "/2", p + "/1")
        self.assertEqual(names(c, "RECENT prefix=" + p), [p + "/1", p + "/2"])
        c.ok("FORGET %s/1" % p)
        self.assertEqual(names(c, "RECENT prefix=" + p), [p + "/2"])
        c.err("FORGET %s/1" % p, "NOTFOUND")

    def test_a_hundred_are_told_of_many(self):
        c, p = self.connect(), self.name()
        takes(c, *["%s/%03d" % (p, i) for i in range(300)])
        self.assertEqual(names(c, "RECENT"), ["%s/%03d" % (p, i) for i in range(299, 199, -1)])
        self.assertEqual(len(names(c, "COMPLETE %s limit=1000" % p)), 300)

    def test_the_commands_print_a_name_a_line(self):
        c, p = self.connect(), self.name()
        takes(c, p + "/b", '"%s/a b"' % p)
        self.assertEqual(self.call_redlock(self.d, "complete", p), (0, '"%s/a b"\n%s/b\n' % (p, p), ""))
        self.assertEqual(self.call_redlock(self.d, "recent", p), (0, '"%s/a b"\n%s/b\n' % (p, p), ""))
        self.assertEqual(self.call_redlock(self.d, "forget", p + "/b"), (0, "", ""))
        self.assertEqual(self.call_redlock(self.d, "recent", "--json", p), (0, '{"name":"%s/a b"}\n' % p, ""))
        status, out, err = self.call_redlock(self.d, "forget", p + "/b")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("NOTFOUND", err)


class Shared(FuncTest):
    """Daemons that share stores."""
    COST = 6

    def pair(self, servers):
        self.r = [self.redis() for _ in range(servers)]
        return [self.client(self.daemon(on_redis(self.r)).joined()) for _ in range(2)]

    def known_elsewhere(self, servers):
        a, b = self.pair(servers)
        takes(a, "one/2", "one/1", "two")
        until(lambda: names(b, "COMPLETE one/") == ["one/1", "one/2"], "the other daemon knows the names", 3)
        self.assertEqual(names(b, "RECENT"), ["harness:ready", "two", "one/1", "one/2"])  # the same user on the same host; the first one was locked here
        b.ok("FORGET one/1")
        self.assertEqual(names(b, "RECENT prefix=one"), ["one/2"])

    def test_one_server(self):
        self.known_elsewhere(1)

    def test_three_servers(self):
        self.known_elsewhere(3)

    def test_three_servers_of_which_one_is_stopped(self):
        a, b = self.pair(3)
        takes(a, "one/1", "two")
        until(lambda: names(b, "COMPLETE one/") == ["one/1"], "the other daemon knows the name", 3)
        self.r[0].freeze()
        self.assertEqual(names(b, "COMPLETE one/"), ["one/1"])
        self.r[0].thaw()

    def test_a_daemon_that_was_killed_knows_them_again(self):
        server = self.redis()
        d = self.daemon(on_redis([server])).joined()
        takes(self.client(d), "a", "b")
        until(lambda: server.cli.zcard("redlockd:lock:!names") >= 2, "the server is told", 3)
        d.restart().joined()
        c = self.client(d)
        self.assertEqual(names(c, "COMPLETE"), ["a", "b", "harness:ready"])
        self.assertEqual(names(c, "RECENT"), ["harness:ready", "b", "a"])

    def test_nothing_is_written_in_a_lock_and_keys_end(self):
        server = self.redis()
        c = self.client(self.daemon(on_redis([server])).joined())
        takes(c, "a")
        until(lambda: server.cli.zcard("redlockd:lock:!seen") == 2, "the server is told", 3)
        written = server.calls()["zadd"]
        for _ in range(200):
            takes(c, "a")
        self.assertLessEqual(server.calls()["zadd"], written + 3)
        user, = server.cli.keys("redlockd:lock:u:*")
        for key in ("redlockd:lock:!names", "redlockd:lock:!seen", user):
            self.assertGreater(server.cli.pttl(key), 29 * 86400 * 1000, key)

    def test_a_key_that_was_deleted_takes_the_other_with_it(self):
        """Else names would stay that nothing makes room for."""
        server = self.redis()
        c = self.client(self.daemon(on_redis([server])).joined())
        takes(c, "a")
        until(lambda: server.cli.zcard("redlockd:lock:!seen") == 2, "the server is told", 3)
        server.cli.delete("redlockd:lock:!seen")
        takes(c, "b")
        until(lambda: server.cli.zcard("redlockd:lock:!seen") == 1, "the server is told", 3)
        self.assertEqual(server.cli.zrange("redlockd:lock:!names", 0, -1), [b"b"])

    def test_locks_do_without_the_keys_and_without_the_commands(self):
        server = self.redis()
        server.cli.execute_command("ACL", "SETUSER", "default", "-zrangebylex", "-zcard")
        c = self.client(self.daemon(on_redis([server])).joined())
        takes(c, "a")
        last = c.ask("COMPLETE")
        self.assertEqual(([row["name"] for row in last.rows], last["partial"]), (["a", "harness:ready"], "yes"))
        takes(c, "b")
        server.cli.execute_command("ACL", "SETUSER", "default", "+@all")
        server.cli.set("redlockd:lock:!names", "somebody's")
        takes(c, "c")
        self.assertEqual(names(c, "COMPLETE"), ["a", "b", "c", "harness:ready"])
