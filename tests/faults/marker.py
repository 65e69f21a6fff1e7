# SPDX-License-Identifier: BSD-2-Clause
"""What a node does whose marker was deleted: judged at the node itself, since histories do not show which nodes voted."""
import time

from redis_server import MARKER

FORGET = """redis.call('DEL', KEYS[1]) local there = {}
for _, key in ipairs(redis.call('KEYS', 'lock:*')) do there[#there + 1] = key there[#there + 1] = redis.call('GET', key) end return there"""


def holds_in(texts):
    """Who holds what, by {key: value}: a value, or each share of readers. Neither a reader that leaves nor BREAK, which puts '!' in front, takes a lock."""
    bare = {key: text.removeprefix("!") for key, text in texts.items()}
    return {(key, hold) for key, text in bare.items() for hold in (text.split(" ")[1:] if text.startswith("R ") else [text])}


class Marker:
    """Deletes the marker of a node. The node must be joined again, not before the longest lease has ended (S10) and not long after that (L4), and must take
    no lock meanwhile (S23)."""

    def __init__(self, w, node):
        self.w, self.node, self.back = w, node, False
        with w.fault("DEL of the marker on node %d" % node.index):
            self.deleted = time.monotonic()
            there = [text.decode("latin-1") for text in node.cli.eval(FORGET, 1, MARKER)]
        self.locks = holds_in(dict(zip(there[::2], there[1::2])))
        self.quarantine = 1.02 * w.max_lease_ms / 1000

    def is_back(self):
        """Looks at the node. Returns whether it is joined again, or too late and not judged any more."""
        if self.back:
            return True
        locks = self.read_locks()
        marker, took = self.node.cli.get(MARKER) or b"", time.monotonic() - self.deleted
        if marker.startswith(b"j"):
            self.back = True
            if took < self.quarantine:
                self.w.fail("S10", "node %d was joined %.2f s after its marker was deleted" % (self.node.index, took))
            return True
        if locks - self.locks:
            self.w.fail("S23", "node %d has no marker, and took %s" % (self.node.index, sorted(locks - self.locks)[:3]))
        self.locks = locks
        if took > self.quarantine + 2 + 5 * self.w.worst_gap:
            self.w.fail("L4", "node %d is not joined %.2f s after its marker was deleted: %s" % (self.node.index, took, marker))
            self.back = True
        return self.back

    def read_locks(self):
        keys = self.node.lock_keys()
        return holds_in({key: value.decode("latin-1") for key, value in zip(keys, self.node.cli.mget(keys) if keys else ()) if value})


def wait_for(w, markers):
    while not all([marker.is_back() for marker in markers]):
        w.pause(0.05)
