# SPDX-License-Identifier: BSD-2-Clause
"""The ways in which clients take locks: one table, from which each worker draws, and over which rows_drop.py sees what the end of a session frees.

Whoever has taken locks checks them by Worker.act(), which writes where the hold is exclusive and reads where it is shared, and releases them name by name.
A row whose request the daemons do not know is left out.
"""
import collections

# weight: how often it is drawn. verb: the request that it needs. names: for how many names it asks, at most. renewed: only the watchdog renews its hold, so
# it takes no ttl of its own. take(session, rng, names, wait, between, **terms) returns the names that it holds; between(names) is called where a hold is
# about to change. waits: whether a session that waits for it holds nothing yet.
Operation = collections.namedtuple("Operation", "weight verb names renewed waits take")


def only(session, name):
    """The name, if the session still holds it."""
    return [name] if session.fence(name) else []


def exclusive(session, rng, names, wait, between, **terms):
    return only(session, names[0]) if session.lock(names[0], wait, **terms) else []


def shared(session, rng, names, wait, between, **terms):
    return only(session, names[0]) if session.lock(names[0], wait, shared=True, **terms) else []


def urgent(session, rng, names, wait, between, **terms):
    """Stands before those of lower priorities, in either mode."""
    mode = {"shared": True} if terms.get("renew", True) and rng.random() < 0.3 else {}
    return only(session, names[0]) if session.lock(names[0], wait, priority=rng.randrange(1, 10), **mode, **terms) else []


def upgraded(session, rng, names, wait, between, **terms):
    """A reader that would be a writer. It is refused, and is a reader still; so it gives its hold back first."""
    if not session.lock(names[0], wait, shared=True, **terms):
        return []
    between(names[:1])
    if session.fence(names[0]) and not session.lock(names[0], wait=rng.choice((0, 300, 300))) and session.fence(names[0]):
        session.unlock(names[0])
        session.lock(names[0], wait=300)
    return only(session, names[0])


def downgraded(session, rng, names, wait, between, **terms):
    """A writer that becomes a reader."""
    if not session.lock(names[0], wait, **terms):
        return []
    between(names[:1])
    if session.fence(names[0]):
        session.lock(names[0], shared=True)
    return only(session, names[0])


def all_of_them(session, rng, names, wait, between, **terms):
    return session.lock_several("LOCKALL", names, wait, **some_mode(rng, terms))


def any_of_them(session, rng, names, wait, between, **terms):
    return session.lock_several("LOCKANY", names, wait, **some_mode(rng, terms))


def some_mode(rng, terms):
    return dict(terms, shared=True) if terms.get("renew", True) and rng.random() < 0.3 else terms


TABLE = {
    "exclusive": Operation(8, "LOCK", 1, False, True, exclusive),
    "shared": Operation(5, "LOCK", 1, True, True, shared),
    "urgent": Operation(2, "LOCK", 1, False, True, urgent),
    "upgraded": Operation(1.5, "LOCK", 1, True, False, upgraded),
    "downgraded": Operation(1.5, "LOCK", 1, True, False, downgraded),
    "all": Operation(2, "LOCKALL", 3, False, True, all_of_them),
    "any": Operation(2, "LOCKANY", 3, False, True, any_of_them),
}


def known(verbs):
    """The operations that daemons with these requests know."""
    return {key: operation for key, operation in TABLE.items() if operation.verb in verbs}


def drawn(rng, options, renewed):
    """An operation, by the weights of the row or of the table. Not renewed: one whose hold may be without the watchdog."""
    able = {key: one for key, one in known(options.verbs or ("LOCK",)).items() if renewed or not one.renewed}
    weights = {key: (options.mix or {}).get(key, 0 if options.mix else one.weight) for key, one in able.items()}
    if not any(weights.values()):
        return TABLE["exclusive"]
    return able[rng.choices(list(weights), list(weights.values()))[0]]
