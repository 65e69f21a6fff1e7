# SPDX-License-Identifier: BSD-2-Clause
"""
What callers saw of random requests, and whether it can be right.

A caller knows that it has a lock from when the call returned until it asks for the release, or until it heard of the loss. These times are shorter than those
of the true holds. So of one name no two of them may overlap, of a semaphore not more than its limit; and in the order of time fences grow.
"""
import bisect
import threading
import time

NAMES = ("n1", "n2", "n3", "n4", "n5")
LIMIT = 2  # of the semaphore "s"


class History:
    def __init__(self):
        self.lock, self.rows, self.grants, self.losses, self.errors = threading.Lock(), [], 0, 0, []

    def once(self, adapter, handle, chance):
        """One random request, and the release of what it got."""
        what, args = self.draw(chance)
        call = adapter.call(what, lock=handle, **args)
        if chance.random() < 0.15:
            time.sleep(chance.random() * 0.02)
            adapter.do("abort", call=call)
        row = adapter.result(call, 60)
        if "ok" not in row:
            if row["error"] not in ("Busy", "LockTimeout", "Aborted", "NoQuorum", "LockLost", "Deadlock", "Disconnected", "Draining"):
                self.errors.append(row)
            return
        begun = time.monotonic()
        time.sleep(chance.random() * 0.005)
        ended = time.monotonic()
        self.release(adapter, handle, row["ok"], begun, ended)

    @staticmethod
    def draw(chance):
        kind, wait = chance.random(), chance.choice((0, 0.05, 0.5, 3))
        if kind < 0.6:
            return "lock", {"name": chance.choice(NAMES), "wait": wait}
        if kind < 0.75:
            return "locks", {"names": chance.sample(NAMES, 2), "wait": wait}
        if kind < 0.85:
            return "any", {"names": chance.sample(NAMES, 2), "wait": wait}
        return "semaphore", {"name": "s", "limit": LIMIT, "wait": wait}

    def release(self, adapter, handle, granted, begun, ended):
        done = adapter.do("unlock", 30, lock=handle)
        lost = next((row["seen"] for row in adapter.events if row["event"] == "lost" and row["lock"] == handle), None)
        if "ok" not in done and done["error"] not in ("LockLost", "Disconnected"):  # on a busy machine an answer may take longer than five seconds
            self.errors.append(done)
        with self.lock:
            self.grants += 1
            if "ok" not in done:
                self.losses += 1
                return  # since when is not known
            for name, fence in granted["fences"].items():
                self.rows.append((name, granted["permit"] if name == "s" else None, begun, min(ended, lost or ended), fence))

    def check(self):
        """Raises AssertionError if this cannot have happened."""
        assert not self.errors, self.errors[:5]
        for name in {row[0] for row in self.rows}:
            rows = sorted((row for row in self.rows if row[0] == name), key=lambda row: row[2])
            (self.check_permits if name == "s" else self.check_lock)(rows)

    @staticmethod
    def check_lock(rows):
        for one, other in zip(rows, rows[1:]):
            assert one[3] <= other[2], "two have it at once: %s %s" % (one, other)
            assert one[4] < other[4], "the later fence is not larger: %s %s" % (one, other)

    def check_permits(self, rows):
        ends = []
        for row in rows:
            del ends[:bisect.bisect_right(ends, row[2])]
            bisect.insort(ends, row[3])
            assert len(ends) <= LIMIT, "more than the limit have a permit: %s" % (row,)
        for slot in {row[1] for row in rows}:
            self.check_lock([row for row in rows if row[1] == slot])
