# SPDX-License-Identifier: BSD-2-Clause
"""The adapter of redlockd.aio: JSON lines in, JSON lines out (README.md)."""
import asyncio
import gc
import json
import os
import sys
import time
import warnings

import redlockd.aio
import planted

CAN = ["fork", "finaliser", "preload", "once-ends", "once-left"]
OPTIONS = ("wait", "ttl", "shared", "note", "trace", "priority")
clients, locks, calls, watches = {}, {}, {}, set()


def say(row):
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def at_risk(lock):
    name = next((key for key, value in locks.items() if value is lock), None)
    say({"event": "risk", "lock": name, "name": lock.name, "at": time.monotonic()})


def watch(handle, lock):
    """Says when lock.lost is set."""
    locks[handle] = lock

    async def wait(event):
        await event.wait()
        if locks.get(handle) is lock:
            say({"event": "lost", "lock": handle, "name": lock.name, "reason": lock.reason, "at": time.monotonic()})
    task = asyncio.ensure_future(wait(lock.lost))
    watches.add(task)
    task.add_done_callback(watches.discard)


class Failed(Exception):
    """What a function of once() raises."""


def told_of(last):
    """An outcome of once()."""
    if last is None:
        return {"ran": False}
    return {"ran": True, "host": last.host, "began": last.began.strftime("%Y-%m-%dT%H:%M:%SZ"), "took": last.took, "status": last.status, "next": last.next}


def state(lock):
    return {"held": lock.locked(), "lost": lock.lost.is_set(), "reason": lock.reason, "remaining": lock.remaining, "fence": lock.fence}


async def acquired(handle, lock):
    await lock.__aenter__()
    watch(handle, lock)
    return {"name": lock.name, "fence": lock.fence, "fences": lock.fences, "permit": lock.permit, "remaining": lock.remaining}


def client_of(a):
    return clients[a.get("client", "c")]


def options(a):
    return {key: a[key] for key in OPTIONS if key in a}


class Calls:
    """What can be asked; a is the row."""

    async def connect(self, a):
        given = {key: a[key] for key in ("label", "grace", "heartbeat", "user", "secret", "timeout") if key in a}
        clients[a.get("client", "c")] = await redlockd.aio.connect(a.get("address"), on_risk=at_risk, **given)

    async def lock(self, a):
        return await acquired(a["lock"], client_of(a).lock(a["name"], **options(a)))

    async def locks(self, a):
        return await acquired(a["lock"], client_of(a).locks(a["names"], **options(a)))

    async def any(self, a):
        return await acquired(a["lock"], client_of(a).any_lock(a["names"], **options(a)))

    async def semaphore(self, a):
        return await acquired(a["lock"], client_of(a).semaphore(a["name"], a["limit"], **options(a)))

    async def unlock(self, a):
        await locks.pop(a["lock"]).release(keep=a.get("keep", 0), sync=a.get("sync", False))

    async def ensure(self, a):
        return {"remaining": await locks[a["lock"]].ensure(a.get("seconds", 0))}

    async def extend(self, a):
        return {"remaining": await locks[a["lock"]].extend(a.get("ttl"))}

    async def state(self, a):
        return state(locks[a["lock"]])

    async def rate(self, a):
        rate = await client_of(a).rate(a["name"], a["limit"], a["per"], cost=a.get("cost", 1), wait=a.get("wait", 0))
        return {"left": rate.left, "reset": rate.reset}

    async def defer(self, a):
        return {"id": await client_of(a).defer(a["queue"], a["payload"], delay=a.get("delay", 0), lock=a.get("with"), id=a.get("job"))}

    async def take(self, a):
        job = await client_of(a).job(a["queue"], wait=a.get("wait"), ttl=a.get("ttl"))
        watch(a["lock"], job)
        return {"id": job.id, "payload": job.payload.decode("utf-8", "surrogateescape"), "attempt": job.attempt, "fence": job.fence}

    async def done(self, a):
        await locks.pop(a["lock"]).done()

    async def retry(self, a):
        await locks.pop(a["lock"]).retry(a.get("delay", 0), failed=a.get("failed", True))

    async def once(self, a):
        async def function():
            await asyncio.sleep(a.get("lasts", 0))
            if a.get("fails"):
                raise Failed
        return {"ran": await client_of(a).once(a["name"], a["every"], function)}

    async def status(self, a):
        return told_of(await client_of(a).once_status(a["name"]))

    async def drop(self, a):
        """Lets the last reference to a lock go."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            locks[a["lock"]].lost.set()  # ends the task that waits for it
            await asyncio.sleep(0.05)
            del locks[a["lock"]]
            gc.collect()
            await asyncio.sleep(0.05)
        return {"warned": any(issubclass(one.category, ResourceWarning) for one in caught)}

    async def fork(self, a):
        """Says what a child sees of a lock."""
        readable, writable = os.pipe()
        pid = os.fork()
        if not pid:
            os.write(writable, json.dumps(state(locks[a["lock"]])).encode())
            os._exit(0)
        os.close(writable)
        with open(readable, "rb") as pipe:
            seen = json.loads(pipe.read() or "null")
        os.waitpid(pid, 0)
        return seen

    async def abort(self, a):
        calls[a["call"]].cancel()

    async def close(self, a):
        await clients.pop(a.get("client", "c")).close()

    async def reset(self, a):
        locks.clear()
        for client in list(clients.values()):
            await client.close()
        clients.clear()


async def run(a):
    row = {"id": a["id"]}
    try:
        row["ok"] = await getattr(Calls, a["do"])(Calls(), a)
    except asyncio.CancelledError:
        row["error"] = "Aborted"
    except Exception as error:
        row.update(error=type(error).__name__, text=str(error), **{key: getattr(error, key) for key in ("code", "name", "reason", "holder", "retry_after", "trace")
                                                                   if hasattr(error, key)})
    say(row)


async def main():
    warnings.simplefilter("ignore")
    planted.plant()
    lines = asyncio.StreamReader(limit=2 ** 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    say({"id": "hello", "can": CAN})
    while line := await lines.readline():
        a = json.loads(line)
        calls[a["id"]] = asyncio.ensure_future(run(a))


if __name__ == "__main__":
    asyncio.run(main())
