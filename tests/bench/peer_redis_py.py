#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""redis-py's Lock, driven as build/drive is: peer_redis_py.py PATH CLIENTS. Each client is a thread with a connection and a name of its own."""
import sys
import threading
import time

import redis  # Debian: python3-redis


class Clients:
    def __init__(self, path, count):
        self.going, self.counts, self.took, self.begun = threading.Event(), [0] * count, [], 0.0
        self.idle = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self.work, args=(i, redis.Redis(unix_socket_path=path)), daemon=True) for i in range(count)]

    def work(self, number, server):
        while True:
            self.going.wait()
            while self.going.is_set():
                lock, begun = server.lock("bench/%d" % number, timeout=10), time.monotonic()
                lock.acquire()
                self.took.append(time.monotonic() - begun)
                lock.release()
                self.counts[number] += 1
            self.idle.release()

    def begin(self):
        self.counts, self.took, self.begun = [0] * len(self.counts), [], time.monotonic()

    def end(self):
        took, passed = sorted(self.took), time.monotonic() - self.begun
        at = [int(1e6 * took[int(share * (len(took) - 1))]) if took else 0 for share in (0.5, 0.99)]
        return "figures n=%d us=%d p50_us=%d p99_us=%d" % (sum(self.counts), passed * 1e6, *at)

    def rest(self):
        self.going.clear()
        for _ in self.threads:
            self.idle.acquire()


def main():
    clients = Clients(sys.argv[1], int(sys.argv[2]))
    print("ready", flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "connect":
            for thread in clients.threads:
                thread.start()
            print("connected n=%d" % len(clients.threads), flush=True)
        elif word == "go":
            clients.going.set()
        elif word == "begin":
            clients.begin()
        elif word == "end":
            print(clients.end(), flush=True)
        elif word == "rest":
            clients.rest()
            print("resting", flush=True)


if __name__ == "__main__":
    main()
