# SPDX-License-Identifier: BSD-2-Clause
"""A process that plays many clients at once: it takes commands on its standard input, a word a line, and answers with lines of figures."""
import contextlib
import os
import subprocess

from process import BUILD, PipeLines, die_with_parent, reap


def go_first(pid):
    """Gives a measured process priority over everything else, where that is allowed, so that only the daemon makes it wait."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


def give_way(pid):
    """Gives a process the lowest priority."""
    allowed = os.geteuid() == 0
    os.setpriority(os.PRIO_PROCESS, pid, 5 if allowed else 19)
    if not allowed:
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


class Generator:
    """One process of a program in the build folder. prepare: called in it before it runs. cpu: the processor to which it is bound."""

    def __init__(self, program, mode, addr, *args, prepare=None, cpu=None):
        self.wants, self.cpu = prepare, cpu
        where = addr if isinstance(addr, str) else "%s:%d" % addr
        argv = [os.path.join(BUILD, program), mode, where, *[str(arg) for arg in args]]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=self._prepare, bufsize=0)
        self.lines = PipeLines(self.process.stdout)
        self.hear("ready")

    def _prepare(self):
        die_with_parent()
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})
        if self.wants:
            self.wants(0)

    @property
    def pid(self):
        return self.process.pid

    def say(self, word):
        self.process.stdin.write(word.encode() + b"\n")

    def hear(self, word, timeout=60.0):
        """The figures of the next line, which must begin with word."""
        line = self.lines.next("the generator should say " + word, timeout)
        said, *fields = line.split()
        if said != word:
            raise AssertionError("the generator says %s, not %s" % (line, word))
        return {key: int(value) for key, _, value in (field.partition("=") for field in fields)}

    def ask(self, word, answer, timeout=60.0):
        self.say(word)
        return self.hear(answer, timeout)

    def close(self):
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        reap(self.process)
