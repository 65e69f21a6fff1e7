#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
storm.py build-folder [seconds [seed]]: eight threads of clients of listen.api, whose requests are drawn: sessions, locks that wait, streams of events, requests
that are cut by FIN and by RST, and meanwhile KILL, BREAK, RESUME by the line protocol, reloads and restarts by SIGUSR2. What must hold:
a token is granted to one owner of one session; when all sessions have ended, every name is free and no descriptor is left over; the daemon lives, and no
sanitizer reports. The last line is the verdict.
"""
import collections
import contextlib
import http.client
import os
import random
import shutil
import signal
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

os.environ.setdefault("REDLOCKD_BUILD", os.path.abspath(sys.argv[1]))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib"), os.path.join(ROOT, "tests", "func")]

from daemon import Daemon  # noqa: E402
from process import free_port, private, temp_folder, until  # noqa: E402
from test_api import TOKEN, Api  # noqa: E402
from wire import Client  # noqa: E402

THREADS, LATEST = 8, 12                 # of the sessions, those that came last are used
NAMES = ["n%d" % i for i in range(6)]
GRACES = ("0s", "2s", "5s")             # the longest, and the longest heartbeat, bound how long an end may take
HEARTBEATS = ("2s", "5s")
FREE_WITHIN = 60


class Storm:
    def __init__(self, daemon, api, seconds):
        self.daemon, self.api, self.ends = daemon, api, time.monotonic() + seconds
        self.sessions, self.granted, self.doubled = [], {}, []
        self.lock = threading.Lock()
        self.counts = collections.Counter()

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def grant(self, name, fence, who):
        with self.lock:
            if self.granted.setdefault((name, fence), who) != who:
                self.doubled.append((name, fence, self.granted[name, fence], who))

    def session(self, draw):
        """A session of late, or a new one."""
        if not self.sessions or draw.random() < .03:
            made = self.api.session(heartbeat=draw.choice(HEARTBEATS), grace=draw.choice(GRACES))
            with self.lock:
                self.sessions.append(made)
        with self.lock:
            return draw.choice(self.sessions[-LATEST:])

    # --- what a client asks for

    def ask_lock(self, draw, session, name, owner):
        wait = {"wait": draw.choice(("50ms", "300ms", "2s"))} if draw.random() < .7 else {}
        answer = session.post(name, **owner, **wait)
        self.count("POST %d" % answer.status)
        if answer.status == 200:
            self.grant(name, answer.json["fence"], (session.path, owner.get("owner")))
        elif answer.status == 410:
            with self.lock, contextlib.suppress(ValueError):
                self.sessions.remove(session)

    def cut_request(self, draw, session, name, owner):
        sock = self.api.begin(session.lock_path(name), {**owner, "wait": draw.choice(("10s", "100ms"))})
        time.sleep(draw.random() * draw.choice((0, .05)))
        self.cut(draw, sock)

    def cut_stream(self, draw, session, *_):
        sock = self.api.connect(2)
        sock.sendall(b"GET %s/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % (session.path.encode(), TOKEN.encode()))
        if draw.random() < .7:
            sock.recv(100)
        self.cut(draw, sock)

    def cut(self, draw, sock):
        self.count("cut")
        if draw.random() < .5:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()

    def send_noise(self, draw, *_):
        with contextlib.closing(self.api.connect(2)) as sock:
            sock.sendall(draw.randbytes(draw.randrange(1, 300)))

    def ask_rest(self, draw, session, name, owner):
        query = "?owner=" + owner["owner"] if owner else ""
        done = draw.choice((lambda: session.delete(name, query), lambda: session.delete(name, query), lambda: session.get(name, query),
                            lambda: session.put(name, **owner), session.ping))()
        self.count("other %d" % done.status)

    # --- what happens to all of them

    def force(self, draw, session, name, _):
        number, _, secret = session.path.rpartition("/")[2].partition("-")
        with Client(self.daemon.addr) as client:
            request = draw.choice(("KILL session=" + number, "BREAK " + name, "RESUME %s %s" % (number, secret)))
            self.count("%s %s" % (request.split(" ")[0], client.ask(request).kind))

    def end_session(self, _, session, *__):
        self.count("DELETE %d" % session.end().status)

    def restart(self, draw, *_):
        if draw.random() < .5:
            self.daemon.reload()
        else:
            self.daemon.send_signal(signal.SIGUSR2)
            time.sleep(.2)
        self.count("restart or reload")

    def thread(self, draw, is_first):
        common = [self.ask_lock] * 25 + [self.cut_request] * 20 + [self.ask_rest] * 30 + [self.cut_stream] * 5 + [self.end_session] * 2 + [self.send_noise] * 2
        rare = [self.force] * 4 + [self.restart] * 2 if is_first else []
        while time.monotonic() < self.ends:
            try:
                owner = draw.choice(({}, {"owner": "a"}, {"owner": "b"}))
                draw.choice(common + rare)(draw, self.session(draw), draw.choice(NAMES), owner)
            except (OSError, http.client.HTTPException) as error:  # a restart ends connections
                self.count(type(error).__name__)
            except AssertionError:  # no further session: those of this peer are used up for a moment
                self.count("no session")


def free_of(client):
    return all(client.ask("SHOW " + name)["free"] == "yes" for name in NAMES)


def aftermath(storm, daemon, descriptors):
    """What is wrong when the storm is over."""
    for session in storm.sessions:
        with contextlib.suppress(OSError, http.client.HTTPException):
            session.end()
    with Client(daemon.addr) as client:
        until(lambda: free_of(client), "all names are free", FREE_WITHIN)
        until(lambda: descriptors_of(daemon) <= descriptors + 1, "no descriptor is left over", FREE_WITHIN)
    if storm.doubled:
        yield "one token is granted twice: %r" % storm.doubled[:3]
    if not storm.counts["POST 200"] or not storm.counts["restart or reload"]:
        yield "the storm was a calm: %r" % storm.counts


def descriptors_of(daemon):
    return len(os.listdir("/proc/%d/fd" % daemon.pid))


def main():
    seconds, seed = [int(text) for text in sys.argv[2:] + ["60", "1"][len(sys.argv[2:]):]]
    api = Api(("127.0.0.1", free_port()))
    token = os.path.join(temp_folder(), "token")
    with open(token, "w", encoding="ascii", opener=private) as file:
        file.write(TOKEN + "\n")
    daemon = Daemon({"listen": {"api": api.listen}, "api": {"token_file": token}, "lease": "1s"})
    try:
        daemon.start().joined()
        descriptors, storm = descriptors_of(daemon), Storm(daemon, api, seconds)
        threads = [threading.Thread(target=storm.thread, args=(random.Random("%d %d" % (seed, i)), i == 0)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wrong = list(aftermath(storm, daemon, descriptors))
        print(", ".join("%s: %d" % item for item in sorted(storm.counts.items())))
    finally:
        daemon.stop()  # and fails if it has ended by itself, or a sanitizer reports
        shutil.rmtree(os.path.dirname(token))
    for text in wrong:
        print(text)
    print("api-storm: %s" % ("FAILED, seed %d" % seed if wrong else "passed"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
