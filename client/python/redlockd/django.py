# SPDX-License-Identifier: BSD-2-Clause
"""
For Django: cache.lock(), as django-redis has it.

    CACHES = {
        "default": {...},
        "locks": {"BACKEND": "redlockd.django.LockCache"},  # LOCATION is the address of the daemon, if it is not the usual one
    }

    with caches["locks"].lock("orders/42", blocking_timeout=5) as lock: ...
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._guard import shared
from ._threads import Lock

if TYPE_CHECKING:
    class DummyCache:
        """What is used of a cache of Django."""

        def __init__(self, location: str, params: dict[str, Any]) -> None: ...
else:
    from django.core.cache.backends.dummy import DummyCache

__all__ = ["LockCache", "LockMixin"]


class LockMixin:
    """Gives a backend of a cache lock(): class Cache(LockMixin, RedisCache)."""

    lock_address: str | None = None
    """None: $REDLOCK_ADDR, or the daemon of this host."""

    def lock(self, key: str, version: int | None = None, timeout: float | None = None, sleep: float | None = None, blocking: bool = True,
             blocking_timeout: float | None = None, client: object = None, thread_local: bool = True, **options: Any) -> Lock:
        """
        A lock, not taken yet. Its name is the key as the cache makes it, with KEY_PREFIX and version. It waits for blocking_timeout seconds; None waits without
        end. The daemon renews the lease as long as the process lives, so timeout, sleep, client and thread_local, which calls of django-redis have, do nothing.
        Other options are those of Client.lock().
        """
        name: str = self.make_key(key, version)  # type: ignore[attr-defined]
        return shared(self.lock_address).lock(name, wait=blocking_timeout if blocking else 0.0, **options)


class LockCache(LockMixin, DummyCache):
    """A cache that keeps nothing, and has lock()."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(location, params)
        self.lock_address = location or None
