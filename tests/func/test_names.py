# SPDX-License-Identifier: BSD-2-Clause
"""COMPLETE and RECENT, and the commands of redlock that ask them."""
from harness import on_each_store

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

    def test_the_newest_comes_first(self):
        c, p = self.connect(), self.name()
        takes(c, p + "/1", p + "/2", p + "/1")
        self.assertEqual(names(c, "RECENT prefix=" + p), [p + "/1", p + "/2"])

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
        self.assertEqual(self.call_redlock(self.d, "recent", "--json", p + "/b"), (0, '{"name":"%s/b"}\n' % p, ""))
