# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to keep many locks: LOCKS leases of 10 s at three real Redis servers, held by one daemon for SECONDS, and another client meanwhile.

    make bench-held [LOCKS=100000] [HELD_SECONDS=60] [HELD_TIMEOUT=50ms]

A machine with less than five cores to spare is too slow for the default: its servers answer too late.
Prints CPU in percent of one core, of the daemon and of each server, RISK and LOST that anybody was told, and the latency of LOCK and UNLOCK.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "func"))

from harness import Daemon  # noqa: E402 (the path stands above)
from redis_server import Redis  # noqa: E402
from wire import Client  # noqa: E402

PER_SESSION = 1000
WINDOW = 200
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Cpu:
    def __init__(self, processes):
        self.processes, self.begun = processes, time.monotonic()
        self.before = {name: cpu_seconds(pid) for name, pid in processes.items()}

    def percent(self):
        wall = time.monotonic() - self.begun
        return {name: 100 * (cpu_seconds(pid) - self.before[name]) / wall for name, pid in self.processes.items()}


def hold(daemon, locks):
    """Sessions that hold them; a window of tagged requests at a time."""
    sessions = []
    for first in range(0, locks, PER_SESSION):
        client = Client(daemon.addr)
        sessions.append(client)
        for window in range(first, min(first + PER_SESSION, locks), WINDOW):
            numbers = range(window, min(window + WINDOW, locks))
            client.send(*["@%d LOCK held/%d wait=30s" % (number, number) for number in numbers])
            while sum(line.kind != "!" for line in client.inbox) < len(numbers):
                assert client.fill(30), "no answer"
            refused = [line for line in client.inbox if line.kind not in ("OK", "!")]
            assert not refused, refused[0]
            client.inbox.clear()
    return sessions


def probe(daemon, seconds):
    """LOCK and UNLOCK of one name after the other; returns the milliseconds of each LOCK."""
    took, end, number = [], time.monotonic() + seconds, 0
    with Client(daemon.addr) as client:
        while time.monotonic() < end:
            number += 1
            begun = time.monotonic()
            granted = client.ask("LOCK probe/%d wait=5s" % number).kind == "OK"
            took.append(1000 * (time.monotonic() - begun))
            if granted:
                client.ok("UNLOCK probe/%d" % number)
            time.sleep(0.01)
    return sorted(took)


def stats(daemon):
    with Client(daemon.addr) as client:
        return {row["metric"]: row.num("value") for row in client.ok("STATS").rows}


def main(locks, seconds, timeout):
    servers = [Redis().start() for _ in range(3)]
    daemon = Daemon({"store": "redis", "lease": "10s", "redis": {"nodes": [s.node for s in servers], "timeout": timeout}})
    try:
        daemon.start().joined()
        begun = time.monotonic()
        sessions = hold(daemon, locks)
        print("%d locks taken in %.1f s" % (locks, time.monotonic() - begun))
        cpu = Cpu(dict({"redlockd": daemon.pid}, **{"redis %d" % i: s.process.pid for i, s in enumerate(servers)}))
        before = stats(daemon)
        took = probe(daemon, seconds)
        percent = cpu.percent()
        figures = {name: value - before[name] for name, value in stats(daemon).items()}
        print("held at the start %d and at the end %d; LOST while they were taken %d" % (
            before["locks_held"], before["locks_held"] + figures["locks_held"], before["losses_total"]))
        print("over %d s: %s" % (seconds, ", ".join("%s %.0f %%" % item for item in percent.items())))
        print("renewals %d (%.0f a second), missed %d, RISK %d, LOST %d" % (
            figures["renewals_total"], figures["renewals_total"] / seconds, figures["renewals_missed_total"],
            figures["risks_total"], figures["losses_total"]))
        print("LOCK of another client: %d, p50 %.2f ms, p99 %.2f ms, most %.2f ms" % (
            len(took), took[len(took) // 2], took[len(took) * 99 // 100], took[-1]))
        calls = servers[0].calls()
        print("script calls of server 0 in all: %d, SETs in them: %d" % (calls.get("evalsha", 0), calls.get("set", 0)))
        for client in sessions:
            client.close()
        print("\n".join(line for line in daemon.log().splitlines() if " node" in line and "state=joined was=probing" not in line)[:2000])
        return 1 if before["locks_held"] < locks or figures["risks_total"] or figures["losses_total"] else 0
    finally:
        daemon.dispose()
        for server in servers:
            server.stop()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
