# SPDX-License-Identifier: BSD-2-Clause
"""HELLO grace= and RESUME on one daemon: a session whose connection drops keeps its locks and its places in queues."""
import time

from harness import on_each_store
from process import until
from resumable import Ticket, resume, with_grace

WAYS = ("close", "reset", "half-close")


@on_each_store
class Drop:
    """The connection drops, and the client comes back."""
    TCP, COST = True, 12
    CONFIG = {"lease": "2s", "max_lease": "5s"}

    def drop(self, client, way="close"):
        if way == "reset":
            client.reset()
        elif way == "half-close":
            client.half_close()
            client.eof()
            client.close()
        else:
            client.close()

    def dropped(self, request, tcp=False, way="close", grace="30s"):
        """A session sends one request, and its connection drops. Returns its ticket and the answer."""
        client = self.connect(tcp=tcp)
        ticket = with_grace(client, grace)
        answer = client.ok(request)
        self.drop(client, way)
        return ticket, answer

    def test_RESUME_lists_the_locks_that_are_held(self):
        for tcp in (False, True):
            for way in WAYS if tcp else ("close", "half-close"):
                with self.subTest(tcp=tcp, way=way):
                    a, b = self.name(), self.name()
                    client, other = self.connect(tcp=tcp), self.connect()
                    ticket = with_grace(client)
                    fences = {name: client.ok("LOCK %s note=mine" % name).num("fence") for name in (a, b)}
                    client.ok("LOCK " + b)
                    self.drop(client, way)
                    other.busy("LOCK " + a)
                    back = self.connect(tcp=tcp)
                    rows = resume(back, ticket)
                    self.assertEqual({name: row.num("fence") for name, row in rows.items()}, fences)
                    self.assertTrue(all(0 < row.num("valid_ms") <= 2000 for row in rows.values()), rows)
                    self.assertEqual((back.ok("CHECK " + a).num("count"), back.ok("CHECK " + b).num("count")), (1, 2))
                    self.assertEqual(back.ok("UNLOCK " + b).num("count"), 1)
                    other.busy("LOCK " + b)
                    back.ok("UNLOCK " + b)
                    self.assertGreater(other.ok("LOCK %s wait=5s" % b).num("fence"), fences[b])
                    back.ok("UNLOCK " + a)

    def test_locks_are_renewed_without_a_connection_and_after_RESUME(self):
        name = self.name()
        ticket, _ = self.dropped("LOCK " + name)
        other = self.connect()
        other.listen(2.5)
        other.busy("LOCK " + name)
        back = self.connect()
        self.assertIn(name, resume(back, ticket))
        back.listen(2.5)
        back.ok("CHECK " + name)
        self.assertEqual(back.inbox, [], "the session is pushed a RISK or a LOST")

    def test_a_lock_with_renew_no_ends_without_a_connection(self):
        name = self.name()
        ticket, answer = self.dropped("LOCK %s renew=no ttl=300ms" % name)
        self.assertGreater(self.connect().ok("LOCK %s wait=5s" % name).num("fence"), answer.num("fence"))
        back = self.connect()
        self.assertEqual(resume(back, ticket), {})
        back.err("CHECK " + name, "LOST")

    def test_without_grace_or_after_QUIT_or_with_a_wrong_secret_nothing_is_resumed(self):
        name = self.name()
        client = self.connect()
        ticket = Ticket(client.ok("HELLO 1"))
        client.ok("LOCK " + name)
        client.close()
        other = self.connect()
        other.ok("LOCK %s wait=5s" % name)
        other.err(str(ticket), ("NOTFOUND", "ARG"))
        other.ok("UNLOCK " + name)
        other.err(str(ticket), "NOTFOUND")
        client = self.connect()
        ticket = with_grace(client)
        client.ok("LOCK " + name)
        client.ok("QUIT")
        other.err(str(ticket), "NOTFOUND")
        ticket, _ = self.dropped("LOCK " + name)
        wrong = Ticket({"session": ticket.session, "secret": ticket.secret[:-1] + ("0" if ticket.secret[-1] != "0" else "1")})
        other.err(str(wrong), "NOTFOUND")
        other.err("RESUME 999999 " + ticket.secret, "NOTFOUND")
        self.assertIn(name, resume(other, ticket))

    def test_after_the_grace_the_lock_is_free_and_the_session_gone(self):
        name = self.name()
        waiter = self.connect()
        client = self.connect()
        ticket = with_grace(client, "700ms")
        fence = client.ok("LOCK " + name).num("fence")
        waiter.begin("LOCK %s wait=20s" % name)
        begin = time.monotonic()
        client.close()
        granted = waiter.reply(None, 21)
        self.assertGreaterEqual(granted.at - begin, 0.69)
        self.assertGreater(granted.num("fence"), fence)
        self.connect().err(str(ticket), "NOTFOUND")

    def test_RESUME_takes_a_session_over_from_an_open_connection_and_the_secret_stays_valid(self):
        name = self.name()
        ticket, granted = self.dropped("LOCK " + name)
        last = None
        for tcp in (False, True, False):
            client = self.connect(tcp=tcp)
            self.assertEqual(resume(client, ticket)[name].num("fence"), granted.num("fence"))
            if last:
                last.eof()
            last = client
        last.ok("UNLOCK " + name)

    def test_a_session_that_holds_a_lock_cannot_resume_another(self):
        name, mine = self.name(), self.name()
        ticket, _ = self.dropped("LOCK " + name)
        client = self.connect()
        client.ok("LOCK " + mine)
        self.assertEqual(client.ask(str(ticket)).kind, "ERR")
        client.ok("CHECK " + mine)
        client.ok("UNLOCK " + mine)
        self.assertIn(name, resume(client, ticket))

    def test_a_place_in_the_queue_is_kept(self):
        name = self.name()
        holder, first, second = self.connect(), self.connect(), self.connect()
        holder.ok("LOCK " + name)
        ticket = with_grace(first)
        for client in (first, second):
            client.begin("LOCK %s wait=30s" % name)
        first.close()
        back = self.connect()
        self.assertEqual(resume(back, ticket), {})
        back.begin("LOCK %s wait=30s" % name)
        self.assertEqual(self.connect().roles(name), ["holder", "waiter", "waiter"])
        holder.ok("UNLOCK " + name)
        granted = back.reply()
        self.assertEqual(granted.kind, "OK")
        second.barrier()
        self.assertEqual(second.inbox, [])
        back.ok("UNLOCK " + name)
        self.assertGreater(second.reply().num("fence"), granted.num("fence"))

    def test_a_lock_granted_without_a_connection_is_listed(self):
        name = self.name()
        holder, first, second = self.connect(), self.connect(), self.connect()
        held = holder.ok("LOCK " + name).num("fence")
        ticket = with_grace(first)
        first.begin("LOCK %s wait=30s" % name)
        second.begin("LOCK %s wait=30s" % name)
        first.close()
        holder.ok("UNLOCK " + name)
        until(lambda: any(row["role"] == "holder" and row.num("fence") > held for row in holder.ok("SHOW " + name).rows),
              "the dropped session is granted the lock")
        back = self.connect()
        fence = resume(back, ticket)[name].num("fence")
        self.assertGreater(fence, held)
        self.assertEqual(back.ok("LOCK " + name).num("fence"), fence, "the same LOCK again does not find the lock held")
        second.barrier()
        self.assertEqual(second.inbox, [])
        while back.ok("UNLOCK " + name).num("count"):
            pass
        self.assertGreater(second.reply().num("fence"), fence)

    def test_a_missed_heartbeat_drops_the_connection(self):
        name = self.name()
        client = self.connect()
        ticket = with_grace(client, "30s", "heartbeat=300ms")
        fence = client.ok("LOCK " + name).num("fence")
        client.eof()
        self.connect().busy("LOCK " + name)
        back = self.connect()
        self.assertEqual(resume(back, ticket)[name].num("fence"), fence)
        back.eof()  # the session still has a heartbeat
        self.assertEqual(resume(self.connect(), ticket)[name].num("fence"), fence)

    def test_owner_label_and_note_are_kept(self):
        name = self.name()
        client = self.connect()
        ticket = with_grace(client, more="name=exporter")
        client.ok('LOCK %s owner=t1 note="nightly export"' % name)
        client.close()
        back = self.connect()
        resume(back, ticket)
        row = self.connect().ok("SHOW " + name).rows[0]
        self.assertEqual((row["role"], row["note"]), ("holder", "nightly export"))
        self.assertIn("exporter", str(row))
        back.err("CHECK " + name, "NOTHELD")
        back.ok("UNLOCK %s owner=t1" % name)
