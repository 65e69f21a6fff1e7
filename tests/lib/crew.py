# SPDX-License-Identifier: BSD-2-Clause
"""Runs processes, some at a time, and reads what they write."""
import os
import selectors
import time


def crew(items, jobs, limit):
    """Starts the items, so many at a time, and yields (item, bytes) for what one has written, and (item, b"") when it has closed its output. An item has
    start(), which sets its process and begin, and kill(). A process that takes longer than limit seconds is killed, and all that are left are killed."""
    waiting, running, selector = list(items), set(), selectors.DefaultSelector()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                item = waiting.pop(0)
                item.start()
                running.add(item)
                selector.register(item.process.stdout, selectors.EVENT_READ, item)
            for key, _ in selector.select(1):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                    running.discard(key.data)
                yield key.data, data
            for item in running:
                if time.monotonic() - item.begin > limit and item.process.poll() is None:
                    item.process.kill()
    finally:
        for item in running:
            item.kill()
