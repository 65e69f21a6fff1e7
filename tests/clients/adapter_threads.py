# SPDX-License-Identifier: BSD-2-Clause
"""The adapter of redlockd for threads: JSON lines in, JSON lines out (README.md)."""
import gc
import json
import os
import sys
import threading
import time
import warnings

import redlockd
from redlockd import _engine
import planted

CAN = ["fork", "fork-ask", "finaliser", "preload", "threads"]
clients, locks, calls, aborted, waiting, out = {}, {}, {}, set(), {}, threading.Lock()


class Aborted(BaseException):
    """What abort raises in the thread of a call."""


def interruptible(wait):
    """A function that waits, and raises Aborted afterwards if that was asked for."""
    def waited(*args):
        if isinstance(args[0], _engine.Engine):
            waiting[threading.current_thread()] = args
        result = wait(*args)
        if threading.current_thread() in aborted:
            aborted.discard(threading.current_thread())
            raise Aborted
        return result
    return waited


def say(row):
    with out:
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


def told(kind):
    def tell(lock):
        name = next((key for key, value in locks.items() if value is lock), None)
        say({"event": kind, "lock": name, "name": lock.name, "reason": lock.reason, "at": time.monotonic()})
    return tell


def watch(handle, lock):
    """Says when lock.lost is set."""
    locks[handle] = lock
    event = lock.lost

    def wait():
        event.wait()
        if locks.get(handle) is lock:
            say({"event": "lost", "lock": handle, "name": lock.name, "reason": lock.reason, "at": time.monotonic()})
    threading.Thread(target=wait, daemon=True).start()


class Failed(Exception):
    """What a function of once() raises."""


def told_of(last):
    """An outcome of once()."""
    if last is None:
        return {"ran": False}
    return {"ran": True, "host": last.host, "began": last.began.strftime("%Y-%m-%dT%H:%M:%SZ"), "took": last.took, "status": last.status, "next": last.next}


def state(lock):
    return {"held": lock.locked(), "lost": lock.lost.is_set(), "reason": lock.reason, "remaining": lock.remaining, "fence": lock.fence}


def acquired(handle, lock):
    lock.__enter__()
    watch(handle, lock)
    return {"name": lock.name, "fence": lock.fence, "fences": lock.fences, "permit": lock.permit, "remaining": lock.remaining}


OPTIONS = ("wait", "ttl", "shared", "note", "trace", "priority")


def client_of(a):
    return clients[a.get("client", "c")]


def options(a):
    return {key: a[key] for key in OPTIONS if key in a}


class Calls:
    """What can be asked; a is the row."""

    def connect(self, a):
        given = {key: a[key] for key in ("label", "grace", "heartbeat", "user", "secret", "timeout") if key in a}
        clients[a.get("client", "c")] = redlockd.connect(a.get("address"), on_risk=told("risk"), **given)

    def lock(self, a):
        return acquired(a["lock"], client_of(a).lock(a["name"], **options(a)))

    def locks(self, a):
        return acquired(a["lock"], client_of(a).locks(a["names"], **options(a)))

    def any(self, a):
        return acquired(a["lock"], client_of(a).any_lock(a["names"], **options(a)))

    def semaphore(self, a):
        return acquired(a["lock"], client_of(a).semaphore(a["name"], a["limit"], **options(a)))

    def unlock(self, a):
        locks.pop(a["lock"]).release(keep=a.get("keep", 0), sync=a.get("sync", False))

    def ensure(self, a):
        return {"remaining": locks[a["lock"]].ensure(a.get("seconds", 0))}

    def extend(self, a):
        return {"remaining": locks[a["lock"]].extend(a.get("ttl"))}

    def state(self, a):
        return state(locks[a["lock"]])

    def rate(self, a):
        rate = client_of(a).rate(a["name"], a["limit"], a["per"], cost=a.get("cost", 1), wait=a.get("wait", 0))
        return {"left": rate.left, "reset": rate.reset}

    def defer(self, a):
        return {"id": client_of(a).defer(a["queue"], a["payload"], delay=a.get("delay", 0), lock=a.get("with"), id=a.get("job"))}

    def take(self, a):
        job = client_of(a).job(a["queue"], wait=a.get("wait"), ttl=a.get("ttl"))
        watch(a["lock"], job)
        return {"id": job.id, "payload": job.payload.decode("utf-8", "surrogateescape"), "attempt": job.attempt, "fence": job.fence}

    def done(self, a):
        locks.pop(a["lock"]).done()

    def retry(self, a):
        locks.pop(a["lock"]).retry(a.get("delay", 0), failed=a.get("failed", True))

    def once(self, a):
        def function():
            time.sleep(a.get("lasts", 0))
            if a.get("fails"):
                raise Failed
        return {"ran": client_of(a).once(a["name"], a["every"], function)}

    def status(self, a):
        return told_of(client_of(a).once_status(a["name"]))

    def drop(self, a):
        """Lets the last reference to a lock go."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            locks[a["lock"]].lost.set()  # ends the thread that waits for it
            time.sleep(0.05)
            del locks[a["lock"]]
            gc.collect()
            time.sleep(0.05)
        return {"warned": any(issubclass(one.category, ResourceWarning) for one in caught)}

    def fork(self, a):
        """Says what a child sees of a lock, and with ask what becomes of a lock that the child asks for."""
        readable, writable = os.pipe()
        pid = os.fork()
        if not pid:
            seen = state(locks[a["lock"]])
            if "ask" in a:
                with client_of(a).lock(a["ask"], wait=0) as lock:
                    seen["asked"] = lock.fence
            os.write(writable, json.dumps(seen).encode())
            os._exit(0)
        os.close(writable)
        with open(readable, "rb") as pipe:
            seen = json.loads(pipe.read() or "null")
        os.waitpid(pid, 0)
        return seen

    def abort(self, a):
        """Interrupts the thread of a call where it waits, as a signal does with the main thread."""
        thread, done = calls[a["call"]]
        aborted.add(thread)
        pause = 0.005
        while not done.wait(pause):
            pause = min(2 * pause, 0.5)
            engine, request = waiting.get(thread, (None, None))
            if engine:
                with engine.mutex:
                    gate = engine.gates.pop(request, None)
                    if gate:
                        gate.release()
                    engine._ring()

    def close(self, a):
        clients.pop(a.get("client", "c")).close()

    def reset(self, a):
        locks.clear()
        for client in list(clients.values()):
            client.close()
        clients.clear()


def run(a, done):
    row = {"id": a["id"]}
    try:
        row["ok"] = getattr(Calls, a["do"])(Calls(), a)
    except Aborted:
        row["error"] = "Aborted"
    except Exception as error:
        row.update(error=type(error).__name__, text=str(error), **{key: getattr(error, key) for key in ("code", "name", "reason", "holder", "retry_after", "trace")
                                                                   if hasattr(error, key)})
    aborted.discard(threading.current_thread())
    waiting.pop(threading.current_thread(), None)
    done.set()
    say(row)


def main():
    warnings.simplefilter("ignore")
    planted.plant()
    _engine._wait_for, _engine.Engine._look = interruptible(_engine._wait_for), interruptible(_engine.Engine._look)
    say({"id": "hello", "can": CAN})
    for line in sys.stdin:
        a, done = json.loads(line), threading.Event()
        thread = threading.Thread(target=run, args=(a, done), daemon=True)
        calls[a["id"]] = thread, done
        thread.start()


if __name__ == "__main__":
    main()
