# SPDX-License-Identifier: BSD-2-Clause
"""A client of the classic Redlock algorithm, which knows nothing of redlockd: SET NX PX on every server, a majority within the validity, compare and delete."""
import os
import random
import time

import redis

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


class Classic:
    """clock: the nanoseconds by which deadlines are told. timeout: seconds for each server."""

    def __init__(self, paths, ttl_ms=3000, timeout=0.25, clock=time.monotonic_ns):
        self.servers = [redis.Redis(unix_socket_path=path, socket_timeout=timeout) for path in paths]
        self.ttl_ms, self.clock, self.value = ttl_ms, clock, None
        self.valid_ms = ttl_ms * 99 // 100 - 3  # less 1 % for drift of the clocks, and 3 ms
        self.until = 0  # the moment at which the last lock ends

    def each(self, command):
        """Asks every server. Returns how many did as they were told; a server that fails or is slow did not."""
        done = 0
        for server in self.servers:
            try:
                done += bool(command(server))
            except (redis.exceptions.RedisError, OSError):
                server.connection_pool.disconnect()
        return done

    def lock(self, name):
        self.value, begin = os.urandom(16).hex(), self.clock()
        votes = self.each(lambda server: server.set("lock:" + name, self.value, nx=True, px=self.ttl_ms))
        self.until = begin + self.valid_ms * 1000000
        if votes > len(self.servers) // 2 and self.clock() < self.until:
            return True
        self.unlock(name)
        return False

    def lock_within(self, name, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.lock(name):
                return True
            time.sleep(random.uniform(0.001, 0.01))  # the random delay of the algorithm
        return False

    def unlock(self, name):
        return self.each(lambda server: server.eval(RELEASE, 1, "lock:" + name, self.value))

    def close(self):
        for server in self.servers:
            server.close()
