# SPDX-License-Identifier: BSD-2-Clause
"""The load cases. Each plays one load, checks its figures against bounds, and returns them as a line of text. The bounds are explained below."""
import resource
import signal
import statistics
import time

import rig
from attack import Attack
from process import LATE, Skip, user_seconds
from rig import CPUS, ROOMY, Scene, descriptors
from wire import Client

SESSION_MOST = 820  # bytes of a session, 1.5 times the measured figure
LOCK_MOST = {0: 960, 3: 2000}  # bytes of a lock with a name of up to 16 bytes and its rounds, by the number of Redis servers
RENEWAL_MOST = {0: 10, 3: 25}  # µs of processor time of the daemon for one renewal, three times the measured figure; it includes all else that the daemon does
RENEWALS_LEAST = 25000  # fewer renewals are not judged: what else the daemon does would weigh more, and processor time is counted in ticks of 10 ms
ACCEPTED_LEAST = 2000  # sessions a second, a tenth of the figure measured on two busy processors
RATIO_MOST = 3.0  # p99 of well-behaved clients beside a flood, relative to their p99 without it
SEARCHED_US = 20000  # p99 of well-behaved clients beside those that make the daemon search
UNNOTICED_US = 500  # less than that is always permitted: where there are two processors, the clients share theirs with the flood
PAUSE_MOST_MS = 100 if ROOMY else 500  # of a client while the daemon is restarted; where processors are few, the clients take them from it
THINK_MS, CALM_MS = 50, 400  # of clients while the daemon is restarted; with three Redis servers, two processors carry no more than what calm ones ask
MANY = {"limits": {"clients": 20000, "locks": 1000000, "waiting": 1000000, "renewals": 10000000, "stored": "1g"}}


def demand(true, text):
    if not true:
        raise AssertionError(text)


def rate(told):
    return told["n"] / (told["us"] / 1e6)


def percents(percent):
    return " ".join("%s %.0f %%" % item for item in percent.items())


def keep(scene, holder, seconds, others=None):
    """Lets the daemon renew its locks for a while. No lock may be lost. No RISK may be pushed, unless the servers share the processors with the daemon."""
    cpu, before = scene.cpu(), scene.stats()
    if others:
        others.say("begin")
    time.sleep(seconds)
    told = others.ask("end", "mix") if others else {}
    percent, after = cpu.percent(), scene.stats()
    renewals = (after["renewals_total"] - before["renewals_total"]) / seconds
    cost, most = percent["redlockd"] * 1e4 / max(1, renewals), RENEWAL_MOST[len(scene.servers)]
    if renewals * seconds < RENEWALS_LEAST:
        scene.note += ", too few renewals to judge what one costs"
    demand(renewals * seconds < RENEWALS_LEAST or cost <= most, "a renewal costs %.1f us of a processor, more than %d" % (cost, most))
    state = holder.ask("state", "state")
    excused = scene.servers and not ROOMY
    lost = {key: state[key] for key in ("lost", "ended") + (() if excused else ("risk",)) if state[key]}
    demand(not lost, "while %d locks were kept for %g s: %s (renewals missed: %d)" % (
        state["held"], seconds, lost, after["renewals_missed_total"] - before["renewals_missed_total"]))
    if state["risk"]:
        scene.note += ", %d RISK and %d SAFE" % (state["risk"], state["safe"])
    return percent, renewals, told


def stops(count, holders=200):
    """A daemon that renews is stopped for a moment, again and again: no RISK and no LOST is pushed."""
    descriptors(1000)
    with Scene(0, dict(MANY, lease="2s")) as scene:
        holder = scene.generator("hold", holders, count // holders, 4, "60s", "hold/")
        holder.ask("connect", "connected")
        holder.ask("take", "taken")
        for i in range(12):
            time.sleep(0.05 + 0.017 * i)
            scene.daemon.freeze()
            time.sleep(0.1)
            scene.daemon.thaw()
        _, renewals, _ = keep(scene, holder, 1)
        gap = scene.stats()["gap_longest_seconds"] * 1000
        holder.close()
        scene.finish()
    return "%d names, lease 2s, the daemon stopped 12 times for 0.1 s: no name at risk; %.0f renewals/s, longest gap %d ms" % (count, renewals, gap)


def restarts(clients, requests, times, redis=0, think_ms=THINK_MS, most_ms=PAUSE_MOST_MS):
    """The daemon is restarted in place while clients lock and unlock. None may be refused, hung up or answered twice."""
    descriptors(clients + 200)
    with Scene(redis, MANY) as scene:
        mix = scene.generator("mix", clients, think_ms, "mix/", rig.seed)
        mix.ask("connect", "connected")
        mix.say("begin")
        time.sleep(1)  # all of them think before they ask
        told, pauses = {"n": 0, "wrong": 0}, []
        for i in range(times):
            mix.say("begin")
            mark = scene.daemon.log_size()
            scene.daemon.send_signal(signal.SIGUSR2)
            scene.daemon.logged("notice restarted ", mark, 60)
            while True:
                time.sleep(0.3)
                some = mix.ask("end", "mix")  # the generator goes on counting
                if told["n"] + some["n"] >= requests * (i + 1) / times:
                    break
            pauses.append(some["max_us"] / 1e3)
            for key in told:
                told[key] += some[key]
        mix.say("begin")
        time.sleep(1)
        calm = mix.ask("end", "mix")
        mix.close()
        scene.finish()
    said = "%d clients, %d restarts: %d requests, %d failures; the longest took %.0f ms (%s), without a restart %.0f ms" % (
        clients, times, told["n"], told["wrong"], max(pauses), " ".join("%.0f" % pause for pause in pauses), calm["max_us"] / 1e3)
    demand(told["wrong"] == 0, said)
    demand(max(pauses) <= most_ms, said)
    return said


def left_in_redis(scene):
    return sum(len(server.lock_keys()) for server in scene.servers)


def sessions(count, seconds, redis=0):
    """Each session takes one lock and keeps it. Then all close at one moment."""
    descriptors(count + 200)
    with Scene(redis, MANY) as scene:
        holder = scene.generator("hold", count, 1, 0, "30s", "hold/")
        connected = holder.ask("connect", "connected")
        session_kib = scene.rss() - scene.empty_kib
        taken = holder.ask("take", "taken")
        demand(taken["refused"] == 0, "%d of %d LOCKs were refused" % (taken["refused"], count))
        percent, renewals, _ = keep(scene, holder, seconds)
        all_kib = scene.rss() - scene.empty_kib
        holder.ask("close", "closed")
        freed = scene.until("sessions", 1) + scene.until("locks_held", 0) + scene.until("outstanding_releases", 0)
        demand(left_in_redis(scene) == 0, "%d keys are left in Redis" % left_in_redis(scene))
        scene.finish()
    demand(rate(connected) >= ACCEPTED_LEAST, "%.0f sessions were accepted a second, fewer than %d" % (rate(connected), ACCEPTED_LEAST))
    session, lock = session_kib * 1024 / count, (all_kib - session_kib) * 1024 / count
    demand(session <= SESSION_MOST, "a session costs %.0f bytes, more than %d" % (session, SESSION_MOST))
    demand(lock <= LOCK_MOST[redis], "a lock costs %.0f bytes, more than %d" % (lock, LOCK_MOST[redis]))
    return "%d sessions: %.0f accepted/s, %.0f grants/s, %.0f bytes a session, %.0f a lock; kept %g s: %.0f renewals/s, %s%s; freed in %.2f s" % (
        count, rate(connected), rate(taken), session, lock, seconds, renewals, percents(percent), scene.note, freed)


def held(count, seconds, redis, lease, holders=100):
    """Few sessions hold many names, beside other clients."""
    descriptors(1000)
    with Scene(redis, dict(MANY, lease=lease)) as scene:
        holder = scene.generator("hold", holders, count // holders, 4 if redis == 0 else 8, "60s", "hold/")
        holder.ask("connect", "connected")
        before_kib = scene.rss()
        others = scene.generator("mix", 4, 10, "mix/", rig.seed)
        others.ask("connect", "connected")
        taken = holder.ask("take", "taken", 300)
        demand(taken["refused"] == 0, "%d of %d LOCKs were refused" % (taken["refused"], count))
        percent, renewals, told = keep(scene, holder, seconds, others)
        lock = (scene.rss() - before_kib) * 1024 / count
        demand(told["wrong"] == 0 and told["n"] > 0, "another client was refused %d times in %d" % (told["wrong"], told["n"]))
        freed = holder.ask("free", "freed", 300)
        demand(freed["refused"] == 0, "%d of %d UNLOCKs were refused" % (freed["refused"], count))
        others.close()
        holder.close()
        scene.until("outstanding_releases", 0)
        demand(left_in_redis(scene) == 0, "%d keys are left in Redis" % left_in_redis(scene))
        scene.finish()
    demand(lock <= LOCK_MOST[redis], "a lock costs %.0f bytes, more than %d" % (lock, LOCK_MOST[redis]))
    return "%d names, lease %s: taken in %.1f s, %.0f bytes each; kept %g s: %.0f renewals/s, %s%s; another client p50 %.2f p99 %.2f ms; freed in %.1f s" % (
        count, lease, taken["us"] / 1e6, lock, seconds, renewals, percents(percent), scene.note, told["p50_us"] / 1e3, told["p99_us"] / 1e3,
        freed["us"] / 1e6)


def ended(count, holders, most):
    """Sessions that hold many names close at one moment, and the daemon is told to end at the next. The bound is on its processor time, since a machine may
    need longer to take so much memory back."""
    descriptors(2000)
    with Scene(0, dict(MANY, lease="30s")) as scene:
        holder = scene.generator("hold", holders, count // holders, 4, "60s", "hold/")
        holder.ask("connect", "connected")
        demand(holder.ask("take", "taken", 300)["refused"] == 0, "LOCKs were refused")
        holder.ask("close", "closed")
        begun, spent = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime + user_seconds(scene.daemon.pid)
        scene.finish(120)
        took, spent = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - spent
    demand(spent <= most, "the daemon needed %.1f s of a processor to end, more than %g" % (spent, most))
    return "%d names of sessions that closed at one moment: the daemon ended in %.1f s, %.1f s of a processor" % (count, took, spent)


def asked(client, line, seconds):
    """Sends a request again as soon as it is answered, for so many seconds. Returns (how often, the median of the seconds until the answer)."""
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        client.ok(line, 60)
        took.append(time.monotonic() - begun)
    return len(took), statistics.median(took)


def lists(count, seconds, lease, holders, most_ms=None):
    """One client lists many names without a pause, beside other clients."""
    descriptors(2000)
    with Scene(0, dict(MANY, lease=lease)) as scene:
        holder = scene.generator("hold", holders, count // holders, 4, "60s", "hold/")
        holder.ask("connect", "connected")
        demand(holder.ask("take", "taken", 300)["refused"] == 0, "LOCKs were refused")
        others = scene.generator("mix", 4, 10, "mix/", rig.seed)
        others.ask("connect", "connected")
        others.say("begin")
        time.sleep(seconds)
        alone, cpu, before = others.ask("end", "mix"), scene.cpu(), scene.stats()
        with Client(scene.daemon.addr) as client:
            others.say("begin")
            answers, median = asked(client, "LIST", seconds)
            beside, percent, after = others.ask("end", "mix"), cpu.percent(), scene.stats()
        state = holder.ask("state", "state")
        demand(not state["risk"] and not state["lost"], "%d RISK and %d LOST beside LIST" % (state["risk"], state["lost"]))
        holder.ask("free", "freed", 300)
        scene.until("outstanding_releases", 0)
        demand(beside["wrong"] == 0 and beside["n"] > 0, "another client was refused %d times in %d" % (beside["wrong"], beside["n"]))
        others.close()
        holder.close()
        scene.finish()
    demand(most_ms is None or beside["p99_us"] <= 1e3 * most_ms, "another client's p99 is %.1f ms" % (beside["p99_us"] / 1e3))
    return ("%d names, lease %s, one client that lists them %d times in %g s, %.0f ms each: "
            "another client p50 %.2f p99 %.2f ms, alone %.2f and %.2f; %.0f renewals/s, %s") % (
        count, lease, answers, seconds, median * 1e3, beside["p50_us"] / 1e3, beside["p99_us"] / 1e3, alone["p50_us"] / 1e3, alone["p99_us"] / 1e3,
        (after["renewals_total"] - before["renewals_total"]) / seconds, percents(percent))


def burst(count, wait, redis=3):
    """Many different names are locked at one moment."""
    descriptors(1000)
    with Scene(redis, MANY) as scene:
        holder = scene.generator("hold", 10, count // 10, 0, wait, "burst/")
        holder.ask("connect", "connected")
        taken = holder.ask("take", "taken")
        demand(taken["refused"] == 0, "%d of %d LOCKs were refused" % (taken["refused"], count))
        holder.ask("close", "closed")
        scene.until("outstanding_releases", 0)
        demand(left_in_redis(scene) == 0, "%d keys are left in Redis" % left_in_redis(scene))
        scene.finish()
    return "%d LOCKs at once, wait=%s: all granted in %.2f s, p50 %.0f p99 %.0f ms" % (
        count, wait, taken["us"] / 1e6, taken["p50_us"] / 1e3, taken["p99_us"] / 1e3)


class Flood:
    """64 well-behaved clients, in turn alone and beside a flood. The medians of the intervals are compared."""

    def __init__(self, kind, width, tree, slowed, attacks=False):
        if len(CPUS) < 2:
            raise Skip("there is one processor, which the flood and the daemon would share")
        descriptors(width + 500)
        self.kind, self.slowed = kind, slowed
        self.scene = Scene(0, tree, cpu=CPUS[0])
        if attacks:
            self.flood = Attack(self.scene.daemon.addr, CPUS[1])
            self.scene.callback(self.flood.close)
        else:
            self.flood = self.scene.generator("flood", kind, width, rude=True, cpu=CPUS[1])
        self.mix = self.scene.generator("mix", 64, 20, "mix/", rig.seed, cpu=CPUS[1])
        self.mix.ask("connect", "connected")
        if slowed:
            self.slow_down(width)
        self.alone, self.beside, self.told, self.rss_kib, self.wrong = [], [], [], 0, 0

    def slow_down(self, width):
        """Slows the flood to half of what the daemon can take: beyond that the test would measure the processor."""
        begun = time.monotonic()
        self.flood.ask("go", "going")
        time.sleep(0.4)
        poured = self.flood.ask("stop", "flood")["poured"] / (time.monotonic() - begun)
        self.flood.close()
        self.flood = self.scene.generator("flood", self.kind, width, max(1, int(poured / 2)), rude=True, cpu=CPUS[1])

    def calm(self):
        """Waits until the daemon has processor time again: after a flood, and after the wave if a flood comes in one wave."""
        for _ in range(50):
            cpu = self.scene.cpu()
            time.sleep(0.1)
            if cpu.percent()["redlockd"] < 50:
                return

    def interval(self, seconds, into):
        self.mix.say("begin")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.05)
            self.rss_kib = max(self.rss_kib, self.scene.rss())
        told = self.mix.ask("end", "mix")
        demand(told["n"] > 0, "the well-behaved clients are not served at all")
        self.wrong += told["wrong"]
        into.append(told)

    def play(self, intervals, seconds):
        for _ in range(intervals):
            self.calm()
            self.interval(seconds, self.alone)
            self.flood.ask("go", "going")
            time.sleep(0.2)
            if self.kind == "deaf":
                self.calm()
            self.interval(seconds, self.beside)
            self.told.append(self.flood.ask("stop", "flood"))

    def median(self, figure, of):
        return statistics.median(told[figure] for told in of)

    def ratio(self):
        return self.median("p99_us", self.beside) / max(1, self.median("p99_us", self.alone))

    def is_borne(self, most):
        return self.ratio() <= most or self.median("p99_us", self.beside) <= UNNOTICED_US

    def close(self):
        self.mix.close()
        self.flood.close()
        try:
            self.scene.until("sessions", 1)
            self.scene.finish()
        finally:
            self.scene.close()


def flood(kind, width, intervals, seconds, most=RATIO_MOST, mib=None, tree=None, slowed=False, attempts=3):
    """Takes the best of some attempts: other work of the machine makes the ratio worse, never better."""
    best = None
    for _ in range(attempts):
        f = Flood(kind, width, tree or {}, slowed)
        try:
            f.play(intervals, seconds)
        finally:
            f.close()
        demand(f.wrong == 0, "%d answers to well-behaved clients were wrong" % f.wrong)
        demand(mib is None or f.rss_kib <= 1024 * mib, "the daemon has grown to %d KiB, more than %s MiB" % (f.rss_kib, mib))
        if not best or f.ratio() < best.ratio():
            best = f
        if best.is_borne(most):
            break
    total = {key: sum(told[key] for told in best.told) for key in best.told[0]}
    said = ("%s, %d wide, beside 64 clients: p50 %.0f p99 %.0f us, alone %.0f and %.0f: p99 times %.2f; "
            "%.0f connections/s, %d refused, %d closed, %.0f MB poured, daemon %.0f MiB") % (
        kind, width, best.median("p50_us", best.beside), best.median("p99_us", best.beside), best.median("p50_us", best.alone),
        best.median("p99_us", best.alone), best.ratio(), total["dialled"] / (total["us"] / 1e6), total["refused"], total["closed"],
        total["bytes_out"] / 1e6, best.rss_kib / 1024)
    demand(best.is_borne(most), "%s; at most %g was promised" % (said, most))
    return said


def searches(intervals, seconds, attempts=3, most_us=SEARCHED_US):
    """Well-behaved clients beside a few that make the daemon search. On a machine that is busy with others, what they have alone counts."""
    best = None
    for _ in range(attempts):
        f = Flood("searches", 0, {"limits": {"waiting": 4096}}, False, attacks=True)
        try:
            f.play(intervals, seconds)
        finally:
            f.close()
        demand(f.wrong == 0, "%d answers to well-behaved clients were wrong" % f.wrong)
        if not best or f.median("p99_us", f.beside) < best.median("p99_us", best.beside):
            best = f
        beside, alone = best.median("p99_us", best.beside), best.median("p99_us", best.alone)
        if beside <= max(most_us, RATIO_MOST * alone):
            break
    said = "64 clients beside 500 owners that wait for each other, and 1000 readers: p99 %.1f ms, alone %.1f ms; %d requests of theirs" % (
        beside / 1e3, alone / 1e3, best.told[-1]["asked"])
    demand(beside <= max(most_us, RATIO_MOST * alone), said + "; at most %g ms was promised" % (most_us / 1e3))
    return said


# mib: silent sessions need little memory, refused ones as well. A session that sends much needs what may stay unsent to it: 256 KiB and one answer.
FLOODS = {
    "churn": dict(kind="churn", width=1, mib=16),
    "crowd": dict(kind="crowd", width=12000, mib=64),
    "garbage": dict(kind="garbage", width=16, mib=32, slowed=True),
    "greedy": dict(kind="greedy", width=4, mib=32, slowed=True),
    "deaf": dict(kind="deaf", width=300, mib=300),
}

FULL = {
    "sessions-memory": lambda: sessions(10000, 20),
    "sessions-redis": lambda: sessions(10000, 20, redis=3),
    "stops": lambda: stops(50000),
    "restarts": lambda: restarts(1000, 200000, 5),
    "restarts-redis": lambda: restarts(1000, 200000, 5, redis=3, think_ms=CALM_MS),
    "restarts-redis-busy": lambda: restarts(1000, 200000, 5, redis=3),
    "names": lambda: held(1000000, 30, 0, "30s", holders=1000),
    "names-10s": lambda: held(500000, 30, 0, "10s", holders=500),
    "lists": lambda: lists(1000000, 10, "30s", holders=1000, most_ms=20),
    "ended": lambda: ended(1000000, 1000, 12),
    "held": lambda: held(100000, 60, 3, "10s"),
    "burst": lambda: burst(10000, "0"),
    "burst-wait": lambda: burst(10000, "30s"),
    "searches": lambda: searches(5, 1.0),
    **{"flood-" + name: (lambda options=options: flood(intervals=7, seconds=1.0, **options)) for name, options in FLOODS.items()},
}

# Part of every check, also on a busy machine: these bounds tell soon from never.
LOOSE = dict(intervals=2, seconds=0.4, most=20.0)
SHORT = {
    "sessions-memory": lambda: sessions(2000, 1),
    "stops": lambda: stops(50000),
    "restarts": lambda: restarts(200, 10000, 3, most_ms=LATE * 1000),
    "names": lambda: held(50000, 4, 0, "5s", holders=200),
    "lists": lambda: lists(50000, 2, "10s", holders=200),
    "burst-wait": lambda: burst(1000, "30s"),
    "searches": lambda: searches(2, 0.5, most_us=LATE * 1e6 / 8),
    "flood-crowd": lambda: flood(**dict(FLOODS["crowd"], width=600, tree={"limits": {"clients": 400}}, **LOOSE)),
    "flood-deaf": lambda: flood(**dict(FLOODS["deaf"], width=50, **LOOSE)),
}
