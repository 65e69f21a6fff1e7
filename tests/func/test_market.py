# SPDX-License-Identifier: BSD-2-Clause
"""The market of tests/bench/market for a moment: money and goods add up, and are seen not to when nothing keeps the buyers apart."""
import os

from daemon import on_redis
from harness import FuncTest
from process import BUILD, call


class Market(FuncTest):
    COST = 5

    def market(self, *words, servers=1, ms=300):
        """Five sellers and five buyers on the first of the servers. Returns (status, figures, complaints)."""
        redis = [self.redis() for _ in range(servers)]
        argv = [os.path.join(BUILD, "market"), "redis=" + redis[0].path, "sellers=5", "buyers=5", "ms=%d" % ms, *words]
        if "way=redlockd" in words:
            argv.append("redlockd=" + self.daemon(on_redis(redis)).joined().addr)
        status, out, err = call(*argv, timeout=60)
        return status, {key: int(value) for key, _, value in (word.partition("=") for word in out.split()[1:])}, err

    def adds_up(self, *words, **options):
        status, told, err = self.market(*words, **options)
        self.assertEqual((status, err), (0, ""))
        self.assertGreater(told["listed"], 0)
        return told

    def test_watch_and_no_lock(self):
        self.adds_up("way=watch")

    def test_one_lock_by_set_nx(self):
        self.adds_up("way=direct", "lock=market")

    def test_a_lock_per_item_by_set_nx(self):
        self.adds_up("way=direct", "lock=item")

    def test_one_lock_of_redlockd(self):
        self.assertGreater(self.adds_up("way=redlockd", "lock=market")["bought"], 0)

    def test_a_lock_per_item_of_redlockd(self):
        self.assertGreater(self.adds_up("way=redlockd", "lock=item")["bought"], 0)

    def test_a_lock_per_item_of_redlockd_on_three_servers(self):
        self.assertGreater(self.adds_up("way=redlockd", "lock=item", servers=3)["bought"], 0)

    def test_without_any_guard_goods_are_sold_twice(self):
        status, _, err = self.market("way=none", ms=1000)
        self.assertEqual(status, 1)
        self.assertRegex(err, "goods in all: [0-9]+, and should be [0-9]+")
