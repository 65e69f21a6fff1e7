# SPDX-License-Identifier: BSD-2-Clause
"""A share of many tests, for runs that have no time for all of them: other ones with each commit.

python3 tests/lib/share.py N name … prints the share of the names, a line each."""
import random
import subprocess
import sys
import time


def commit():
    """The name of the commit; where there is none, the clock."""
    done = subprocess.run(["git", "rev-parse", "--verify", "--quiet", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode().strip() or str(time.time())


def share(items, parts, seed=None):
    """One of so many parts of the items, in their order; at least one item. The same seed (the commit) and the same items: the same part."""
    items = list(items)
    chosen = random.Random(seed or commit()).sample(range(len(items)), -(-len(items) // parts))
    return [items[at] for at in sorted(chosen)]


if __name__ == "__main__":
    print("\n".join(share(sys.argv[2:], int(sys.argv[1]))))
