# SPDX-License-Identifier: BSD-2-Clause
"""Mistakes that an adapter of the Python client can plant in it: a rule left out. $REDLOCK_PLANT names one; the product knows nothing of them."""
import os

from redlockd import _base, _core, _engine, _errors, _holds, _place, _requests, _threads, aio


def from_receipt():
    """R1: the deadline counts from when the answer was read."""
    confirm = _holds.Hold.confirm
    _holds.Hold.confirm = lambda self, asked, valid: confirm(self, asked, valid + max(0.0, _place.now() - asked))


def by_lease():
    """R1: the lease is taken for the validity."""
    confirm = _holds.Hold.confirm
    _holds.Hold.confirm = lambda self, asked, valid: confirm(self, asked, max(valid, self.ttl))


def by_standing_clock():
    """R1: a clock that stands still while the machine is suspended."""
    import time  # pylint: disable=import-outside-toplevel
    _place.now = time.monotonic


def unchecked_grant():
    """R2: a grant that waited is not asked about again."""
    _requests.WAITED_LONG = float("inf")


def no_keeper():
    """R3: nobody sends CHECK."""
    _core.Core._keep = lambda self, now: None


def without(field):
    """R4: UNLOCK and RELEASE lack a field."""
    def plant():
        for kind in (_holds.Hold, _holds.Permit):
            def free(self, extra="", real=kind.free):
                return " ".join(word for word in real(self, extra).split(" ") if not word.startswith(field))
            kind.free = free
    plant.__doc__ = "R4: UNLOCK and RELEASE lack " + field
    return plant


def no_cancel():
    """R5: an aborted wait goes on at the daemon."""
    def withdraw(self, request, now):
        request.withdrawn = True
    _core.Core.withdraw = withdraw


def grant_kept():
    """R5: a grant that was quicker than CANCEL is kept."""
    _requests.Take.give_back = lambda self, core, now: None


def release_cancelled():
    """R6: a release ends with its caller."""
    drop = _core.Core.drop

    def dropped(self, request, now):
        if isinstance(request, _requests.Free):
            self.sent.pop(request.tag, None)
        else:
            drop(self, request, now)
    wait = _engine.Engine.wait

    def waited(self, request):
        try:
            wait(self, request)
        except BaseException:
            dropped(self.core, request, 0.0)
            raise
    _core.Core.drop, _engine.Engine.wait = dropped, waited


def one_owner():
    """R7: all threads are the same owner."""
    def take(self, terms, who, now):
        request = _requests.Take(terms, "t1", now)
        self.submit(request, now)
        return request
    _core.Core.take = take


def one_tag():
    """R7: all requests have the same tag."""
    send = _core.Core.send

    def tagged(self, request, now):
        self._tags = 6
        send(self, request, now)
    _core.Core.send = tagged


def deaf():
    """R8: LOST is not heard, CHECK says so later."""
    push = _core.Core._push
    _core.Core._push = lambda self, line, now: None if line.code == "LOST" else push(self, line, now)


def silent_session():
    """R9: a new session in place of the one that broke, and holds that are relied on in it."""
    def greet(self, now):
        self.send(_core._Hello("HELLO 1 grace=%s" % _core.duration(self.grace), now + 5), now)
    _core.Core.greet = greet


def rowless():
    """R9: what has no row is still held."""
    lose = _core.Core.lose
    _core.Core.lose = lambda self, hold, reason: None if self.state is _core.State.GREETING else lose(self, hold, reason)


def shared_by_fork():
    """R10: a child goes on with what the parent has."""
    class Nobody(set):
        def add(self, engine):
            pass
    for module in (_engine, aio):
        module._engines = Nobody()


def unlocking_finaliser():
    """R11: the lock that nobody refers to any more is unlocked."""
    def end(self):
        holds, self._holds = self._holds, ()
        self._engine.start(lambda core, now: [core.free(hold, now) for hold in holds])
    _base.Grip.__del__ = end


def closed_world():
    """R12: a code, or a push, that is unknown is an error."""
    push = _core.Core._push

    def strict(self, line, now):
        if line.code not in ("LOST", "RISK", "SAFE", "DRAIN", "CONTENDED", "EVENT"):
            raise KeyError(line.code)
        push(self, line, now)
    _core.Core._push = strict
    _requests.error_of = lambda code, text, about: _errors._BY_CODE[code](text, code)


def endless_patience():
    """R13: an answer is awaited for ever."""
    for module in (_requests, _core, _base, _threads, aio):
        if hasattr(module, "PATIENCE"):
            module.PATIENCE = 1e9


def no_environment():
    """R14: the environment is not looked at."""
    _place.environment = lambda name: None


def chatty():
    """R14: the secret stands in a text."""
    text = _errors.error_of
    _core.Denied = lambda said, code: text(code, said + " " + (os.environ.get("REDLOCK_SECRET") or ""), "AUTH")


def never_due():
    """R15: the records of others are not heeded."""
    begins = _base.Once.begins
    _base.Once.begins = lambda self, history: begins(self, history) or True


def counted_from_the_end():
    """R15: the time counts from when the call returned."""
    record = _base.Once.record
    _base.Once.record = lambda self, status: (record(self, status)[0], self.every)


def lost_all_the_same():
    """R15: a run is recorded whether or not its lock was lost."""
    async def soon(self, seconds=0.0):
        return 1.0
    _threads.Held.ensure, aio.Held.ensure = (lambda self, seconds=0.0: 1.0), soon


def dropped_first():
    """R15: the old records go before there is a new one."""
    def has_run(self, run, lock, status):
        lock.ensure()
        for request in run.drops():
            self.ask(request)
        payload, delay = run.record(status)
        self.defer(run.queue, payload, delay=delay)

    async def has_run_soon(self, run, lock, status):
        await lock.ensure()
        for request in run.drops():
            await self.ask(request)
        payload, delay = run.record(status)
        await self.defer(run.queue, payload, delay=delay)
    _threads.Client._has_run, aio.Client._has_run = has_run, has_run_soon


PLANTS = {"R1-receipt": from_receipt, "R1-lease": by_lease, "R1-clock": by_standing_clock, "R2": unchecked_grant, "R3": no_keeper,
          "R4-fence": without("fence="), "R4-count": without("count="), "R5-cancel": no_cancel, "R5-kept": grant_kept, "R6": release_cancelled,
          "R7-owner": one_owner, "R7-tag": one_tag, "R8": deaf, "R9-new": silent_session, "R9-rowless": rowless, "R10": shared_by_fork,
          "R11": unlocking_finaliser, "R12": closed_world, "R13": endless_patience, "R14-environment": no_environment, "R14-secret": chatty,
          "R15-due": never_due, "R15-end": counted_from_the_end, "R15-lost": lost_all_the_same, "R15-order": dropped_first}


def plant():
    """Plants what the environment names."""
    word = os.environ.get("REDLOCK_PLANT")
    if word:
        PLANTS[word]()
