# SPDX-License-Identifier: BSD-2-Clause
"""A client whose connection is cut after its requests, before it has read the answers: the client closes it, or no answer reaches the client and the daemon
does not notice, or the daemon is killed. By the rule of redlock-protocol(7) it resumes its session and sends the
same request again. Whatever was carried out before, no count, lock, permit or job is there too often."""
import random
import time

from daemon import on_redis
from harness import FuncTest, safety
from process import WAIT, merged
from resumable import resume, with_grace
from wire import Client

CONF = {"lease": "3s", "max_lease": "5s"}
PATIENT = "wait=30s"  # a daemon that is killed before it has noted a grant leaves the key to its end
OWNERS = ("o1", "o2", "o3")
LIMIT = 3
VERBS = ("LOCK", "LOCKALL", "LOCKANY", "ACQUIRE", "UNLOCK", "RELEASE", "DEFER", "TAKE", "DONE")
WAYS = ("closed", "unheard", "killed")


class CutClient:
    """Sends each request until it has read an answer. Cuts its connection instead of reading some answers, and kills the daemon now and then."""

    def __init__(self, daemon, rng):
        self.daemon, self.rng, self.cuts, self.kills, self.unheard = daemon, rng, 0, 0, []
        self.missing = {(verb, way) for verb in VERBS for way in WAYS}  # no request of this kind was cut in this way yet
        self.client = Client(daemon.addr)
        self.ticket = with_grace(self.client, "30s")

    def close(self):
        for client in [self.client, *self.unheard]:
            client.close()

    def way(self, verb):
        if (verb, "killed") in self.missing or self.rng.random() < 0.03:
            return "killed"
        return self.rng.choice(("closed", "unheard"))

    def come_back(self, way):
        if way == "unheard":
            self.unheard.append(self.client)
        else:
            self.client.close()
        if way == "killed":
            self.daemon.restart()
            self.kills += 1
        self.client = Client(self.daemon.addr)
        self.client.ok(str(self.ticket))
        self.cuts += 1

    def cut(self, request):
        """Sends the request, and reads no answer: it has come by the end of the connection, or not."""
        verb = request.split()[0]
        way = self.way(verb)
        self.client.send(request)
        if self.rng.random() < 0.6:
            self.client.poll.poll(WAIT * 1000)
        self.come_back(way)
        self.missing.discard((verb, way))

    def ask(self, request):
        """Returns (the answer, whether the request was sent before)."""
        again = False
        deadline = time.monotonic() + WAIT * 2
        while self.rng.random() < 0.5:
            self.cut(request)
            again = True
        while True:
            answer = self.client.ask(request, 60)
            if answer.code not in ("QUORUM", "UNAVAILABLE") or time.monotonic() > deadline:
                return answer, again
            time.sleep(0.02)  # the lock is being adopted


class History:
    """What the client has, by the answers that it has read."""

    def __init__(self, daemon, seed):
        self.rng = random.Random(seed)
        self.cut = CutClient(daemon, self.rng)
        self.held, self.permits, self.jobs, self.done = {}, dict.fromkeys(OWNERS, 0), 0, set()
        self.steps = (self.lock, self.lock, self.unlock, self.unlock, self.lock_all, self.lock_any, self.acquire, self.acquire, self.release, self.job)

    def ok(self, request):
        answer, again = self.cut.ask(request)
        if answer.kind != "OK":
            raise AssertionError("%s: %s%s" % (request, answer, " (sent before)" if again else ""))
        return answer

    def gives_back(self, request, count=0):
        """A daemon that is killed between the release at the stores and its own record of it can only tell that the lock is lost."""
        kills = self.cut.kills
        answer, again = self.cut.ask(request)
        if answer.kind == "OK":
            self.counts(answer, count)
        elif answer.code != "LOST" or kills == self.cut.kills:
            raise AssertionError("%s: %s%s" % (request, answer, " (sent before)" if again else ""))

    def counts(self, answer, count):
        if answer.num("count") != count:
            raise AssertionError("held %s times: %s" % (count, answer))

    def step(self):
        self.rng.choice(self.steps)()

    def lock(self):
        key = self.rng.choice(OWNERS), self.rng.randrange(3)
        count = self.held.get(key, 0) + 1
        if count <= 3:
            self.counts(self.ok("LOCK %s-%d owner=%s count=%d %s" % (key[0], key[1], key[0], count, PATIENT)), count)
            self.held[key] = count

    def unlock(self):
        if not self.held:
            return
        key = self.rng.choice(sorted(self.held))
        count = self.rng.randrange(self.held[key])
        request = "UNLOCK %s-%d owner=%s count=%d" % (key[0], key[1], key[0], count)
        if count > 0:  # the stores are not asked
            self.counts(self.ok(request), count)
        else:
            self.gives_back(request)
        self.held[key] = count
        if count == 0:
            del self.held[key]

    def lock_all(self):
        names = ["all-%d" % i for i in self.rng.sample(range(4), 2)]
        answer = self.ok("LOCKALL %s owner=all count=1 %s" % (" ".join(names), PATIENT))
        if [row.num("count") for row in answer.rows] != [1, 1]:
            raise AssertionError("LOCKALL: %r" % answer.rows)
        for name in names:
            self.gives_back("UNLOCK %s owner=all count=0" % name)

    def lock_any(self):
        answer = self.ok("LOCKANY any-1 any-2 any-3 owner=any count=1 " + PATIENT)
        self.counts(answer, 1)
        self.gives_back("UNLOCK %s owner=any count=0" % answer["name"])

    def acquire(self):
        owner = self.rng.choice(OWNERS)
        if sum(self.permits.values()) < LIMIT:
            self.permits[owner] += 1
            self.ok("ACQUIRE s limit=%d owner=%s count=%d %s" % (LIMIT, owner, self.permits[owner], PATIENT))

    def release(self):
        owner = self.rng.choice(OWNERS)
        count = max(0, self.permits[owner] - 1)
        self.gives_back("RELEASE s owner=%s count=%d" % (owner, count), count)
        self.permits[owner] = count

    def job(self):
        """A daemon that is killed before it has noted what the home of the queue has answered does not know of that: the job comes again, or is lost."""
        self.jobs += 1
        kills = self.cut.kills
        self.ok("DEFER q payload-%d id=j%d" % (self.jobs, self.jobs))
        taken = self.ok("TAKE q " + PATIENT)
        if taken["job"] != "j%d" % self.jobs or taken["payload"] != "payload-%d" % self.jobs or (taken.num("attempt") > 1 and kills == self.cut.kills):
            raise AssertionError("job %d: %s" % (self.jobs, taken))
        answer, again = self.cut.ask("DONE %s" % taken["job"])
        if answer.code == "LOST" and kills < self.cut.kills:
            if self.cut.client.ask("TAKE q").kind == "OK":
                self.cut.client.ok("DONE %s" % taken["job"])
        elif answer.kind != "OK" and not (again and answer.code == "NOTHELD"):
            raise AssertionError("DONE: %s" % answer)

    def give_all_back(self):
        for owner, n in sorted(self.held):
            self.gives_back("UNLOCK %s-%d owner=%s count=0" % (owner, n, owner))
        for owner in OWNERS:
            self.gives_back("RELEASE s owner=%s count=0" % owner)


class LostAnswers(FuncTest):
    COST = 12
    STEPS = 120

    def live(self, daemon):
        seed = random.randrange(10 ** 9)
        history = History(daemon, seed)
        try:
            with safety():
                steps = 0
                while steps < self.STEPS or history.cut.missing:
                    history.step()
                    steps += 1
            with daemon.client() as other:
                self.compare(history, other)
            history.give_all_back()
            with daemon.client() as other:
                self.assertEqual(other.ok("LIST locks").num("n"), 0)
                self.assertEqual(other.ok("LIST queues").num("n"), 0)
        except AssertionError as error:
            raise AssertionError("seed %d: %s" % (seed, error)) from error
        finally:
            history.cut.close()
        self.figure("%d cuts, %d kills" % (history.cut.cuts, history.cut.kills))

    def compare(self, history, other):
        """What the daemon says that the client has is what the client thinks."""
        rows = [row for row in other.ok("LIST locks").rows if row.fields.get("kind") != "semaphore"]
        self.assertEqual({row["name"]: row.num("count") for row in rows}, {"%s-%d" % key: count for key, count in history.held.items()})
        permits = [row["owner"] for row in other.ok("SHOW s").rows if row["role"] == "holder"] if sum(history.permits.values()) else []
        self.assertEqual({owner: permits.count(owner) for owner in OWNERS}, history.permits)

    def test_on_the_memory_store(self):
        self.live(self.daemon(CONF))

    def test_on_one_redis(self):
        server = self.redis()
        self.live(self.daemon(on_redis([server], merged(CONF))).joined())


class WaitCut(FuncTest):
    """A LOCK, and an ACQUIRE, that waits is cut off and sent again, in the same session and after RESUME."""
    COST = 4

    def begins(self, first, request, release, count):
        daemon = self.daemon(CONF)
        holder, client = self.client(daemon), self.client(daemon)
        holder.ok(first)
        ticket = with_grace(client)
        client.begin("@1 " + request)
        client.send("@2 " + request)
        self.assertEqual(client.reply("@1").code, "CANCELLED")
        client.close()
        back = self.client(daemon)
        resume(back, ticket)
        back.begin("@3 " + request)
        holder.ok(release)
        granted = back.reply("@3")
        self.assertEqual((granted.kind, granted.num("count")), ("OK", 1))
        self.assertEqual(back.ok(request).num("fence"), granted.num("fence"))
        self.assertEqual(holder.ok(count).num("n"), 1)

    def test_a_lock_that_waits_is_one_lock(self):
        self.begins("LOCK w", "LOCK w wait=60s owner=o count=1", "UNLOCK w", "SHOW w")

    def test_an_acquire_that_waits_is_one_permit(self):
        self.begins("ACQUIRE w limit=1", "ACQUIRE w limit=1 wait=60s owner=o count=1", "RELEASE w", "SHOW w")
