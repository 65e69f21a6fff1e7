# SPDX-License-Identifier: BSD-2-Clause
"""How the daemon answers mistakes, in which order it answers requests, and what its limits refuse."""
from harness import StoreTest
from process import until


class Mistakes(StoreTest):
    """The answer to a mistake has a code and names what would be right. The connection stays."""

    def test_an_unknown_verb_names_the_nearest(self):
        c = self.connect()
        for wrong, right in (("LOKC a", "LOCK"), ("unlok a", "UNLOCK"), ("HELO 1", "HELLO"), ("STAT", "STATS"), ("CHEK a", "CHECK"), ("EXTEN a", "EXTEND")):
            self.assertRegex(c.err(wrong, "UNKNOWN").text, r"\b%s\b" % right)
        answer = c.err("FROBNICATE", "UNKNOWN")
        self.assertNotIn("did you mean", answer.text)
        c.err("x" * 4000, "UNKNOWN")
        c.err("\"LOCK a\"", ("UNKNOWN", "SYNTAX"))

    def test_verbs_and_fields_may_be_of_any_case(self):
        c, name = self.connect(), self.name()
        c.ok("lock %s WAIT=0 Ttl=5s" % name)
        self.assertEqual(c.ok("ChEcK " + name)["name"], name)
        c.ok("Unlock %s FENCE=%d" % (name, c.ok("check " + name).num("fence")))

    def test_wrong_words_and_fields_are_ARG(self):
        c = self.connect()
        wrong = ["LOCK", "LOCK a b", "LOCK a foo=1", "LOCK a wait=1s wait=2s", "LOCK a wait=-1", "LOCK a wait=abc", "LOCK a wait=", "LOCK a wait=5x", "LOCK a wait=5", "RATE a limit=5 per=60", "HELLO 1 heartbeat=5",
                 "LOCK a ttl=forever", "LOCK a ttl=", "LOCK a mode=purple", "LOCK a renew=perhaps", "LOCK a wait=1s2", "LOCK a wait=1.2.3s",
                 "PING x", "QUIT now", "STATS a", "UNLOCK", "UNLOCK a fence=abc", "UNLOCK a fence=-1", "UNLOCK a sync=perhaps", "UNLOCK a keep=forever",
                 "CHECK", "CHECK a ttl=1s", "EXTEND", "EXTEND a wait=1s", "CANCEL", "SHOW", "SHOW a b", "LIST nonsense", "LIST locks limit=x",
                 "HELLO", "HELLO 1 heartbeat=x", "LOCK =a", "LOCK a =5s"]
        for line in wrong:
            c.err(line, "ARG")
            c.ok("PING")
        c.err("LOCK a wait=99999999999999999999s", ("ARG", "LIMIT"))
        self.assertEqual(c.roles("a"), [])

    def test_a_misspelt_field_is_named(self):
        self.assertRegex(self.connect().err("LOCK a wiat=5s", "ARG").text, r"\bwait\b")

    def test_another_protocol_version_is_refused(self):
        c = self.connect()
        for version in ("2", "0", "x", "-1"):
            self.assertEqual(c.ask("HELLO " + version).kind, "ERR")
        c.ok("HELLO 1")

    def test_bad_tags_are_refused(self):
        c = self.connect()
        for tag in ("@", "@a!", "@a/b", "@" + "t" * 33, "@ä"):
            c.send(tag + " PING")
            answer = c.line()
            self.assertEqual(answer.kind, "ERR", tag)
            self.assertIn(answer.code, ("SYNTAX", "ARG"), tag)
            c.ok("PING")
        c.ok("@" + "t" * 32 + " PING")
        c.ok("@A.z_0:9- PING")
        c.err("@a", ("SYNTAX", "ARG", "UNKNOWN"))

    def test_a_hundred_mistakes_in_a_row_end_the_session_and_99_do_not(self):
        c = self.connect()
        for _ in range(2):
            c.send(*["NONSENSE"] * 99)
            self.assertEqual([c.reply().code for _ in range(99)], ["UNKNOWN"] * 99)
            c.ok("PING")
        c.send(*["LOCK"] * 100)
        rest = c.eof()
        self.assertGreaterEqual(len([line for line in rest if line.kind == "ERR"]), 99)
        self.d.logged(r"mistake", self.log_marks[self.d])

    def test_a_session_that_ends_for_its_mistakes_frees_its_locks_when_they_expire(self):
        name, c, rival = self.name(), self.connect(), self.connect()
        c.ok("LOCK %s ttl=1s" % name)
        rival.begin("LOCK %s wait=30s" % name)
        checked = c.ok("CHECK " + name)
        c.send(*["NONSENSE"] * 100)
        c.eof()
        granted = rival.reply()
        self.assertEqual(granted.kind, "OK")
        self.assertGreaterEqual(granted.at - checked.at, (checked.num("valid_ms") - 50) / 1000)

    def test_a_mistake_harms_no_other_session(self):
        good, name = self.connect(), self.name()
        good.ok("LOCK " + name)
        bad = self.connect()
        bad.send(*["\"" * 3] * 150)
        bad.eof()
        good.barrier()
        self.assertEqual(good.inbox, [])
        good.ok("CHECK " + name)


class Order(StoreTest):
    """Tags, pipelining and the order of replies."""
    TCP = True

    def test_untagged_requests_are_answered_in_order_while_one_waits(self):
        name, holder, c = self.name(), self.connect(), self.connect()
        holder.ok("LOCK " + name)
        c.begin("LOCK %s wait=30s" % name, "PING", "CHECK " + name, "UNLOCK " + name)
        self.assertEqual(c.inbox, [])
        holder.ok("UNLOCK " + name)
        self.assertEqual([c.reply().fields.get("count") for _ in range(4)], ["1", None, "1", "0"])

    def test_a_tagged_request_is_answered_when_it_is_done(self):
        name, holder, c = self.name(), self.connect(), self.connect()
        holder.ok("LOCK " + name)
        c.send("@w LOCK %s wait=30s" % name, "PING", "@p PING", "@q CHECK " + name)
        self.assertEqual([c.line().raw.split()[0] for _ in range(3)], [b"OK", b"@p", b"@q"])
        holder.ok("UNLOCK " + name)
        self.assertEqual(c.line().tag, "@w")

    def test_a_tag_cannot_be_used_twice_at_a_time(self):
        name, holder, c = self.name(), self.connect(), self.connect()
        holder.ok("LOCK " + name)
        c.send("@w LOCK %s wait=30s" % name)
        c.err("@w PING", "TAGINUSE")
        c.err("@w LOCK other", "TAGINUSE")
        holder.ok("UNLOCK " + name)
        self.assertEqual(c.reply("@w").kind, "OK")
        c.ok("@w PING")
        self.assertEqual(c.roles("other"), [])

    def test_rows_carry_the_tag(self):
        c = self.connect()
        answer = c.ok("@h HELP")
        self.assertTrue(answer.rows)
        self.assertEqual({row.tag for row in answer.rows}, {"@h"})
        self.assertEqual(answer.num("n"), len(answer.rows))

    def test_a_thousand_pipelined_requests_are_answered_one_by_one(self):
        c, name = self.connect(), self.name()
        c.raw(("LOCK %s\nCHECK %s\nUNLOCK %s\nPING\n" % (name, name, name)).encode() * 1000)
        counts = [c.reply().fields.get("count") for _ in range(4000)]
        self.assertEqual(counts, ["1", "1", "0", None] * 1000)

    def test_thousands_of_requests_behind_one_that_waits_are_answered_in_order(self):
        name, holder, c = self.name(), self.connect(), self.connect()
        holder.ok("LOCK " + name)
        c.send("LOCK %s wait=30s" % name)
        c.raw(b"PING\n" * 3000)
        holder.barrier()
        holder.ok("UNLOCK " + name)
        self.assertEqual(c.reply().fields.get("count"), "1")
        self.assertEqual([c.reply().raw for _ in range(3000)], [b"OK"] * 3000)

    def full_pipeline(self, tcp):
        """A client holds `name`. Another one holds `other` and waits for `name`, with thousands of lines behind that. Returns (holder, client, name, other)."""
        name, other, holder, c = self.name(), self.name(), self.connect(), self.connect(tcp=tcp)
        holder.ok("LOCK " + name)
        c.ok("LOCK " + other)
        c.send("LOCK %s wait=forever" % name)
        c.raw(b"PING\n" * 5000)
        return holder, c, name, other

    def test_a_hang_up_is_noticed_behind_a_full_pipeline(self):
        holder, c, name, other = self.full_pipeline(tcp=False)
        c.close()
        holder.ok("LOCK %s wait=5s" % other)
        self.assertEqual(holder.roles(name), ["holder"])

    def test_the_end_of_a_tcp_client_is_noticed_behind_a_full_pipeline(self):
        holder, c, name, other = self.full_pipeline(tcp=True)
        c.close()
        until(lambda: not holder.roles(other), "the lock of the client is free")
        self.assertEqual(holder.roles(name), ["holder"])

    def test_a_half_close_behind_a_full_pipeline_is_answered_to_the_end(self):
        for tcp in (False, True):
            holder, c, name, other = self.full_pipeline(tcp)
            c.half_close()
            self.assertEqual([c.reply().code] + [c.reply().raw for _ in range(5000)], ["CANCELLED"] + [b"OK"] * 5000)
            self.assertEqual(c.eof(), [])
            holder.ok("LOCK %s wait=5s" % other)
            self.assertEqual(holder.roles(name), ["holder"])

    def test_help_lists_all_requests_or_describes_one(self):
        c = self.connect()
        rows = " ".join(str(row) for row in c.ok("HELP").rows)
        for verb in ("HELLO", "PING", "HELP", "QUIT", "LOCK", "UNLOCK", "EXTEND", "CHECK", "CANCEL", "SHOW", "LIST", "STATS"):
            self.assertRegex(rows, r"\b%s\b" % verb)
        self.assertIn("usage", c.ok("HELP all").rows[0])
        one = c.ok("HELP lock").rows
        self.assertTrue(one)
        self.assertRegex(" ".join(str(row) for row in one), r"\bwait\b")
        self.assertEqual(c.ask("HELP NONSENSE").kind, "ERR")

    def test_hello_describes_the_daemon_and_its_session(self):
        c = self.connect()
        hello = c.ok("HELLO 1 name=worker-7")
        self.assertEqual([hello["proto"], hello["store"], hello["nodes"], hello["quorum"]], ["1", "memory", "1", "1"])
        self.assertRegex(hello["server"], r"^redlockd/[0-9]+\.[0-9]+")
        self.assertEqual(c.ok("HELLO 1 name=worker-8")["session"], hello["session"])
        self.assertNotEqual(self.connect().ok("HELLO 1")["session"], hello["session"])

    def test_quit_is_answered_and_ends_the_session(self):
        c = self.connect()
        c.send("PING", "QUIT", "PING")
        self.assertEqual([line.raw for line in c.eof()], [b"OK", b"OK"])

    def test_every_line_of_the_daemon_is_of_a_known_kind(self):
        c = self.connect()
        c.send("HELP", "LIST locks", "LIST sessions", "LIST nodes", "STATS", "NONSENSE", "SHOW x", "@a STATS")
        c.reply("@a")
        c.barrier()
        for line in c.inbox:
            self.assertRegex(str(line), r"^(@\S+ )?(OK|BUSY|TIMEOUT|ERR [A-Z]+|\*|!)( |$)")


class Limits(StoreTest):
    """The daemon bounds every quantity that a client controls, and names the limit when it refuses."""
    CONFIG = {"limits": {"locks": 10, "waiting": 5, "name": 64}}

    def test_locks_per_session(self):
        c = self.connect()
        for i in range(10):
            c.ok("LOCK limit-%d" % i)
        self.assertRegex(c.err("LOCK limit-10", "LIMIT").text, r"\b10\b")
        c.ok("LOCK limit-3")
        c.ok("UNLOCK limit-0")
        c.ok("LOCK limit-10")

    def test_waiting_requests_per_session(self):
        holder, c, name = self.connect(), self.connect(), self.name()
        holder.ok("LOCK " + name)
        c.send(*["@w%d LOCK %s wait=30s owner=o%d" % (i, name, i) for i in range(6)])
        self.assertRegex(str(c.line()), r"^@w5 ERR LIMIT .*\b5\b")
        c.barrier()
        self.assertEqual(c.inbox, [])
        c.ok("CANCEL @w2")
        self.assertEqual(c.reply("@w2").code, "CANCELLED")
        c.begin("@w6 LOCK %s wait=30s owner=o6" % name)
        self.assertEqual(c.inbox, [])

    def test_the_length_of_names(self):
        c = self.connect()
        c.ok("LOCK " + "n" * 64)
        self.assertRegex(c.err("LOCK " + "n" * 65, "LIMIT").text, r"\b64\b")

    def test_leases_outside_their_range(self):
        c = self.connect()
        for ttl in ("99ms", "1ms", "0", "30001ms", "1h"):
            c.err("LOCK limit-ttl ttl=" + ttl, ("LIMIT", "ARG") if ttl == "0" else "LIMIT")
        c.ok("LOCK limit-ttl-min ttl=100ms")
        c.ok("LOCK limit-ttl")
        c.err("EXTEND limit-ttl ttl=31s", "LIMIT")
        c.err("UNLOCK limit-ttl keep=61m", "LIMIT")
        self.assertEqual(c.ok("CHECK limit-ttl").num("count"), 1)
        self.assertEqual(c.ok("LOCK limit-ttl-max ttl=30s").num("ttl_ms"), 30000)
        c.err("LOCK limit-delay delay=1s", "LIMIT")

    def test_a_long_label_makes_no_long_answers(self):
        c = self.connect()
        answer = c.ask("HELLO 1 name=" + "l" * 8000)
        self.assertIn(answer.kind, ("OK", "ERR"))
        name = self.name()
        c.ok("LOCK " + name)
        self.assertLess(len(self.connect().busy("LOCK " + name).raw), 8192)
