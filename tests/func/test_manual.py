# SPDX-License-Identifier: BSD-2-Clause
"""Examples of redlock(1), run as they are printed."""
import os
import re
import subprocess
import sys

from daemon import on_redis
from harness import FuncTest, on_each_store
from process import BUILD, ROOT, reap, spawn, until


def example(begin, page="client/cli/redlock.1"):
    """The lines of the first example behind the line of a manual that begins so."""
    with open(os.path.join(ROOT, page)) as manual:
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
        watcher = self.client(daemons[0])
        for use in ("first", "second"):  # the second within the time for which the names of the first are kept
            parties = [self.shell(folder, daemons[i], text, I=str(i + 1), USE=use) for i in range(2)]
            until(lambda: all(watcher.roles("step/%s/%d" % (use, i)) == ["holder"] for i in (1, 2)), "two have come")  # pylint: disable=cell-var-from-loop
            self.assertEqual(self.begun(folder, *names), [False] * 3)
            parties.append(self.shell(folder, daemons[2], text, I="3", USE=use))
            until(lambda: self.begun(folder, *names) == [True] * 3, "all go on")
            for name in names:
                self.goes(folder, name)
            self.assertEqual([party.wait(10) for party in parties], [0, 0, 0])
            for name in names:
                os.unlink(os.path.join(folder, name + ".begun"))
                os.unlink(os.path.join(folder, name + ".go"))


@on_each_store
class Python(Printed):
    """The client of redlock-protocol(7)."""

    def program(self, change=("", "")):
        text = example(".Ss A client in Python", "proto/redlock-protocol.7").replace("\\e", "\\").replace(*change)
        process = spawn([sys.executable, "-c", text], env=dict(os.environ, REDLOCK_ADDR=self.d.addr), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(reap, process)
        return process

    def test_it_waits_acts_and_unlocks(self):
        holder = self.connect()
        before = holder.ok("LOCK orders/42").num("fence")
        client = self.program()
        until(lambda: "waiter" in holder.roles("orders/42"), "the client waits")
        holder.ok("UNLOCK orders/42")
        out, err = client.communicate(timeout=10)
        self.assertEqual((client.returncode, err), (0, ""))
        self.assertGreater(int(re.fullmatch(r"acting with fence (\d+)\n", out).group(1)), before)
        self.assertEqual(holder.roles("orders/42"), [])

    def test_it_does_not_act_without_the_lock(self):
        for text, says in (("LOCK orders/42", "BUSY name=orders/42 "), ("CHECK orders/42", "ERR NOTHELD ")):
            holder = self.connect()
            holder.ok("LOCK orders/42 ttl=30s")
            client = self.program(("LOCK orders/42 wait=10s", text))
            out, err = client.communicate(timeout=10)
            self.assertEqual((client.returncode, out), (1, ""))
            self.assertIn("RuntimeError: " + says, err)
            holder.ok("UNLOCK orders/42")


class Production(FuncTest):
    """The configuration of SEVERAL HOSTS in redlockd(8)."""

    def test_it_is_sound_and_its_permissions_are_enough(self):
        folder, lines = self.folder(), example(".Sh SEVERAL HOSTS", "daemon/redlockd.8").splitlines()
        self.assertEqual(len(lines), 10)
        server = self.redis()
        text = re.sub(r"nodes: .*", 'nodes: ["%s"]' % server.node, "\n".join(lines) + "\n")
        with open(os.path.join(ROOT, "daemon/redlockd.8")) as manual:
            rules = re.search(r"^~lock:.*?(?=^\.Ed)", manual.read(), re.M | re.S).group()
        server.cli.execute_command("ACL", "SETUSER", "redlockd", "on", ">geheim", *rules.split())
        server.cli.execute_command("ACL", "SETUSER", "default", "off")
        with open(os.path.join(folder, "redis-password"), "w") as out:
            out.write("geheim\n")
        os.chmod(out.name, 0o600)
        daemon = self.daemon(config=text + "runtime_dir: %s\nlog: {level: info}\n" % folder, env={"CREDENTIALS_DIRECTORY": folder, "RUNTIME_DIRECTORY": folder})
        daemon.addr = os.path.join(folder, "redlockd.sock")
        self.assertRegex(daemon.log(), r"ready .* store=redis nodes=1 unix=\S+/redlockd.sock tcp=no")
        # guard: strict, so the server is in quarantine at first.
        daemon.logged("state=quarantine")
