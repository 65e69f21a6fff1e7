# SPDX-License-Identifier: BSD-2-Clause
"""redlockd.django, with Django."""
import unittest

import redlockd.django
import redlockd.testing
from django import conf
from django.core.cache import caches
from django.core.cache.backends.locmem import LocMemCache


class Cache(redlockd.django.LockMixin, LocMemCache):
    """A cache of a user."""


class LockCache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = redlockd.testing.Fake()
        cls.addClassCleanup(cls.server.close)
        own = {"BACKEND": "redlockd.django.LockCache", "LOCATION": cls.server.address}
        conf.settings.configure(CACHES={"default": own, "shop": dict(own, KEY_PREFIX="shop", VERSION=2), "mixed": {"BACKEND": __name__ + ".Cache"}})

    def test_a_lock_is_held_in_a_block(self):
        with caches["default"].lock("orders/42", blocking_timeout=5) as lock:
            self.assertEqual((lock.name, lock.locked()), (":1:orders/42", True))
            other = caches["default"].lock("orders/42", timeout=10, sleep=0.1, blocking=False)
            self.assertRaises(redlockd.Busy, other.__enter__)
            self.assertFalse(caches["default"].lock("orders/42", blocking_timeout=0.01).acquire())
        with other, self.assertRaises(redlockd.LockTimeout), caches["default"].lock("orders/42", blocking_timeout=0.01):
            self.fail("two have it")

    def test_keys_are_those_of_the_cache(self):
        self.assertEqual(caches["shop"].lock("a").name, "shop:2:a")
        self.assertEqual(caches["shop"].lock("a", version=3).name, "shop:3:a")

    def test_options_are_those_of_a_client(self):
        with caches["default"].lock("r", shared=True), caches["default"].lock("r", shared=True, blocking=False):
            self.assertFalse(caches["default"].lock("r").acquire(False))

    def test_a_loss_is_told(self):
        with self.assertRaises(redlockd.LockLost), caches["default"].lock("x", blocking_timeout=5) as lock:
            self.server.lose(":1:x")
            self.assertTrue(lock.lost.wait(20))

    def test_it_keeps_nothing(self):
        caches["default"].set("a", 1)
        self.assertIsNone(caches["default"].get("a"))

    def test_a_cache_of_a_user_has_locks_as_well(self):
        cache = caches["mixed"]
        cache.lock_address = self.server.address
        cache.set("a", 1)
        with cache.lock("mixed", blocking_timeout=5) as lock:
            self.assertEqual((cache.get("a"), lock.name), (1, ":1:mixed"))


if __name__ == "__main__":
    unittest.main()
