# SPDX-License-Identifier: BSD-2-Clause
"""Examples of redlock(1), run as they are printed."""
import os
import re

from daemon import on_redis
from harness import FuncTest, on_each_store
from process import BUILD, ROOT, reap, spawn, until


def example(begin):
    """The lines of the first example behind the paragraph of redlock(1) that begins so."""
    with open(os.path.join(ROOT, "client", "redlock.1")) as manual:
        text = manual.read()
    return re.search(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text[text.index("\n" + begin):], re.M | re.S).group(1)


class Printed:
    """Commands of shell scripts leave a file NAME.begun when they begin, and end when there is a file NAME.go."""
    COST = 3

    def place(self):
        folder = self.folder()
        for name in ("part", "link", "step"):
            path = os.path.join(folder, name)
            with open(path, "w") as script:
                script.write('#!/bin/sh\nn=%s${1:-$I}\n: >$n.begun\nuntil [ -e $n.go ]; do sleep 0.05; done\n' % name)
            os.chmod(path, 0o755)
        return folder

    def shell(self, folder, daemon, text, **env):
        path = "%s:%s" % (os.path.abspath(BUILD), os.environ["PATH"])
        process = spawn(["sh", "-c", text], cwd=folder, env=dict(os.environ, REDLOCK_ADDR=daemon.addr, PATH=path, **env))
        self.addCleanup(reap, process)
        return process

    def begun(self, folder, *names):
        return [os.path.exists(os.path.join(folder, name + ".begun")) for name in names]

    def goes(self, folder, name):
        with open(os.path.join(folder, name + ".go"), "w"):
            pass


@on_each_store
class Latch(Printed):
    def test_the_writer_waits_for_the_last_worker(self):
        folder, (one, two, link) = self.place(), example("A countdown latch").splitlines()
        workers = [self.shell(folder, self.d, "exec " + line) for line in (one, two)]
        until(lambda: all(self.begun(folder, "part1", "part2")), "both workers have begun")
        writer = self.shell(folder, self.d, link)
        until(lambda: "waiter" in self.connect().roles("build/parts"), "the writer waits")
        self.goes(folder, "part1")
        self.assertEqual(workers[0].wait(10), 0)
        self.assertEqual(self.begun(folder, "link"), [False])
        workers[1].kill()  # its command ends with it
        until(lambda: self.begun(folder, "link") == [True], "the writer begins")
        self.goes(folder, "link")
        self.assertEqual(writer.wait(10), 0)


class Barrier(Printed, FuncTest):
    def test_all_go_on_when_the_last_has_come(self):
        """Each party is at a daemon of its own, as on a host of its own."""
        server, folder, text = self.redis(), self.place(), example("A barrier")
        daemons = [self.daemon(on_redis([server])).joined() for _ in range(3)]
        names = ["step1", "step2", "step3"]
        parties = [self.shell(folder, daemons[i], text, I=str(i + 1)) for i in range(2)]
        watcher = self.client(daemons[0])
        until(lambda: all(watcher.roles("step/%d" % i) == ["holder"] for i in (1, 2)), "two have come")
        self.assertEqual(self.begun(folder, *names), [False] * 3)
        parties.append(self.shell(folder, daemons[2], text, I="3"))
        until(lambda: self.begun(folder, *names) == [True] * 3, "all go on")
        for name in names:
            self.goes(folder, name)
        self.assertEqual([party.wait(10) for party in parties], [0, 0, 0])
